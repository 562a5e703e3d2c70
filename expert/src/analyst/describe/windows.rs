//! Sentences about Windows events: who did what, to what, with which program. The event number says what
//! happened.

use super::{named, quote};
use crate::analyst::rec::Rec;
use casebook_evidence::facet::{Class, Facet, event_id, last};

/// Event ids that only one provider uses.
const EVENTS: &[(&str, &str)] = &[
    ("1102", "audit log cleared"),
    ("33205", "audit record of a database server"),
    ("4608", "start of Windows"),
    ("4610", "authentication package loaded by the logon service"),
    ("4614", "notification package loaded by the account manager"),
    ("4616", "system time changed"),
    ("4622", "security package loaded by the logon service"),
    ("4624", "sign-in"),
    ("4625", "failed sign-in"),
    ("4627", "groups of a sign-in"),
    ("4634", "sign-out"),
    ("4647", "sign-out"),
    ("4648", "credentials of an account given explicitly"),
    ("4656", "handle to an object requested"),
    ("4657", "registry value changed"),
    ("4658", "handle to an object closed"),
    ("4660", "object deleted"),
    ("4661", "handle to a directory object requested"),
    ("4662", "directory object accessed"),
    ("4663", "object accessed"),
    ("4670", "permissions on an object changed"),
    ("4672", "special privileges given to a sign-in"),
    ("4673", "privileged service called"),
    ("4674", "operation on a privileged object"),
    ("4689", "process ended"),
    ("4690", "handle to an object duplicated"),
    ("4697", "service installed"),
    ("4698", "scheduled task created"),
    ("4699", "scheduled task deleted"),
    ("4700", "scheduled task enabled"),
    ("4701", "scheduled task disabled"),
    ("4702", "scheduled task changed"),
    ("4703", "privileges of a token adjusted"),
    ("4719", "audit policy changed"),
    ("4720", "account created"),
    ("4722", "account enabled"),
    ("4723", "change of a password"),
    ("4724", "reset of a password"),
    ("4725", "account disabled"),
    ("4726", "account deleted"),
    ("4728", "member added to a global group"),
    ("4729", "member removed from a global group"),
    ("4731", "local group created"),
    ("4732", "member added to a local group"),
    ("4733", "member removed from a local group"),
    ("4734", "local group deleted"),
    ("4735", "local group changed"),
    ("4737", "global group changed"),
    ("4738", "account changed"),
    ("4740", "account locked"),
    ("4741", "computer account created"),
    ("4742", "computer account changed"),
    ("4743", "computer account deleted"),
    ("4756", "member added to a universal group"),
    ("4757", "member removed from a universal group"),
    ("4767", "account unlocked"),
    ("4768", "Kerberos sign-in ticket requested"),
    ("4769", "Kerberos service ticket requested"),
    ("4770", "Kerberos service ticket renewed"),
    ("4771", "failed Kerberos sign-in"),
    ("4776", "check of credentials"),
    ("4778", "session reconnected"),
    ("4779", "session disconnected"),
    ("4781", "account renamed"),
    ("4798", "groups of an account listed"),
    ("4799", "members of a group listed"),
    ("4800", "session locked"),
    ("4801", "session unlocked"),
    ("4907", "auditing of an object changed"),
    ("4964", "sign-in of a member of a watched group"),
    ("5136", "directory object changed"),
    ("5137", "directory object created"),
    ("5140", "network share opened"),
    ("5141", "directory object deleted"),
    ("5142", "network share created"),
    ("5145", "file on a network share accessed"),
    ("5154", "port opened for connections"),
    ("5157", "connection refused by the firewall"),
    ("5158", "local port bound"),
    ("5379", "stored credentials read"),
    ("5861", "WMI event consumer registered for good"),
    ("6416", "device recognised"),
    ("7045", "service installed"),
];

/// Event ids that have this meaning only if the record contains a word of the provider's name.
const OF_PROVIDERS: &[(&str, &[(&str, &str)])] = &[
    (
        "TerminalServices",
        &[
            ("1149", "remote desktop authentication"),
            ("21", "remote desktop session opened"),
            ("23", "remote desktop session closed"),
            ("24", "remote desktop session disconnected"),
            ("25", "remote desktop session reconnected"),
        ],
    ),
    ("Microsoft-Windows-Eventlog", &[("104", "event log cleared")]),
    (
        "Windows Defender",
        &[
            ("1116", "malware found by the protection of Windows"),
            ("1117", "malware acted on by the protection of Windows"),
            ("5001", "protection of Windows switched off"),
            ("5007", "setting of the protection of Windows changed"),
        ],
    ),
    (
        "PowerShell",
        &[("400", "PowerShell started"), ("403", "PowerShell ended"), ("600", "PowerShell provider started")],
    ),
    (
        "Microsoft-Windows-Sysmon",
        &[
            ("2", "creation time of a file changed"),
            ("4", "state of the sensor changed"),
            ("6", "driver loaded"),
            ("9", "disk read directly"),
            ("15", "stream of a file written"),
            ("16", "configuration of the sensor changed"),
            ("24", "clipboard changed"),
            ("25", "image of a process replaced"),
            ("27", "writing of a program blocked"),
            ("28", "erasing of a file blocked"),
            ("29", "program written"),
        ],
    ),
    (
        "Service Control Manager",
        &[
            ("7000", "service failed to start"),
            ("7009", "service that did not answer in time"),
            ("7034", "service that ended unexpectedly"),
            ("7036", "service changed its state"),
            ("7040", "way in which a service starts changed"),
        ],
    ),
    (
        "WMI-Activity",
        &[
            ("5857", "WMI provider started"),
            ("5859", "WMI event filter registered"),
            ("5860", "WMI event consumer registered for a session"),
        ],
    ),
    (
        "PrintService",
        &[("307", "document printed"), ("316", "printer driver added"), ("808", "print module that failed to load")],
    ),
];

