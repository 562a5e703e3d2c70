//! Sentences about a record, from its own values.

use casebook_protocol::{Bearing, one_line};

use super::behaviour::Behaviour;
use super::rec::Rec;
use casebook_evidence::facet::audit_prefix;
use casebook_evidence::facet::{Class, Facet, last};

mod windows;

/// From this many bytes on, a claim gives the number of bytes sent.
const SHOWN_BYTES: u64 = 100_000;

/// Records with the same text repeat an activity.
pub(super) fn kind_of_activity(rec: &Rec) -> String {
    let facet = |f: Facet| rec.facets.get(f).unwrap_or("").to_ascii_lowercase();
    let shape = |text: String| -> String {
        let mut out = String::new();
        for c in text.chars() {
            let c = if c.is_ascii_digit() { '#' } else { c };
            if !(c == '#' && out.ends_with('#')) {
                out.push(c);
            }
        }
        out
    };
    let what = match rec.class() {
        Class::ProcessStart => format!("{}|{}", facet(Facet::Process), shape(facet(Facet::Command))),
        Class::NetworkConnection | Class::TlsSession => {
            format!("{}|{}|{}", facet(Facet::SrcIp), facet(Facet::DstIp), facet(Facet::DstPort))
        }
        Class::HttpRequest => format!(
            "{}|{}|{}|{}",
            facet(Facet::DstIp),
            facet(Facet::HttpMethod),
            facet(Facet::Url),
            facet(Facet::HttpStatus)
        ),
        Class::DnsQuery => facet(Facet::DomainName),
        Class::Other if rec.facets.get(Facet::Action).is_none() => shape(rec.raw.chars().take(120).collect()),
        _ => format!("{}|{}|{}", facet(Facet::Action), facet(Facet::Object), facet(Facet::Outcome)),
    };
    format!("{}|{:?}|{}|{what}", rec.source, rec.class(), facet(Facet::User))
}

/// Records with the same text are of one kind, with different details.
pub(super) fn family(rec: &Rec) -> String {
    let facet = |f: Facet| rec.facets.get(f).unwrap_or("").to_ascii_lowercase();
    let what = match rec.class() {
        Class::ProcessStart => format!("{}|{}", facet(Facet::Process), facet(Facet::Parent)),
        Class::HttpRequest => {
            let shown = rec.shows.iter().max_by_key(|b| b.weight).map_or("", |b| b.id.as_str());
            format!("{}|{}|{}|{shown}", facet(Facet::SrcIp), facet(Facet::DstIp), facet(Facet::HttpMethod))
        }
        Class::FileCreate
        | Class::FileDelete
        | Class::ProcessAccess
        | Class::ImageLoad
        | Class::RegistryChange
        | Class::FileRead => facet(Facet::Process),
        Class::DnsQuery => facet(Facet::SrcIp),
        // Harmless reads of settings are one kind for each service.
        Class::ApiCall if !rec.shows.iter().any(|b| b.bearing == Bearing::Incriminating) => {
            let action = facet(Facet::Action);
            let looks = ["describe", "list", "getbucket", "head"].iter().any(|verb| action.starts_with(verb));
            format!("{}|{}", facet(Facet::Service), if looks { "looks" } else { &action })
        }
        Class::Other if rec.is_sentence() => words(rec),
        _ => return kind_of_activity(rec),
    };
    format!("{}|{:?}|{}|{what}", rec.source, rec.class(), facet(Facet::User))
}

/// The kind of activity, of any subject: what the record shows, or else its program or action.
pub(super) fn kind_of_any(rec: &Rec) -> String {
    let shown: Vec<&str> = rec.shows.iter().map(|b| b.id.as_str()).collect();
    let what = [Facet::Process, Facet::Action].into_iter().find_map(|f| rec.facets.get(f)).unwrap_or_default();
    format!("{}|{:?}|{}|{}", rec.source, rec.class(), shown.join(" "), if shown.is_empty() { what } else { "" })
}

