//! Whether an explanation is one of what was alerted. A dismissal hangs on it, so it has to be of the alerted thing
//! itself, nothing on the way to it may come from where anybody can put a program, and it has to hold also without what
//! whoever is recorded could write: a client may call itself anything, and a shell is given any text (decision 22).

use std::collections::BTreeMap;

use casebook_protocol::{Bearing, chosen};

use super::{Group, Pick};
use crate::analyst::Case;
use crate::analyst::facet::{Class, Facet, Facets, last};
use crate::analyst::link::{Kin, brought};
use crate::analyst::rec::Rec;

/// Those of the group's records that explain what the alert is about; of two sensors that saw it, each has to show the
/// explanation itself. That a program was started by an update says nothing of whom it then connects to, and an update
/// that a program on somebody's desktop started is none.
pub(super) fn explaining<'g, 'a>(group: &'g Group<'a>, case: &Case) -> Vec<&'g Pick<'a>> {
    let close = case.recs.iter().enumerate().filter(|(i, _)| case.links.kin(*i).is_some_and(|k| k <= Kin::Ancestor));
    if group.0.iter().map(|p| p.rec).chain(close.map(|(_, rec)| rec)).any(runs_from_anywhere) {
        return Vec::new();
    }
    let wire = case.alerted().iter().any(|rec| on_the_network(rec));
    let holds = |rec: &Rec| {
        let innocent: Vec<_> = rec.shows.iter().filter(|b| b.bearing == Bearing::Exonerating).collect();
        let (facets, text) = if innocent.is_empty() { Default::default() } else { unchosen(rec) };
        innocent.iter().any(|b| b.matches(&facets, &text))
    };
    group.0.iter().filter(|p| (!wire || on_the_network(p.rec)) && holds(p.rec)).collect()
}

fn on_the_network(rec: &Rec) -> bool {
    matches!(rec.class(), Class::NetworkConnection | Class::DnsQuery | Class::HttpRequest | Class::TlsSession)
}

/// A program, or what started it, lies where any user may write.
fn runs_from_anywhere(rec: &Rec) -> bool {
    [Facet::Process, Facet::Parent].iter().any(|facet| rec.facets.get(*facet).is_some_and(brought))
}

