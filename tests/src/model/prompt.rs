//! Parses our prompts: the kind of task in the first line of the system prompt, sections in the first message,
//! and the first line of tool results.

use casebook_protocol::TaskKind;
use serde_json::Value;

use crate::model::Request;
use crate::model::request::Turn;

/// The kind of task in a system prompt that begins with `Casebook task: plan (prompt plan 1)`.
pub fn kind(system: &str) -> Option<TaskKind> {
    let rest = system.lines().next()?.strip_prefix("Casebook task: ")?;
    let (name, prompt) = rest.split_once(" (prompt ")?;
    let version = prompt.strip_suffix(')')?.strip_prefix(name)?.strip_prefix(' ')?;
    version.parse::<u32>().ok()?;
    TaskKind::ALL.into_iter().find(|kind| kind.name() == name)
}

/// The sections of a text: `<name>` and `</name>` on separate lines. Other text is ignored.
pub fn sections(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((line, after)) = next_line(rest) {
        rest = after;
        let Some(name) = line.strip_prefix('<').and_then(|l| l.strip_suffix('>')).filter(|name| is_name(name)) else {
            continue;
        };
        if let Some((content, after)) = up_to(after, &format!("</{name}>")) {
            found.push((name, content));
            rest = after;
        }
    }
    found
}

pub fn task_sections(request: &Request) -> Vec<(&str, &str)> {
    request.task_parts().iter().flat_map(|part| sections(part)).collect()
}

/// The text of a section.
pub fn section<'r>(request: &'r Request, name: &str) -> Option<&'r str> {
    task_sections(request).into_iter().find(|(found, _)| *found == name).map(|(_, content)| content)
}

pub fn json_section(request: &Request, name: &str) -> Option<Value> {
    serde_json::from_str(section(request, name)?).ok()
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-'))
}

fn next_line(text: &str) -> Option<(&str, &str)> {
    if text.is_empty() { None } else { Some(text.split_once('\n').unwrap_or((text, ""))) }
}

fn up_to<'a>(text: &'a str, end: &str) -> Option<(&'a str, &'a str)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end_matches('\n') == end {
            let content = text.get(..at)?;
            return Some((content.strip_suffix('\n').unwrap_or(content), text.get(at + line.len()..)?));
        }
        at += line.len();
    }
    None
}

/// The result of one of our tools in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown<'a> {
    /// Our id of the call, such as `r1.investigate.endpoint.t1.0`.
    pub call: &'a str,
    pub tool: &'a str,
    pub failed: bool,
    /// The rest of the first line after the tool.
    pub note: &'a str,
    /// The text inside the data marks.
    pub data: &'a str,
}

impl Shown<'_> {
    /// The task of the call: its id without turn and index.
    pub fn task(&self) -> &str {
        let mut parts = self.call.rsplitn(3, '.');
        parts.nth(2).unwrap_or(self.call)
    }
}

impl Shown<'_> {
    /// The result as JSON: a list of records or groups stands as lines, and has again in each item what is equal in all.
    pub fn json(&self) -> Option<Value> {
        let mut lines = self.data.lines();
        let mut head: Value = serde_json::from_str(lines.next()?).ok()?;
        let each = head.as_object_mut().and_then(|map| map.remove("each")).unwrap_or_default();
        let mut items: Vec<(usize, Value)> = Vec::new();
        let mut key = String::new();
        let mut whole: Option<String> = None;
        for line in lines {
            if line == "/raw" {
                whole = Some(String::new());
                continue;
            }
            if let Some(raw) = &mut whole {
                raw.push_str(if raw.is_empty() { "" } else { "\n" });
                raw.push_str(line.strip_prefix("| ")?);
                continue;
            }
            if let (Some(text), Some((_, item))) = (line.strip_prefix("| "), items.last_mut()) {
                let raw = item.get("raw").and_then(Value::as_str).map(|raw| format!("{raw}\n")).unwrap_or_default();
                item.as_object_mut()?.insert("raw".to_owned(), format!("{raw}{text}").into());
                continue;
            }
            let (at, item) = line.strip_prefix('/')?.split_once(' ')?;
            let (list, place) = at.split_once('/')?;
            list.clone_into(&mut key);
            let mut whole = each.clone();
            merge(&mut whole, serde_json::from_str(item).ok()?);
            items.push((place.parse().ok()?, whole));
        }
        if let Some(raw) = whole {
            head.as_object_mut()?.insert("raw".to_owned(), raw.into());
        }
        if !items.is_empty() {
            let mut all = vec![Value::Null; items.iter().map(|(place, _)| place + 1).max()?];
            for (place, item) in items {
                *all.get_mut(place)? = item;
            }
            head.as_object_mut()?.insert(key, Value::Array(all));
        }
        Some(head)
    }
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

pub fn shown(text: &str) -> Option<Shown<'_>> {
    let (first, rest) = text.split_once('\n')?;
    let failed = !first.starts_with("result of ");
    let call = first.strip_prefix("result of call ").or_else(|| first.strip_prefix("call "))?;
    let (call, rest_of_line) = call.split_once(" (")?;
    let (tool, note) = rest_of_line.split_once(')')?;
    let inner = sections(rest);
    let (_, data) = inner.iter().find(|(name, _)| name.starts_with("data-"))?;
    Some(Shown { call, tool, failed, note: note.trim_start_matches([',', ' ']), data })
}

/// The tool results of a conversation in our form, in order.
pub fn all_shown(request: &Request) -> Vec<Shown<'_>> {
    let mut all = Vec::new();
    for turn in &request.turns {
        if let Turn::Results(answers) = turn {
            all.extend(answers.iter().filter_map(|answer| shown(&answer.text)));
        }
    }
    all
}