/// The words of a sentence without the parts that vary.
pub(super) fn words(rec: &Rec) -> String {
    let text = rec.field(&["message"]).unwrap_or(&rec.raw);
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '[' | ']' | ',' | ';' | '='));
    let words = words.filter(|word| !word.is_empty() && !word.contains(|c: char| c.is_ascii_digit()));
    words.take(24).collect::<Vec<_>>().join(" ").to_lowercase()
}

/// What happened, and what it means. `supported` says whether the evidence states everything in a text. Parts
/// without support are left out.
pub(super) fn claim(
    main: &Rec,
    others: &[&Rec],
    shown: Option<&Behaviour>,
    aggregate: bool,
    supported: &dyn Fn(&str) -> bool,
) -> String {
    let mut text = sentence(main);
    // Some sensors store program and arguments separately, so the command does not occur as one text.
    if !supported(&text)
        && main.class() == Class::ProcessStart
        && let Some(what) = apart(main)
    {
        text = started(main, what);
    }
    let answers = answers(main, others);
    if answers.len() > 1 && supported(&text) {
        text = format!("{text}, then {}", answers.get(1..).unwrap_or_default().join(", "));
    }
    if !supported(&text) || text.is_empty() {
        let raw = quote(&main.raw, 160);
        text = format!("recorded: {raw}");
        if !supported(&text) {
            "a record of the alerted activity".clone_into(&mut text);
        }
    }
    if aggregate {
        text = format!("over the period that the record covers, {text}");
    }
    let mut seen = vec![label(main)];
    for other in others {
        let label = label(other);
        if !label.is_empty() && !seen.contains(&label) && seen.len() < 4 {
            let more = format!("{text}; with it {label}");
            if supported(&more) && more.len() <= 600 {
                text = more;
            }
            seen.push(label);
        }
    }
    if let Some(behaviour) = shown {
        let more = format!("{text}: {}", behaviour.title);
        if supported(&more) {
            text = more;
        }
    }
    capital(&text)
}

