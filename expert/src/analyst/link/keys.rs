//! Keys that link records: processes, connections and sessions.

use crate::analyst::account;
use crate::analyst::rec::Rec;
use casebook_evidence::facet::audit_prefix;
use casebook_evidence::facet::{Class, Facet, last};

pub(crate) fn process_keys(rec: &Rec) -> (Vec<String>, Vec<String>) {
    casebook_evidence::facet::process_keys(&rec.fields, &rec.facets)
}

pub(crate) fn flow_keys(rec: &Rec) -> Vec<String> {
    let mut keys = Vec::new();
    for (path, value) in &rec.fields {
        let long = value.len() >= 10 && !value.chars().all(|c| c.is_ascii_digit());
        if long
            && matches!(
                last(path, 1).as_str(),
                "uid" | "fuid" | "certchainfuids" | "respfuids" | "origfuids" | "connuids" | "flowid" | "communityid"
            )
        {
            keys.push(value.clone());
        }
        if long && last(path, 1) == "id" && rec.fields.keys().any(|k| last(k, 1) == "ts") {
            keys.push(value.clone());
        }
    }
    if let (Some(a), Some(b)) = (endpoint(rec, true), endpoint(rec, false)) {
        keys.push(if a < b { format!("{a}<>{b}") } else { format!("{b}<>{a}") });
    }
    keys
}

fn endpoint(rec: &Rec, source: bool) -> Option<String> {
    let ip = rec.facets.get(if source { Facet::SrcIp } else { Facet::DstIp })?;
    let ports: &[&str] = if source {
        &["sourceport", "srcport", "sport", "idorigp", "origp"]
    } else {
        &["destinationport", "destport", "dstport", "dport", "idrespp", "respp"]
    };
    Some(format!("{ip}:{}", rec.field(ports)?))
}

pub(crate) fn session_keys(rec: &Rec) -> Vec<String> {
    let named = |path: &str| {
        matches!(
            last(path, 1).as_str(),
            "accesskeyid" | "sessionid" | "externalsessionid" | "logonguid" | "uniquetokenidentifier" | "signinid"
        )
    };
    if rec.facets.get(Facet::User).is_some_and(account::of_system) {
        return Vec::new();
    }
    let zero = |value: &str| value.chars().all(|c| matches!(c, '0' | '-' | '{' | '}'));
    let mut keys: Vec<String> =
        rec.fields.iter().filter(|(k, v)| named(k) && v.len() >= 6 && !zero(v)).map(|(_, v)| v.clone()).collect();
    keys.extend(audit_keys(rec));
    // A common field name. Real session ids have letters and digits.
    let own = |id: &&String| {
        let any = |kind: fn(&u8) -> bool| id.bytes().any(|b| kind(&b));
        let plain = id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        id.len() >= 8 && plain && any(u8::is_ascii_digit) && any(u8::is_ascii_alphabetic)
    };
    keys.extend(rec.fields.get("session").filter(own).map(|id| format!("{}#session={id}", rec.source)));
    keys
}

/// The event of a Linux audit record and its sign-in session, as written.
fn audit_keys(rec: &Rec) -> Vec<String> {
    const NOBODY: &[&str] = &["4294967295", "-1", "unset"];
    let prefix = audit_prefix(&rec.fields).unwrap_or_default();
    let field = |name: &str| rec.fields.get(&format!("{prefix}{name}")).map(String::as_str);
    let (Some(time), Some(serial)) = (field("audit.time"), field("audit.serial")) else { return Vec::new() };
    let session = field("ses").filter(|id| !NOBODY.contains(id));
    // Session numbers are unique only on one host.
    let host = rec.facets.get(Facet::Host).unwrap_or(&rec.file);
    let session = session.map(|id| format!("{host}#ses={id}"));
    std::iter::once(format!("audit({time}:{serial})")).chain(session).collect()
}

/// True for a folder where any user may write.
pub(crate) fn brought(path: &str) -> bool {
    const FOLDERS: [&str; 9] = [
        "\\users\\",
        "\\temp\\",
        "\\programdata\\",
        "\\perflogs\\",
        "/tmp/",
        "/dev/shm/",
        "/home/",
        "/users/",
        "/downloads/",
    ];
    let path = path.to_lowercase();
    FOLDERS.iter().any(|folder| path.contains(folder))
}

