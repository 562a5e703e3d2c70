//! Windows events in messages of Plaso: `[4732 / 0x127c] Provider identifier: {…} Source Name: … Strings: ['…'
//! '…'] Hostname: … Message string: …`.

use std::collections::HashSet;

use super::message;

type Fields = Vec<(String, String)>;

/// None for other text. The strings of an event get names by their position, which the provider defines. Other
/// fields come from the message text.
pub(crate) fn event(text: &str) -> Option<Fields> {
    let (number, rest) = text.strip_prefix('[')?.split_once(']')?;
    let (id, code) = number.split_once(" / ")?;
    if id.is_empty() || !id.bytes().all(|b| b.is_ascii_digit()) || !code.starts_with("0x") {
        return None;
    }
    // The recorded party may have written labels into the strings, so read the text before them first.
    let (before, after) = rest.split_once("Strings: [").unwrap_or((rest, rest));
    let source = between(before, "Source Name: ")?;
    let mut out: Fields = vec![("EventID".into(), id.to_owned()), ("ProviderName".into(), source.to_owned())];
    // Older versions have the message before the strings, and it may contain a list itself.
    if before.contains("Message string: ") && before.len() < rest.len() {
        return Some(out);
    }
    let (strings, after) = if before.len() < rest.len() { items(after) } else { (Vec::new(), after) };
    let (head, message) = after.split_once("Message string: ").unwrap_or((after, ""));
    for (label, name) in
        [("Hostname: ", "Computer"), ("Computer Name: ", "Computer"), ("Record Number: ", "RecordNumber")]
    {
        out.extend(between(head, label).map(|value| (name.to_owned(), value.to_owned())));
    }
    let names = names_of(source, id);
    let named = names.iter().zip(&strings).filter(|(_, value)| !value.is_empty() && value.as_str() != "-");
    out.extend(named.map(|(name, value)| ((*name).to_owned(), value.clone())));
    let known: HashSet<String> = out.iter().map(|(name, _)| name.clone()).collect();
    let more = message::fields(&lines(message)).into_iter();
    out.extend(more.filter(|(name, value)| !value.is_empty() && value != "-" && !known.contains(name)));
    Some(out)
}

fn between<'t>(text: &'t str, label: &str) -> Option<&'t str> {
    const LABELS: &[&str] = &[
        "Message string:",
        "Strings:",
        "Hostname:",
        "Computer Name:",
        "Record Number:",
        "Event Level:",
        "Event Version:",
        "User:",
    ];
    let (_, rest) = text.split_once(label)?;
    let end = LABELS.iter().filter_map(|next| rest.find(&format!(" {next}"))).min().unwrap_or(rest.len());
    rest.get(..end).map(str::trim).filter(|value| !value.is_empty())
}

fn items(text: &str) -> (Vec<String>, &str) {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        let mut chars = rest.char_indices();
        let quote = match chars.next() {
            Some((_, quote @ ('\'' | '"'))) => quote,
            Some((_, ']')) => return (found, rest.get(1..).unwrap_or_default()),
            _ => return (found, rest),
        };
        let (mut item, mut escaped, mut end) = (String::new(), false, None);
        for (at, c) in chars {
            match (escaped, c) {
                (true, 'n') => item.push('\n'),
                (true, 'r') => {}
                (true, 't') => item.push('\t'),
                (true, c) => item.push(c),
                (false, '\\') => {}
                (false, c) if c == quote => {
                    end = Some(at + c.len_utf8());
                    break;
                }
                (false, c) => item.push(c),
            }
            escaped = !escaped && c == '\\';
        }
        found.push(item);
        match end.and_then(|end| rest.get(end..)) {
            Some(after) => rest = after,
            None => return (found, ""),
        }
    }
}

