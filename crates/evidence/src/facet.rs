//! Reads a record in terms that all logs share (facets): who did what, to what, from where. The names of fields
//! decide, so that unknown products can be read.

mod class;
mod keys;
mod makes;
mod names;
mod outcome;
mod roles;
mod when;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::is_message;

pub use keys::{audit_event, job_ids, number, process_keys};
pub use makes::of_honeypot;
pub use names::facet_of;
pub(crate) use names::of as names_of;
pub use roles::{audit_prefix, outer};
pub use when::{epoch, time_rank};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Facet {
    Action,
    Process,
    Command,
    Parent,
    ParentCommand,
    User,
    Host,
    SrcIp,
    DstIp,
    DstPort,
    DomainName,
    Url,
    /// The body of a request.
    Body,
    HttpMethod,
    HttpStatus,
    UserAgent,
    Object,
    Service,
    Outcome,
    PrincipalType,
    Direction,
    Severity,
    BytesOut,
    BytesIn,
    Text,
    Class,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    ProcessStart,
    ProcessEnd,
    ProcessAccess,
    NetworkConnection,
    DnsQuery,
    HttpRequest,
    TlsSession,
    FileCreate,
    FileDelete,
    FileRead,
    RegistryChange,
    ImageLoad,
    Script,
    Authentication,
    LogonFailure,
    AccountChange,
    ApiCall,
    TokenEvent,
    Email,
    KernelModule,
    ServiceChange,
    ScheduledTask,
    PackageOperation,
    ConfigChange,
    Usb,
    Certificate,
    /// An alert of another product: a judgement, not an event.
    Alert,
    Other,
}

#[derive(Debug, Clone, Default)]
pub struct Facets {
    values: BTreeMap<Facet, String>,
    pub class: Option<Class>,
}

const ACTION_MAX: usize = 120;

impl Facets {
    pub fn get(&self, facet: Facet) -> Option<&str> {
        self.values.get(&facet).map(String::as_str)
    }

    pub fn set(&mut self, facet: Facet, value: Option<&str>) {
        match value {
            Some(value) => self.values.insert(facet, value.to_owned()),
            None => self.values.remove(&facet),
        };
    }

    /// Keeps only values that `other` also has.
    pub fn only(&mut self, other: &Self) {
        self.values.retain(|facet, value| *facet == Facet::Text || other.get(*facet) == Some(value.as_str()));
    }

    pub fn field_of(&self, facet: Facet, fields: &BTreeMap<String, String>) -> Option<(String, String)> {
        let wanted = names::of(facet);
        let known = self.get(facet)?;
        let rank = |path: &str| wanted.iter().position(|w| *w == last(path, 1) || *w == last(path, 2));
        // An outcome is stored as one of two words, not as the value of the field.
        let same = |value: &str| facet == Facet::Outcome || value.trim() == known;
        let ranked = fields.iter().filter_map(|(path, value)| Some((rank(path)?, path, value)));
        // Prefer a field of the record to one that was read from its text.
        let inside = |path: &str| {
            path.match_indices('.').any(|(at, _)| path.get(..at).is_some_and(|outer| fields.contains_key(outer)))
        };
        let first = ranked
            .filter(|(.., value)| !value.is_empty() && same(value))
            .min_by_key(|(rank, path, _)| (inside(path), *rank, path.matches('.').count()))?;
        Some((first.1.clone(), first.2.clone()))
    }