/// What a record says without what whoever it is about could choose, and that as text in small letters.
fn unchosen(rec: &Rec) -> (Facets, String) {
    /// Longer texts are no fixed values of a sensor.
    const LONGEST: usize = 200;
    let whole = |path: &str| !rec.fields.keys().any(|k| k.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')));
    let fixed = |path: &str, value: &str| {
        let plain = value.len() <= LONGEST && value.chars().all(|c| c.is_ascii_graphic() || c == ' ');
        plain && value.split_whitespace().count() < 3 && !chosen::by_name(path)
    };
    let kept = rec.fields.iter().filter(|(path, value)| whole(path) && fixed(path, value));
    let mut kept: BTreeMap<String, String> = kept.map(|(path, value)| (path.clone(), value.clone())).collect();
    let known = |facet| rec.facets.get(facet);
    let ran = [
        ("process_executable", Facet::Process, known(Facet::Process).filter(|path| of_the_system(path))),
        ("parent_executable", Facet::Parent, known(Facet::Parent).filter(|path| of_the_system(path))),
        ("asked", Facet::Command, meant(known(Facet::Process), known(Facet::Command))),
        ("asked_above", Facet::ParentCommand, meant(known(Facet::Parent), known(Facet::ParentCommand))),
    ];
    // What a server had an answer to is there, whoever asked.
    let answered = rec.class() == Class::HttpRequest && known(Facet::HttpStatus).is_some_and(|s| s.starts_with('2'));
    let url = known(Facet::Url).filter(|url| answered && !url.contains([' ', '"']));
    let method = known(Facet::HttpMethod).unwrap_or_default();
    kept.extend(url.map(|url| ("answered".to_owned(), format!("{method} {url}"))));
    for (name, _, value) in &ran {
        kept.extend(value.map(|value| ((*name).to_owned(), value.to_owned())));
    }
    let line = |(path, value): (&String, &String)| format!("\"{}\":\"{value}\"\n", last(path, 1));
    let text: String = kept.iter().map(line).collect();
    let mut facets = Facets::read(&kept, &text);
    for (_, facet, value) in ran {
        facets.set(facet, value);
    }
    facets.class = rec.facets.class;
    (facets, text.to_lowercase())
}

/// A program that takes an administrator to put there.
fn of_the_system(path: &str) -> bool {
    !brought(path) && (path.starts_with('/') || path.get(1..3) == Some(":\\"))
}

/// The command, where it says what `program` was asked to do: it is that of a program of the system, which is no shell
/// that runs any text, or of a shell that was given a script of the system.
fn meant<'a>(program: Option<&str>, command: Option<&'a str>) -> Option<&'a str> {
    const SHELLS: [&str; 31] = [
        "sh",
        "bash",
        "dash",
        "zsh",
        "ksh",
        "ash",
        "fish",
        "busybox",
        "python",
        "perl",
        "ruby",
        "node",
        "php",
        "java",
        "lua",
        "env",
        "nohup",
        "xargs",
        "find",
        "awk",
        "vim",
        "cmd",
        "powershell",
        "pwsh",
        "wscript",
        "cscript",
        "mshta",
        "rundll32",
        "regsvr32",
        "osascript",
        "wmic",
    ];
    let (program, command) = (program.filter(|path| of_the_system(path))?, command?);
    let name = |path: &str| {
        let file = path.trim_matches('"').rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
        file.strip_suffix(".exe").map_or_else(|| file.clone(), str::to_owned)
    };
    let mut words = command.split_whitespace();
    let (called, own) = (name(words.next()?), name(program));
    let plain = own.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if SHELLS.contains(&plain) {
        let script = words.next().filter(|word| *word != "-e").or_else(|| words.next())?;
        let clean = !command.contains([';', '&', '|', '`', '$', '\n']);
        return (clean && of_the_system(script.trim_matches('"'))).then_some(command);
    }
    // One program of kmod has many names.
    (called == own || own == "kmod").then_some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_meant_where_a_program_of_the_system_was_asked() {
        let check = |program: &str, command: &str, expect: bool| {
            assert_eq!(meant(Some(program), Some(command)).is_some(), expect, "{program} {command}");
        };
        check("/sbin/modprobe", "/sbin/modprobe --show-depends dm_mod", true);
        check("/usr/bin/kmod", "modprobe -n dm_mod", true);
        check("/usr/bin/python3.11", "modprobe -n dm_mod", false);
        check("/tmp/modprobe", "modprobe -n dm_mod", false);
        check("/usr/bin/nc", "modprobe -n dm_mod", false);
        check("/usr/bin/dash", "/bin/sh /var/lib/dpkg/info/x.postinst configure", true);
        check("/usr/bin/dash", "/bin/sh -e /usr/sbin/mkinitramfs -o /boot/a", true);
        check("/usr/bin/bash", "bash -c evil /etc/cron.daily/logrotate", false);
        check("/usr/bin/bash", "bash /tmp/a /etc/cron.daily/logrotate", false);
        check(r"C:\Windows\System32\netsh.exe", r"netsh  trace stop", true);
        check(r"C:\Windows\System32\cmd.exe", "cmd /c evil.exe & rem netsh trace stop", false);
    }

    #[test]
    fn what_a_client_says_of_itself_is_left_out() {
        let rec = Rec::with(&[
            ("userAgent", r#"x "invokedBy":"backup.amazonaws.com""#),
            ("deviceDetail.displayName", "FIDO2 key"),
            ("userIdentity.type", "AWSService"),
            ("SourceImage", r"C:\Windows\System32\svchost.exe"),
            ("Image", r"C:\Users\mara\a.exe"),
        ]);
        let (facets, text) = unchosen(&rec);
        assert!(!text.contains("backup") && !text.contains("fido2"), "{text}");
        assert_eq!(facets.get(Facet::PrincipalType), Some("AWSService"));
        assert!(text.contains(r"svchost.exe"));
        assert_eq!(facets.get(Facet::Process), None);
    }
}