/// The message with real line breaks. The text has `\n` and `\t` as escapes, but paths also contain backslashes.
fn lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let next = from.as_bytes().get(2).copied();
        let begins = next.is_none_or(|b| b == b'\\' || b.is_ascii_uppercase() || b.is_ascii_digit() || b == b' ');
        // A value follows the colon of a label; `C:` is not a label.
        let word = |text: &str| text.bytes().rev().take_while(|b| b.is_ascii_alphanumeric() || *b == b')').count();
        let label = out.strip_suffix(':').is_some_and(|before| word(before) >= 2);
        let taken = match from.as_bytes().get(1) {
            Some(b'n') if begins => Some('\n'),
            Some(b't') if label || out.ends_with(['\n', '\t']) => Some('\t'),
            Some(b'r') if from.get(2..4) == Some("\\n") => Some('\r'),
            _ => None,
        };
        out.push(taken.unwrap_or('\\'));
        rest = from.get(if taken.is_some() { 2 } else { 1 }..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

const SUBJECT: &[&str] = &["SubjectUserSid", "SubjectUserName", "SubjectDomainName", "SubjectLogonId"];
const TARGET: &[&str] = &["TargetUserName", "TargetDomainName", "TargetSid"];

/// The strings of important events, in the order of the provider's manifest.
const STRINGS: &[(&[&str], &[&[&str]])] = &[
    (&["4616"], &[SUBJECT, &["PreviousTime", "NewTime", "ProcessId", "ProcessName"]]),
    (
        &["4624"],
        &[
            SUBJECT,
            &["TargetUserSid", "TargetUserName", "TargetDomainName", "TargetLogonId", "LogonType", "LogonProcessName"],
            &["AuthenticationPackageName", "WorkstationName", "LogonGuid", "TransmittedServices", "LmPackageName"],
            &["KeyLength", "ProcessId", "ProcessName", "IpAddress", "IpPort"],
        ],
    ),
    (
        &["4625"],
        &[
            SUBJECT,
            &["TargetUserSid", "TargetUserName", "TargetDomainName", "Status", "FailureReason", "SubStatus"],
            &["LogonType", "LogonProcessName", "AuthenticationPackageName", "WorkstationName", "TransmittedServices"],
            &["LmPackageName", "KeyLength", "ProcessId", "ProcessName", "IpAddress", "IpPort"],
        ],
    ),
    (&["4634", "4647"], &[&["TargetUserSid", "TargetUserName", "TargetDomainName", "TargetLogonId", "LogonType"]]),
    (
        &["4648"],
        &[
            SUBJECT,
            &["LogonGuid", "TargetUserName", "TargetDomainName", "TargetLogonGuid", "TargetServerName", "TargetInfo"],
            &["ProcessId", "ProcessName", "IpAddress", "IpPort"],
        ],
    ),
    (&["4672"], &[SUBJECT, &["PrivilegeList"]]),
    (
        &["4688"],
        &[
            SUBJECT,
            &["NewProcessId", "NewProcessName", "TokenElevationType", "ProcessId", "CommandLine", "TargetUserSid"],
            &["TargetUserName", "TargetDomainName", "TargetLogonId", "ParentProcessName"],
        ],
    ),
    (&["4697"], &[SUBJECT, &["ServiceName", "ServiceFileName", "ServiceType", "ServiceStartType", "ServiceAccount"]]),
    (&["4698", "4699", "4700", "4701", "4702"], &[SUBJECT, &["TaskName", "TaskContent"]]),
    (&["4720", "4722", "4723", "4724", "4725", "4726", "4740"], &[TARGET, SUBJECT]),
    (&["4728", "4729", "4732", "4733", "4756", "4757"], &[&["MemberName", "MemberSid"], TARGET, SUBJECT]),
    (&["4738"], &[&["Dummy"], TARGET, SUBJECT]),
    (
        &["4768"],
        &[
            TARGET,
            &["ServiceName", "ServiceSid", "TicketOptions", "Status", "TicketEncryptionType", "PreAuthType"],
            &["IpAddress", "IpPort"],
        ],
    ),
    (
        &["4769"],
        &[
            &["TargetUserName", "TargetDomainName", "ServiceName", "ServiceSid", "TicketOptions"],
            &["TicketEncryptionType", "IpAddress", "IpPort", "Status"],
        ],
    ),
    (&["4776"], &[&["PackageName", "TargetUserName", "Workstation", "Status"]]),
    (&["4781"], &[&["OldTargetUserName", "NewTargetUserName", "TargetDomainName", "TargetSid"], SUBJECT]),
];
const SERVICES: &[(&[&str], &[&[&str]])] =
    &[(&["7045"], &[&["ServiceName", "ImagePath", "ServiceType", "StartType", "AccountName"]])];
const LOGS: &[(&[&str], &[&[&str]])] =
    &[(&["1102"], &[SUBJECT]), (&["104"], &[&["SubjectUserName", "SubjectDomainName", "Channel"]])];

/// The string names of an event. Event numbers have a meaning only within a provider.
fn names_of(source: &str, id: &str) -> Vec<&'static str> {
    let table = match source {
        "Microsoft-Windows-Security-Auditing" => STRINGS,
        "Service Control Manager" => SERVICES,
        "Microsoft-Windows-Eventlog" => LOGS,
        _ => return Vec::new(),
    };
    let parts = table.iter().find(|(ids, _)| ids.contains(&id)).map(|(_, parts)| *parts).unwrap_or_default();
    parts.iter().flat_map(|part| part.iter().copied()).collect()
}