/// Paths of libraries and scripts in a command.
pub(super) fn code_in(command: &str) -> impl Iterator<Item = &str> {
    const CODE: [&str; 13] =
        [".dll", ".exe", ".ps1", ".bat", ".cmd", ".vbs", ".js", ".hta", ".scr", ".so", ".sh", ".py", ".jar"];
    let words = command.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '=' | ';'));
    words.filter(|word| {
        let lower = word.to_ascii_lowercase();
        word.contains(['/', '\\']) && CODE.iter().any(|end| lower.ends_with(end))
    })
}

/// The process in which another one started a thread, as in an injection.
pub(super) fn moved_into(rec: &Rec) -> Option<String> {
    let injects = rec.class() == Class::ProcessAccess && rec.shows.iter().any(|b| b.id == "remote-thread-injection");
    injects.then(|| rec.field(&["targetprocessguid"]).map(str::to_ascii_lowercase))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_one_key_whichever_sensor_writes_its_id() {
        let audit =
            Rec::with(&[("EventID", "4688"), ("Hostname", "PC1"), ("NewProcessId", "0x270"), ("ProcessId", "0x1a4")]);
        assert_eq!(process_keys(&audit), (vec!["pc1#624".into()], vec!["pc1#420".into()]));
        let sensor =
            Rec::with(&[("EventID", "11"), ("Hostname", "PC1"), ("ProcessId", "624"), ("winlog.process.pid", "9")]);
        assert_eq!(process_keys(&sensor), (vec!["pc1#624".into()], Vec::new()));
        let none =
            Rec::with(&[("EventID", "4624"), ("Hostname", "PC1"), ("ProcessId", "0x0"), ("ExecutionProcessID", "7")]);
        assert_eq!(process_keys(&none), (Vec::new(), Vec::new()));
    }

    #[test]
    fn the_acting_program_is_above_what_it_starts_and_does_the_rest_itself() {
        let ids = [("InitiatingProcessId", "7"), ("DeviceName", "PC1"), ("InitiatingProcessFileName", "a.exe")];
        let start = [&ids[..], &[("ProcessCommandLine", "b -c"), ("ProcessId", "9"), ("FileName", "b.exe")]].concat();
        assert_eq!(process_keys(&Rec::with(&start)), (vec!["pc1#9".into()], vec!["pc1#7".into()]));
        let wrote = [&ids[..], &[("ActionType", "FileCreated"), ("FileName", "b.exe")]].concat();
        assert_eq!(process_keys(&Rec::with(&wrote)), (vec!["pc1#7".into()], Vec::new()));
        // The opened file existed before and is not an act of the opener.
        let opened = [("SourceProcessGUID", "{A}"), ("TargetProcessId", "9"), ("EventID", "10"), ("Hostname", "PC1")];
        assert_eq!(process_keys(&Rec::with(&opened)), (vec!["{a}".into()], Vec::new()));
    }

    #[test]
    fn records_of_one_audit_event_and_of_one_sign_in_belong_together() {
        let fields = [("audit.time", "1.5"), ("audit.serial", "7"), ("type", "SYSCALL"), ("ses", "237")];
        assert_eq!(session_keys(&Rec::with(&fields)), ["audit(1.5:7)", "a.log#ses=237"]);
        let elsewhere = [&fields[..], &[("node", "web2")]].concat();
        assert_eq!(session_keys(&Rec::with(&elsewhere)), ["audit(1.5:7)", "web2#ses=237"]);
        let daemon = [("audit.time", "1.5"), ("audit.serial", "7"), ("type", "SYSCALL"), ("ses", "4294967295")];
        assert_eq!(session_keys(&Rec::with(&daemon)), ["audit(1.5:7)"]);
    }

    #[test]
    fn labels_join_no_audit_events() {
        let labels = [
            ("metadata.labels.audit.time", "1.5"),
            ("metadata.labels.audit.serial", "7"),
            ("metadata.labels.ses", "2"),
        ];
        assert_eq!(session_keys(&Rec::with(&labels)), Vec::<String>::new());
    }

    #[test]
    fn sessions_of_the_system_join_nothing() {
        let guid = ("LogonGuid", "{11111111-2222-3333-4444-555555555555}");
        assert_eq!(session_keys(&Rec::with(&[guid, ("User", "CORP\\mara")])).len(), 1);
        assert_eq!(session_keys(&Rec::with(&[guid, ("User", "NT AUTHORITY\\SYSTEM")])).len(), 0);
    }
}