const LOGON_TYPES: &[(&str, &str)] = &[
    ("2", " at the console"),
    ("3", " over the network"),
    ("4", " of a batch job"),
    ("5", " of a service"),
    ("7", " that unlocked a session"),
    ("8", " over the network with a clear-text password"),
    ("9", " with other credentials for the network"),
    ("10", " by remote desktop"),
];

fn word(list: &[(&str, &'static str)], key: &str) -> Option<&'static str> {
    list.iter().find(|(known, _)| *known == key).map(|(_, words)| *words)
}

/// What happened, without actor and object.
pub(super) fn words(rec: &Rec) -> Option<&'static str> {
    let id = event_id(&rec.fields)?;
    let of_provider = || {
        let head: String = rec.raw.chars().take(4096).collect();
        OF_PROVIDERS.iter().filter(|(name, _)| head.contains(name)).find_map(|(_, numbers)| word(numbers, id))
    };
    word(EVENTS, id).or_else(of_provider)
}

/// None if the event id is unknown or the class of the record has a general sentence.
pub(super) fn sentence(rec: &Rec) -> Option<String> {
    let id = event_id(&rec.fields)?;
    let field = |names: &[&str]| rec.field(names).filter(|v| *v != "-").map(|v| quote(v, 160));
    let get = |facet| named(rec, facet, 160);
    let on = get(Facet::Host).map(|h| format!(" on {h}")).unwrap_or_default();
    if let Some(text) = sysmon(rec, id).or_else(|| powershell(rec, id)) {
        let by = get(Facet::User).map(|u| format!(" as {u}")).unwrap_or_default();
        return Some(format!("{text}{by}{on}"));
    }
    let what = words(rec)?;
    if matches!(rec.class(), Class::ProcessStart | Class::NetworkConnection) {
        return None;
    }
    let kind = rec.field(&["logontype"]).and_then(|kind| word(LOGON_TYPES, kind)).unwrap_or_default();
    // The acting and the affected account differ.
    let user = get(Facet::User);
    let subject = field(&["subjectusername"]).filter(|s| Some(s) != user.as_ref());
    let who = match (rec.class(), user, subject) {
        (Class::AccountChange, Some(user), Some(subject)) => format!(" of {user} by {subject}"),
        (_, Some(user), Some(subject)) if id == "4648" => format!(" of {user} by {subject}"),
        (Class::Authentication | Class::LogonFailure, Some(user), _) => format!(" of {user}"),
        (_, Some(user), _) => format!(" by {user}"),
        _ => String::new(),
    };
    let threat = field(&["threatname"]);
    let object = threat.into_iter().chain(get(Facet::Object)).collect::<Vec<_>>().join(" in ");
    let object = if object.is_empty() { object } else { format!(": {object}") };
    let attribute = field(&["attributeldapdisplayname"]).map(|a| format!(" in {a}")).unwrap_or_default();
    let statement = field(&["statement"]).map(|s| format!(" of {s}")).unwrap_or_default();
    let service = field(&["servicename"]).filter(|_| matches!(id, "4769" | "4697" | "7045"));
    let service = service.map(|s| format!(" for {s}")).unwrap_or_default();
    let file = field(&["imagepath", "servicefilename"]).map(|f| format!(" running {f}")).unwrap_or_default();
    let file = if matches!(id, "4698" | "4702") { task(rec) } else { file };
    let share = field(&["sharename"]).map(|s| format!(" of {s}")).unwrap_or_default();
    let right = field(&["accessmask"]).filter(|_| matches!(id, "4656" | "4662" | "4663"));
    let right = right.map(|r| format!(" with the right {r}")).unwrap_or_default();
    let process = field(&["processname", "processimage", "image"]).map(|p| format!(" with {p}")).unwrap_or_default();
    let from = get(Facet::SrcIp).map(|a| format!(" from {a}")).unwrap_or_default();
    let failed = rec.facets.get(Facet::Outcome) == Some("failure") && !what.starts_with("failed");
    let outcome = if failed { ", which failed" } else { "" };
    let number = quote(id, 20);
    Some(format!(
        "{what}{kind}{object}{attribute}{statement}{share}{service}{file}{right}{who}{process}{from}{on}{outcome} (event {number})"
    ))
}

/// For an unknown event: its number, its provider and its first value.
pub(super) fn unknown(rec: &Rec) -> Option<String> {
    const VALUES: usize = 4;
    let number = quote(event_id(&rec.fields)?, 20);
    let of = rec.fields.iter().find(|(path, _)| {
        matches!(last(path, 2).as_str(), "provider.name" | "attributes.name")
            || matches!(last(path, 1).as_str(), "providername" | "sourcename")
    });
    let of = of.map(|(_, name)| format!(" of {}", quote(name, 80))).unwrap_or_default();
    let data =
        |path: &str| path.to_ascii_lowercase().contains("eventdata") || path.to_ascii_lowercase().contains("userdata");
    let values = rec.fields.iter().filter(|(path, value)| data(path) && !value.is_empty() && !value.contains('\n'));
    let values: Vec<String> = values.map(|(_, value)| quote(value, 80)).take(VALUES).collect();
    (!values.is_empty()).then(|| format!("event {number}{of} with {}", values.join(", ")))
}

fn task(rec: &Rec) -> String {
    let commands = || rec.fields.iter().filter(|(path, _)| last(path, 2) == "exec.command");
    let Some((path, command)) = commands().next() else { return String::new() };
    let beside = path.rsplit_once('.').map(|(exec, _)| format!("{exec}.Arguments")).unwrap_or_default();
    let arguments = rec.fields.get(&beside).map(|a| format!(" with {}", quote(a, 160))).unwrap_or_default();
    let more = if commands().count() > 1 { " and more" } else { "" };
    format!(" that runs {}{arguments}{more}", quote(command, 160))
}

/// For records that only Sysmon writes.
fn sysmon(rec: &Rec, id: &str) -> Option<String> {
    let field = |names: &[&str], max| rec.field(names).filter(|v| *v != "-").map(|v| quote(v, max));
    if let (Class::ScheduledTask, "19" | "20" | "21") = (rec.class(), id) {
        return subscription(rec, id);
    }
    let image = field(&["image", "sourceimage"], 160)?;
    let target = |names: &[&str]| field(names, 160);
    Some(match (rec.class(), id) {
        (Class::ProcessAccess, "10") => {
            let right = field(&["grantedaccess"], 40).map(|r| format!(" with the right {r}")).unwrap_or_default();
            format!("{image} opened {}{right}", target(&["targetimage"])?)
        }
        (Class::ProcessAccess, "8") => format!("{image} started a thread in {}", target(&["targetimage"])?),
        (Class::ImageLoad, _) => format!("{image} loaded {}", target(&["imageloaded"])?),
        (Class::RegistryChange, "13") => {
            let to = field(&["details"], 120).map(|d| format!(" to {d}")).unwrap_or_default();
            format!("{image} set {}{to}", target(&["targetobject"])?)
        }
        (Class::RegistryChange, "12" | "14") => format!("{image} changed {}", target(&["targetobject"])?),
        (_, "17") => format!("{image} created the pipe {}", target(&["pipename"])?),
        (_, "18") => format!("{image} connected to the pipe {}", target(&["pipename"])?),
        _ => return None,
    })
}

/// A part of a WMI event subscription. Sysmon puts its values in quotation marks.
fn subscription(rec: &Rec, id: &str) -> Option<String> {
    let field = |names: &[&str]| {
        let value = rec.field(names)?.trim_matches([' ', '"', '\\']);
        (!value.is_empty() && value != "-").then(|| quote(value, 120))
    };
    let done = field(&["operation"]).map(|o| format!(" {o}")).unwrap_or_default();
    let of = |value: Option<String>, before: &str| value.map(|v| format!("{before}{v}")).unwrap_or_default();
    Some(match id {
        "19" => format!("WMI event filter{done}{}{}", of(field(&["name"]), ": "), of(field(&["query"]), " on ")),
        "20" => format!(
            "WMI event consumer{done}{}{}{}",
            of(field(&["name"]), ": "),
            of(field(&["type"]), " of the type "),
            of(field(&["destination"]), " that runs ")
        ),
        _ => format!(
            "WMI event filter bound to a consumer{done}{}{}",
            of(field(&["filter"]), ": "),
            of(field(&["consumer"]), " to ")
        ),
    })
}

fn powershell(rec: &Rec, id: &str) -> Option<String> {
    let what = match id {
        "4104" => rec.field(&["scriptblocktext"])?,
        "4103" => rec.field(&["payload"]).or_else(|| rec.field(&["message"]))?,
        "800" => rec.field(&["commandline"]).or_else(|| rec.field(&["text"]))?,
        _ => return None,
    };
    (rec.class() == Class::Script).then(|| format!("PowerShell ran {}", quote(what, 200)))
}

#[cfg(test)]
mod tests;
