//! The message text of Windows events: `Key: value` lines under headings.

use super::payload::FIELDS_MAX;

/// Empty if there are fewer than three pairs. A heading such as `Details:` becomes the first part of the names
/// below it. The acting and the affected account get the field names of the original event.
pub(crate) fn fields(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut heading: Option<String> = None;
    let mut roles = Roles::default();
    // The audit of SQL Server writes `server_principal_name:sa`, followed by the statement.
    let audit = text.starts_with("audit_schema_version:");
    for line in text.split('\n').map(|l| l.trim_end_matches('\r')) {
        if found.len() >= FIELDS_MAX {
            break;
        }
        if line.trim().is_empty() {
            continue;
        }
        let indented = line.starts_with(['\t', ' ']);
        if !indented {
            heading = None;
        }
        if let Some(said) = line.trim().strip_prefix("statement:").filter(|_| audit) {
            found.push(("statement".to_owned(), said.to_owned()));
            break;
        }
        let Some((key, value)) = pair(line.trim(), audit) else {
            roles.sentence(line);
            continue;
        };
        if value.is_empty() && !indented {
            heading = Some(key.to_owned());
            roles.heading(key);
            continue;
        }
        roles.pair(key);
        let name = match &heading {
            Some(above) if indented => {
                let field = roles.known.then(|| field_of(above, key)).flatten();
                field.map_or_else(|| format!("{above}.{key}"), str::to_owned)
            }
            _ => key.to_owned(),
        };
        found.push((name, value.to_owned()));
    }
    if found.len() >= 3 { found } else { Vec::new() }
}

/// Whether headings are those of the Security log. The recorded party may have written text with headings, so
/// the message must begin as such a message does, each heading counts once, and none counts after a command or a
/// task.
#[derive(Default)]
struct Roles {
    lines: usize,
    seen: Vec<String>,
    known: bool,
    over: bool,
}

impl Roles {
    fn sentence(&mut self, line: &str) {
        self.lines += 1;
        self.over |= self.seen.is_empty() && (self.lines > 1 || !line.trim_end().ends_with('.'));
    }

    fn heading(&mut self, key: &str) {
        let first = self.seen.is_empty();
        let begins = first && self.lines == 1 && matches!(key, "Subject" | "Creator Subject");
        let again = self.seen.iter().any(|seen| seen == key);
        self.over |= first && !begins || again;
        self.known = !self.over;
        self.seen.push(key.to_owned());
    }

    fn pair(&mut self, key: &str) {
        self.lines += 1;
        self.over |= matches!(
            key,
            "Process Command Line"
                | "Task Content"
                | "Task New Content"
                | "Service File Name"
                | "Old Value"
                | "New Value"
                | "Value"
        );
        self.known &= !self.over;
    }
}

/// The event field for `key` under `heading`. The heading decides if the acting and the affected account have
/// the same key.
fn field_of(heading: &str, key: &str) -> Option<&'static str> {
    const ACTED_ON: &[&str] = &[
        "New Logon",
        "New Account",
        "Target Account",
        "Target Subject",
        "Account Whose Credentials Were Used",
        "Account For Which Logon Failed",
        "Account That Was Locked Out",
        "Credentials Which Were Replayed",
    ];
    Some(match (heading, key) {
        ("Subject", "Security ID") => "SubjectUserSid",
        ("Subject", "Account Name") => "SubjectUserName",
        ("Subject", "Account Domain") => "SubjectDomainName",
        ("Subject", "Logon ID") => "SubjectLogonId",
        ("Member", "Security ID") => "MemberSid",
        ("Member", "Account Name") => "MemberName",
        ("Group", "Security ID") => "TargetSid",
        ("Group", "Group Name" | "Account Name") => "TargetUserName",
        (heading, key) if ACTED_ON.contains(&heading) => match key {
            "Security ID" => "TargetUserSid",
            "Account Name" => "TargetUserName",
            "Account Domain" => "TargetDomainName",
            "Logon ID" => "TargetLogonId",
            _ => return None,
        },
        ("Network Information", "Source Network Address" | "Network Address" | "Client Address") => "IpAddress",
        ("Process Information", "Creator Process Name") => "ParentProcessName",
        ("Process Information", "Name" | "Caller Process Name") => "ProcessName",
        _ => return None,
    })
}

/// `Key: value` or `Key=value`; a key has only a few words.
fn pair(line: &str, audit: bool) -> Option<(&str, &str)> {
    let colon = line.find(':');
    let equals = line.find('=');
    let at = match (colon, equals) {
        (Some(c), Some(e)) => c.min(e),
        (Some(at), None) | (None, Some(at)) => at,
        (None, None) => return None,
    };
    let key = line.get(..at)?.trim_end();
    let value = line.get(at + 1..)?;
    let spaced = value.is_empty() || value.starts_with([' ', '\t']) || Some(at) == equals;
    let words = key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b' ' | b'_' | b'-' | b'/' | b'(' | b')'));
    let begins = key.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
    let short = key.len() <= 48 && key.split(' ').count() <= 5;
    let snake =
        audit && key.contains('_') && key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    ((spaced || snake) && words && begins && short).then(|| (key, bare(value.trim())))
}

/// Removes the marks of a WMI value such as `"value";`.
fn bare(value: &str) -> &str {
    value.strip_suffix(';').and_then(|v| v.strip_prefix('"')?.strip_suffix('"')).unwrap_or(value)
}
