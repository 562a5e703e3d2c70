//! Decides whether the start of a program can do no harm, by the program and its arguments alone. It is for programs
//! that the alerted one started: their origin explains nothing, because an attacker may have written what started them.
//!
//! The arguments of these programs say all that they do. Everything else may do harm.

use super::of_the_system;
use crate::facet::{Class, Facet, Facets};

/// They only read.
const READERS: &str = "cat head tail ls stat wc cut tr grep egrep fgrep uname id basename dirname readlink realpath test [ \
    true false expr lsmod modinfo dpkg-query getopt cmp";
/// They change the files that their arguments name.
const CHANGERS: [&str; 5] = ["mkdir", "rmdir", "touch", "rm", "chmod"];
const COPIERS: [&str; 2] = ["cp", "ln"];
const SHELLS: [&str; 3] = ["sh", "dash", "bash"];

pub fn is_harmless(facets: &Facets) -> bool {
    let (Some(program), Some(command)) = (facets.get(Facet::Process), facets.get(Facet::Command)) else {
        return false;
    };
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let mut words = command.split_whitespace();
    let (own, called) = (name(program), name(words.next().unwrap_or_default()));
    // kmod is one program with many names.
    let same = own == called || own == "kmod" && ["modprobe", "modinfo", "lsmod"].contains(&called.as_str());
    let shell = SHELLS.contains(&own.as_str()) && SHELLS.contains(&called.as_str());
    if facets.class != Some(Class::ProcessStart) || !of_the_system(program) || !(same || shell) {
        return false;
    }
    let words: Vec<&str> = words.collect();
    let plain: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with('-')).collect();
    let option = |names: &[&str]| words.iter().any(|word| names.contains(word));
    match called.as_str() {
        "modprobe" => option(&["-n", "-D", "--dry-run", "--show-depends"]),
        called if READERS.split_whitespace().any(|reader| reader == called) => true,
        "chmod" if words.iter().any(|word| makes_privileged(word)) => false,
        called if CHANGERS.contains(&called) => {
            plain.iter().any(|w| in_work(w)) && plain.iter().all(|w| in_work(w) || is_mode(w))
        }
        called if COPIERS.contains(&called) => {
            let target = words.iter().any(|word| word.starts_with("-t") || word.starts_with("--target"));
            let (to, from) = plain.split_last().unwrap_or((&"", &[]));
            !target && in_work(to) && !from.is_empty() && from.iter().all(|w| of_the_system(w) || in_work(w))
        }
        // The shell reads the script or runs it, and what the script starts has records of its own.
        _ if shell => {
            let options = words.iter().take_while(|word| word.starts_with('-'));
            let known = options.clone().all(|word| matches!(*word, "-e" | "-n" | "-u" | "-eu"));
            known && words.get(options.count()).is_some_and(|script| of_the_system(script))
        }
        _ => false,
    }
}

/// The working folder in which a system image is put together. Only `root` can change it.
fn in_work(path: &str) -> bool {
    path.strip_prefix("/var/tmp/mkinitramfs")
        .is_some_and(|rest| rest.starts_with(['_', '-', '.']) && !rest.contains(".."))
}

fn is_mode(word: &str) -> bool {
    (3..=4).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit())
}

/// The mode lets a program run as its owner or group.
fn makes_privileged(mode: &str) -> bool {
    mode.contains('s') && mode.contains(['+', '=']) || mode.len() >= 4 && is_mode(mode) && !mode.starts_with('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harmless(program: &str, command: &str) -> bool {
        let fields = [("event", "process_start"), ("exe", program), ("command_line", command), ("ppid", "7")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        is_harmless(&Facets::read(&fields, ""))
    }

    #[test]
    fn program_is_harmless_only_if_its_arguments_say_all_that_it_does() {
        for (program, command) in [
            ("/usr/bin/cp", "cp -aZ /sbin/modprobe /sbin/rmmod /var/tmp/mkinitramfs_qP7nqo/sbin/"),
            ("/usr/bin/mkdir", "mkdir -p /var/tmp/mkinitramfs_qP7nqo/lib/modprobe.d/"),
            ("/usr/bin/cat", "cat /proc/modules"),
            ("/usr/bin/kmod", "modprobe --show-depends dm_mod"),
            ("/usr/bin/chmod", "chmod 0755 /var/tmp/mkinitramfs_qP7nqo/init"),
            ("/usr/bin/dash", "/bin/sh -e /usr/share/initramfs-tools/hooks/kmod"),
        ] {
            assert!(harmless(program, command), "{command}");
        }
        for (program, command) in [
            ("/tmp/cp", "cp /sbin/modprobe /var/tmp/mkinitramfs_a/sbin/"),
            ("/usr/bin/cp", "cp /tmp/evil /var/tmp/mkinitramfs_a/sbin/init"),
            ("/usr/bin/cp", "cp /sbin/modprobe /var/tmp/mkinitramfs_a/../../../etc/cron.d/a"),
            ("/usr/bin/cp", "cp -t /etc/cron.d /usr/share/a /var/tmp/mkinitramfs_a/b"),
            ("/usr/bin/cp", "cat /etc/passwd /etc/cron.d/a"),
            ("/usr/bin/chmod", "chmod 4755 /var/tmp/mkinitramfs_a/init"),
            ("/usr/bin/chmod", "chmod u+s /var/tmp/mkinitramfs_a/init"),
            ("/usr/bin/chmod", "chmod 755 /usr/bin/dash"),
            ("/usr/bin/kmod", "modprobe md"),
            ("/usr/bin/kmod", "insmod /tmp/a.ko"),
            ("/usr/bin/dash", "sh -c cat /usr/share/a"),
            ("/usr/bin/dash", "/bin/sh /tmp/a"),
            ("/usr/bin/dash", "/bin/sh -x -c id /usr/share/a"),
            ("/usr/bin/find", "find / -exec sh {} +"),
            ("/usr/bin/curl", "curl http://192.0.2.7/a"),
            ("/usr/bin/python3.11", "cat /a"),
        ] {
            assert!(!harmless(program, command), "{command}");
        }
    }
}