    pub fn read(fields: &BTreeMap<String, String>, text: &str) -> Self {
        let mut best: BTreeMap<Facet, ((bool, usize), &str)> = BTreeMap::new();
        let mut paths: Vec<(&String, &String)> = fields.iter().collect();
        paths.sort_by_key(|(path, _)| path.matches('.').count());
        // Process sensors run as the system, and their records name that account beside the actor.
        let watched = text.contains("Microsoft-Windows-Sysmon");
        let writer =
            |path: &str| path.starts_with("winlog.user.") || matches!(last(path, 1).as_str(), "userid" | "accountname");
        paths.retain(|(path, _)| !(watched && writer(path)));
        let above: Vec<(bool, bool)> = paths.iter().map(|(path, _)| (of_parent(path), spoken(path, fields))).collect();
        let names = named(paths.into_iter());
        let heard: Vec<&Named<'_>> =
            names.iter().zip(&above).filter(|(_, (_, spoken))| !spoken).map(|(n, _)| n).collect();
        // Tables of Azure Monitor have the table name in a column.
        let table =
            names.iter().any(|(one, ..)| one == "tenantid") && names.iter().any(|(one, ..)| one == "timegenerated");
        for (facet, wanted) in names::all() {
            let parents = matches!(facet, Facet::Parent | Facet::ParentCommand);
            for ((one, two, value), (above, spoken)) in names.iter().zip(&above) {
                let value = value.trim();
                // The account that a task will run as did not create the task. The client program is not a user.
                let no_user = two.starts_with("principal") || (one == "client" && value.starts_with("SSH-"));
                // The name of a parameter is not the object, and neither is the writer of the record.
                let called = matches!(
                    two.as_str(),
                    "parameters.name" | "extendedproperties.name" | "attributes.name" | "provider.name"
                );
                if *above && !parents || (*facet == Facet::User && no_user) || (*facet == Facet::Object && called) {
                    continue;
                }
                // Windows writes `LOCAL` for a session without an address.
                let nowhere = matches!(*facet, Facet::SrcIp | Facet::DstIp)
                    && matches!(value, "0.0.0.0" | "::" | "0:0:0:0:0:0:0:0" | "LOCAL");
                // The way of collection is not the action.
                if *facet == Facet::Action && (table && one == "type" || two == "input.type") {
                    continue;
                }
                // `system` may be a part of a program, and an agent may be other than a user agent.
                let part = *facet == Facet::Host && value.contains([' ', '\t', ',']);
                if part || *facet == Facet::UserAgent && value.starts_with('{') {
                    continue;
                }
                // A sentence is not the name of an action, and neither is the id of a record.
                let id = value.len() > 6 && value.bytes().all(|b| b.is_ascii_digit());
                let sentence = *facet == Facet::Action && (value.len() > ACTION_MAX || id);
                if !usable(value) || nowhere || sentence {
                    continue;
                }
                let Some(rank) = wanted.iter().position(|w| w == one || w == two) else { continue };
                // Prefer fields of the record to text that the recorded party wrote.
                let rank = (*spoken, rank);
                // The client may add addresses before the last one.
                let later = one == "sourceips";
                if best.get(facet).is_none_or(|(known, _)| rank < *known || later && rank == *known) {
                    best.insert(*facet, (rank, value));
                }
            }
        }
        let stated =
            best.remove(&Facet::Outcome).and_then(|((_, rank), value)| outcome::stated(outcome_field(rank), value));
        let mut values: BTreeMap<Facet, String> =
            best.into_iter().map(|(facet, (_, value))| (facet, value.to_owned())).collect();
        join_arguments(&mut values, &heard);
        // Input in a honeypot. A typed path means the program at that path.
        if let Some(typed) = makes::typed(fields) {
            values.insert(Facet::Command, typed.to_owned());
            if let Some(program) = typed.split_whitespace().next().filter(|word| word.starts_with(['/', '.'])) {
                values.insert(Facet::Process, program.to_owned());
            }
        }
        if let Some(path) = values.get(&Facet::Url).and_then(|url| path_of(url)).map(str::to_owned) {
            values.insert(Facet::Url, path);
        }
        if let Some(object) = identity(fields) {
            values.entry(Facet::Object).or_insert_with(|| object.to_owned());
        }
        let own = named(fields.iter().filter(|(path, _)| roles::outer(path)));
        roles::acting(&mut values, &own);
        roles::ends(&mut values, &own);
        let heard = if above.iter().any(|(_, spoken)| *spoken) {
            let own = fields.iter().filter(|(path, _)| !spoken(path, fields));
            Cow::Owned(own.map(|(path, value)| (path.clone(), value.clone())).collect())
        } else {
            Cow::Borrowed(fields)
        };
        if let Some(outcome) = outcome::audited(&heard).or(stated) {
            values.insert(Facet::Outcome, outcome.to_owned());
        }
        if let Some(prefix) = roles::audit_prefix(fields) {
            let inside = |path: &str| path.strip_prefix(prefix).is_some_and(|rest| !rest.contains('.'));
            let names = named(fields.iter().filter(|(path, _)| inside(path)));
            roles::audited(&mut values, &names, !prefix.is_empty());
        }
        for facet in [Facet::SrcIp, Facet::DstIp] {
            if let Some(plain) = values.get(&facet).and_then(|v| makes::mapped(v).or_else(|| makes::ported(v))) {
                values.insert(facet, plain);
            }
        }
        if let Some(word) = heard.iter().find_map(|(path, n)| makes::graded(path, n)) {
            values.insert(Facet::Severity, word.to_owned());
        }
        values.insert(Facet::Text, unescaped(text, fields));
        let class = class::of(&values, &heard, text);
        Self { values, class: Some(class) }
    }
}