fn answers(main: &Rec, others: &[&Rec]) -> Vec<String> {
    let same = |rec: &&Rec| {
        [Facet::HttpMethod, Facet::Url, Facet::DstIp].iter().all(|f| rec.facets.get(*f) == main.facets.get(*f))
    };
    let mut all: Vec<String> = Vec::new();
    if main.class() == Class::HttpRequest {
        for rec in std::iter::once(main).chain(others.iter().copied().filter(same)) {
            all.extend(named(rec, Facet::HttpStatus, 20).filter(|status| !all.contains(status)));
        }
    }
    all
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Puts a value in backquotes, on one line and without backquotes of its own. A cut value ends with `…`.
fn quote(value: &str, max: usize) -> String {
    let clean = value.split('`').next().unwrap_or_default();
    let line = one_line(clean, max);
    format!("`{line}`")
}

fn named(rec: &Rec, facet: Facet, max: usize) -> Option<String> {
    rec.facets.get(facet).filter(|v| !v.is_empty()).map(|v| quote(v, max))
}

fn label(rec: &Rec) -> String {
    if !matches!(rec.class(), Class::ProcessStart | Class::NetworkConnection)
        && let Some(words) = windows::words(rec)
    {
        return named(rec, Facet::Object, 120).map_or_else(|| words.to_owned(), |object| format!("{words} {object}"));
    }
    let order: &[Facet] = match rec.class() {
        Class::ProcessStart => &[Facet::Command, Facet::Process],
        Class::NetworkConnection | Class::TlsSession => &[Facet::DstIp],
        Class::HttpRequest => &[Facet::Url],
        Class::DnsQuery => &[Facet::DomainName],
        _ => &[Facet::Action, Facet::Object, Facet::Command],
    };
    // An event number says nothing beside another record.
    let number = |f: Facet| rec.facets.get(f).is_some_and(|v| v.bytes().all(|b| b.is_ascii_digit()));
    order.iter().filter(|f| !number(**f)).chain(order).find_map(|f| named(rec, *f, 120)).unwrap_or_default()
}

/// The record says that the action was refused, so the command did not run.
fn denied(rec: &Rec) -> bool {
    const SO: &[&str] = &["not in sudoers", "not allowed", "incorrect password", "password is required", "denied"];
    let said = rec.field(&["outcome"]).map(str::to_ascii_lowercase);
    // Linux audit also records refused starts.
    let refused = rec.class() == Class::ProcessStart && audit_prefix(&rec.fields).is_some();
    said.is_some_and(|outcome| SO.iter().any(|so| outcome.contains(so)))
        || refused && rec.facets.get(Facet::Outcome) == Some("failure")
}

/// The program and the arguments, each as written.
fn apart(rec: &Rec) -> Option<String> {
    let program = named(rec, Facet::Process, 160)?;
    let own = |path: &&String| last(path, 2) == "process.arguments";
    let (_, arguments) = rec.fields.iter().find(|(path, _)| own(path))?;
    Some(if arguments.is_empty() { program } else { format!("{program} with {}", quote(arguments, 160)) })
}

fn started(rec: &Rec, what: String) -> String {
    let get = |facet| named(rec, facet, 160);
    let above = get(Facet::Parent).or_else(|| get(Facet::ParentCommand));
    let parent = above.map_or_else(String::new, |p| format!("{p} started "));
    let ran = match (denied(rec), parent.is_empty()) {
        (true, true) => "tried to run ",
        (false, true) => "ran ",
        (_, false) => "",
    };
    let by = match (get(Facet::User), rec.field(&["targetuser"])) {
        (Some(user), Some(other)) => format!(" by {user} as {}", quote(other, 160)),
        // The account that signed in, not the one it changed to.
        (Some(user), _) if audit_prefix(&rec.fields).is_some() => format!(" by {user}"),
        (user, _) => user.map(|u| format!(" as {u}")).unwrap_or_default(),
    };
    let on = get(Facet::Host).map(|h| format!(" on {h}")).unwrap_or_default();
    let denied = if denied(rec) { ", which was denied" } else { "" };
    format!("{parent}{ran}{what}{by}{on}{denied}")
}

fn sentence(rec: &Rec) -> String {
    if let Some(text) = windows::sentence(rec) {
        return text;
    }
    let get = |facet| named(rec, facet, 160);
    let by = get(Facet::User).map(|u| format!(" as {u}")).unwrap_or_default();
    let wire =
        matches!(rec.class(), Class::NetworkConnection | Class::DnsQuery | Class::HttpRequest | Class::TlsSession)
            && rec.facets.get(Facet::Process).is_none();
    let on = get(Facet::Host).filter(|_| !wire).map(|h| format!(" on {h}")).unwrap_or_default();
    let from = get(Facet::SrcIp).map(|a| format!(" from {a}")).unwrap_or_default();
    let to = match (get(Facet::DstIp), get(Facet::DstPort)) {
        (Some(ip), Some(port)) => format!(" to {ip} port {port}"),
        (Some(ip), None) => format!(" to {ip}"),
        _ => String::new(),
    };
    let object = get(Facet::Object);
    let action = get(Facet::Action);
    // If the event name is the only value, use it once.
    let on_object = object.as_ref().filter(|o| action.as_ref() != Some(o));
    let on_object = on_object.map(|o| format!(" on {o}")).unwrap_or_default();
    let outcome = match rec.facets.get(Facet::Outcome) {
        Some("failure") => ", which failed",
        _ => "",
    };
    match rec.class() {
        Class::ProcessStart => started(rec, get(Facet::Command).or_else(|| get(Facet::Process)).unwrap_or_default()),
        Class::NetworkConnection => {
            // A capture also has the packets of the response, so a packet does not show who connected.
            let what = if rec.field(&["tcpflags"]).is_some() { "packet" } else { "connection" };
            let much = get(Facet::BytesOut).filter(|_| super::compose::sent(rec) >= SHOWN_BYTES);
            let much = much.map(|bytes| format!(", sending {bytes} bytes")).unwrap_or_default();
            format!("{}{what}{from}{to}{on}{much}", get(Facet::Process).map(|p| format!("{p}: ")).unwrap_or_default())
        }
        Class::Alert => {
            let of = named(rec, Facet::Service, 80).map(|p| format!(" of {p}")).unwrap_or_default();
            let about = get(Facet::User).map(|u| format!(" about {u}")).unwrap_or_default();
            format!("alert {}{of}{about}{from}{to}{on}", action.unwrap_or_default())
        }
        Class::TlsSession => format!("TLS session{from}{to}"),
        Class::Certificate => {
            let part = |wanted: &str| {
                let named = |path: &str| {
                    last(path, 2) == format!("certificate.{wanted}") || last(path, 1) == format!("certificate{wanted}")
                };
                rec.fields.iter().find(|(path, _)| named(path)).map(|(_, value)| quote(value, 120))
            };
            let Some(subject) = part("subject") else { return format!("recorded: {}", quote(&rec.raw, 200)) };
            let issuer = part("issuer").map(|issuer| format!(" issued by {issuer}")).unwrap_or_default();
            format!("certificate of {subject}{issuer}")
        }
        Class::HttpRequest => {
            let what = [get(Facet::HttpMethod), get(Facet::Url)].into_iter().flatten().collect::<Vec<_>>().join(" ");
            let status = get(Facet::HttpStatus).map(|s| format!(", answered {s}")).unwrap_or_default();
            if what.is_empty() {
                let kind = rec.field(&["respmimetypes"]).filter(|kind| *kind != "-");
                let Some(kind) = kind.filter(|_| !to.is_empty()) else {
                    return format!("recorded: {}", quote(&rec.raw, 200));
                };
                return format!("HTTP request{from}{to}{status} with {}", quote(kind, 80));
            }
            format!("HTTP request {what}{from}{to}{status}")
        }
        Class::DnsQuery if get(Facet::DomainName).is_some() => {
            format!("DNS query for {}{from}", get(Facet::DomainName).unwrap_or_default())
        }
        Class::ApiCall
        | Class::TokenEvent
        | Class::AccountChange
        | Class::Authentication
        | Class::LogonFailure
        | Class::KernelModule
            if action.is_some() =>
        {
            let agent = get(Facet::UserAgent).map(|a| format!(" with {a}")).unwrap_or_default();
            // Kubernetes has the kind of an object beside its name.
            let kind =
                rec.fields.iter().find(|(path, _)| last(path, 2) == "objectref.resource").map(|(_, v)| quote(v, 80));
            let kind = kind.filter(|kind| object.as_ref() != Some(kind)).map(|kind| format!(" of {kind}"));
            let kind = kind.unwrap_or_default();
            format!("{}{kind}{on_object}{by}{from}{on}{agent}{outcome}", action.unwrap_or_default())
        }
        // Network sensors see a sign-in but not always the account.
        Class::Authentication | Class::LogonFailure if get(Facet::SrcIp).is_some() && !to.is_empty() => {
            let of = get(Facet::User).map(|u| format!(" of {u}")).unwrap_or_default();
            let outcome = if rec.facets.get(Facet::Outcome) == Some("success") { ", which succeeded" } else { outcome };
            format!("sign-in{of}{from}{to}{outcome}")
        }
        Class::FileCreate | Class::FileDelete => format!(
            "{} {} {}{by}{on}",
            get(Facet::Process).unwrap_or_else(|| "a process".into()),
            if rec.class() == Class::FileCreate { "wrote" } else { "removed" },
            object.unwrap_or_default()
        ),
        _ if rec.fields.len() <= 3
            || action.is_none()
            || rec.facets.get(Facet::Action).is_some_and(|a| a.chars().all(|c| c.is_ascii_digit())) =>
        {
            let message = rec.field(&["message", "msg", "payloadlatin1", "syslogmessage", "description", "fulllog"]);
            if message.is_none()
                && let Some(event) = windows::unknown(rec)
            {
                return format!("{event}{on}");
            }
            format!("recorded{on}: {}", quote(message.unwrap_or(&rec.raw), 200))
        }
        _ => format!("{}{on_object}{by}{from}{to}{on}{outcome}", action.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests;