/// The last part of a path, its last two parts, and the value.
type Named<'a> = (String, String, &'a str);

fn named<'a>(fields: impl Iterator<Item = (&'a String, &'a String)>) -> Vec<Named<'a>> {
    fields.map(|(path, value)| (last(path, 1), last(path, 2), value.as_str())).collect()
}

/// True if the field was read from a text that the recorded party may have written, such as a user agent or a
/// user name. Programs write their texts to message fields.
fn spoken(path: &str, fields: &BTreeMap<String, String>) -> bool {
    let mut above = path;
    while let Some((outer, _)) = above.rsplit_once('.') {
        if fields.get(outer).is_some_and(|text| chosen(outer, text)) {
            return true;
        }
        above = outer;
    }
    false
}

/// True if the recorded party may have written the fields that `text`, the value of the field `outer`, contains.
pub(crate) fn chosen(outer: &str, text: &str) -> bool {
    /// Parts of the names of fields that a client fills. Collectors store records of other products in fields of
    /// any name.
    const CHOSEN: &[&str] =
        &["agent", "url", "uri", "query", "refer", "cookie", "header", "username", "commandline", "cmdline"];
    const CLIENTS: &[&str] = &["user", "login", "acct", "account", "accountname", "command", "cmd", "path"];
    let text = text.trim();
    let whole = [('{', '}'), ('[', ']'), ('<', '>')]
        .iter()
        .any(|(open, close)| text.starts_with(*open) && text.ends_with(*close));
    let by_client = || {
        let name = last(outer, 1);
        CLIENTS.contains(&name.as_str()) || CHOSEN.iter().any(|part| name.contains(part))
    };
    (!whole || by_client()) && !is_message(outer)
}

pub(crate) fn of_parent(path: &str) -> bool {
    let mut parts = path.split('.').rev().skip(1);
    parts.any(|part| matches!(part.to_ascii_lowercase().as_str(), "parent" | "ancestors" | "parent_process"))
}

/// True unless the value is empty or a placeholder that only the recording host could fill in.
fn usable(value: &str) -> bool {
    let unfilled = value.strip_prefix("%%").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    // Linux audit writes `(null)`.
    !(value.is_empty() || value == "-" || value == "null" || value.starts_with("(null") || unfilled)
}

/// The whole record as text for conditions, as written and with escapes undone. For tables and web logs, each
/// value has its name in front, as in JSON.
fn unescaped(text: &str, fields: &BTreeMap<String, String>) -> String {
    const CELL_MAX: usize = 512;
    let mut out = text.to_owned();
    for value in fields.values().filter(|v| v.len() > 8 && !text.contains(v.as_str())) {
        out.push('\n');
        out.push_str(value);
    }
    let in_text = |path: &&String| text.contains(path.rsplit('.').next().unwrap_or_default());
    let top = || fields.iter().filter(|(path, _)| !path.contains('.'));
    if top().count() >= 4 && top().filter(|(path, _)| in_text(path)).count() * 4 < top().count() {
        for (path, value) in top().filter(|(_, value)| !value.is_empty() && value.len() <= CELL_MAX) {
            out.push('\n');
            out.push_str(path);
            out.push('=');
            out.push_str(value);
        }
    }
    out
}

/// For sensors that store program and arguments separately.
fn join_arguments(values: &mut BTreeMap<Facet, String>, names: &[&Named<'_>]) {
    let find = |wanted: &str| names.iter().find(|(_, two, _)| two == wanted).map(|(_, _, value)| *value);
    if let (Some(binary), Some(arguments)) = (find("process.binary"), find("process.arguments")) {
        values.insert(Facet::Command, format!("{binary} {arguments}"));
    }
    if let (Some(binary), Some(arguments)) = (find("parent.binary"), find("parent.arguments")) {
        values.insert(Facet::ParentCommand, format!("{binary} {arguments}"));
    }
}

/// The path in a request line: `GET /a HTTP/1.1`.
fn path_of(request: &str) -> Option<&str> {
    let (_, rest) = request.split_once(' ').filter(|(method, _)| method.bytes().all(|b| b.is_ascii_uppercase()))?;
    let (path, version) = rest.rsplit_once(' ')?;
    (version.starts_with("HTTP/") && !path.is_empty()).then_some(path)
}

/// The object of an Exchange command.
fn identity(fields: &BTreeMap<String, String>) -> Option<&str> {
    let named = |(path, name): &(&String, &String)| last(path, 2) == "parameters.name" && *name == "Identity";
    let (path, _) = fields.iter().find(named)?;
    let value = fields.get(&format!("{}.Value", path.rsplit_once('.')?.0))?;
    (!value.is_empty()).then_some(value)
}

fn outcome_field(rank: usize) -> &'static str {
    names::of(Facet::Outcome).get(rank).copied().unwrap_or_default()
}

pub fn event_id(fields: &BTreeMap<String, String>) -> Option<&str> {
    let is = |path: &String, wanted: &str, n| last(path, n) == wanted && !spoken(path, fields);
    let named = |wanted: &str, n| fields.iter().find(|(path, _)| is(path, wanted, n)).map(|(_, id)| id.as_str());
    let local = || {
        let is_event_id = |path: &str| path.rsplit('.').next().is_some_and(|name| EVENT_IDS.contains(&name.trim()));
        fields
            .iter()
            .find(|(path, id)| is_event_id(path) && !spoken(path, fields) && id.bytes().all(|b| b.is_ascii_digit()))
            .map(|(_, id)| id.as_str())
    };
    named("eventid", 1).or_else(|| named("eventid.text", 2)).or_else(|| named("event.code", 2)).or_else(local)
}

/// The event id in Windows of other languages.
const EVENT_IDS: [&str; 11] = [
    "Ereignis-ID",
    "Ereignis ID",
    "ID de l’événement",
    "ID de l'événement",
    "ID d’événement",
    "ID evento",
    "Gebeurtenis-ID",
    "Код события",
    "イベント ID",
    "事件 ID",
    "이벤트 ID",
];

/// The last `n` parts of a path, without list positions, in lower case, letters and digits only.
pub fn last(path: &str, n: usize) -> String {
    let parts: Vec<String> = path
        .split('.')
        .filter(|p| !p.is_empty() && !p.chars().all(|c| c.is_ascii_digit()))
        .map(|p| p.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect())
        .collect();
    parts.get(parts.len().saturating_sub(n)..).unwrap_or(&parts).join(".")
}

#[cfg(test)]
mod tests;
