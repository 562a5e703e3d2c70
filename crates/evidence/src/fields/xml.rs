//! Windows events in XML.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::json::Outcome;

const DEPTH_MAX: usize = 32;

/// Gives path and value of every attribute and text below the root: `System.EventID`, `System.Provider.Name`,
/// and `EventData.Image` for `<Data Name="Image">`.
pub(crate) fn flatten(text: &str, prefix: &str, sink: &mut dyn FnMut(&str, String)) -> Outcome {
    let mut reader = Reader::from_str(text);
    let mut open: Vec<String> = Vec::new();
    let mut value = String::new();
    let mut unnamed = 0usize;
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => {
                if open.len() >= DEPTH_MAX {
                    return Outcome::Broken;
                }
                value.clear();
                begin(&tag, prefix, &mut open, &mut unnamed, sink);
            }
            Ok(Event::Empty(tag)) => {
                begin(&tag, prefix, &mut open, &mut unnamed, sink);
                open.pop();
            }
            Ok(Event::Text(part)) => value.push_str(&part.decode().unwrap_or_default()),
            Ok(Event::CData(part)) => value.push_str(&part.decode().unwrap_or_default()),
            Ok(Event::GeneralRef(entity)) => {
                let name = entity.decode().unwrap_or_default();
                value.push_str(&resolve(&name));
            }
            Ok(Event::End(_)) => {
                if !value.trim().is_empty() {
                    sink(&path(prefix, &open), value.trim().to_owned());
                }
                value.clear();
                open.pop();
                if open.is_empty() {
                    return Outcome::Whole;
                }
            }
            Ok(Event::Eof) | Err(_) => return Outcome::Broken,
            Ok(_) => {}
        }
    }
}

fn begin(
    tag: &BytesStart<'_>,
    prefix: &str,
    open: &mut Vec<String>,
    unnamed: &mut usize,
    sink: &mut dyn FnMut(&str, String),
) {
    let name = String::from_utf8_lossy(tag.local_name().as_ref()).into_owned();
    let mut attributes: Vec<(String, String)> = tag
        .attributes()
        .flatten()
        .map(|a| {
            let key = String::from_utf8_lossy(a.key.as_ref()).into_owned();
            (key, unescape(&String::from_utf8_lossy(&a.value)))
        })
        .filter(|(key, _)| !key.starts_with("xmlns"))
        .collect();
    let named = attributes.iter().position(|(key, _)| key == "Name").filter(|_| name == "Data");
    let segment = match named {
        Some(at) => attributes.swap_remove(at).1,
        None if name == "Data" => {
            *unnamed += 1;
            format!("Data{unnamed}")
        }
        None => name,
    };
    open.push(segment);
    if open.len() > 1 {
        let at = path(prefix, open);
        for (key, value) in attributes {
            sink(&format!("{at}.{key}"), value);
        }
    }
}

fn path(prefix: &str, open: &[String]) -> String {
    let inner = open.get(1..).unwrap_or_default().join(".");
    match (prefix.is_empty(), inner.is_empty()) {
        (true, _) => inner,
        (false, true) => prefix.to_owned(),
        (false, false) => format!("{prefix}.{inner}"),
    }
}

fn resolve(name: &str) -> String {
    match name {
        "lt" => "<".into(),
        "gt" => ">".into(),
        "amp" => "&".into(),
        "quot" => "\"".into(),
        "apos" => "'".into(),
        _ => {
            let code = match name.strip_prefix("#x").or_else(|| name.strip_prefix("#X")) {
                Some(hex) => u32::from_str_radix(hex, 16).ok(),
                None => name.strip_prefix('#').and_then(|n| n.parse().ok()),
            };
            code.and_then(char::from_u32).map_or_else(|| format!("&{name};"), String::from)
        }
    }
}

/// Whether a reference such as `&amp;` may be in the text.
pub(crate) fn escaped(text: &[u8]) -> bool {
    let near = |at: usize| text.get(at + 1..).is_some_and(|rest| rest.iter().take(9).any(|byte| *byte == b';'));
    memchr::memchr_iter(b'&', text).any(near)
}

pub(crate) fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(rest.get(..at).unwrap_or_default());
        rest = rest.get(at + 1..).unwrap_or_default();
        match rest.find(';').filter(|end| *end <= 8) {
            Some(end) => {
                out.push_str(&resolve(rest.get(..end).unwrap_or_default()));
                rest = rest.get(end + 1..).unwrap_or_default();
            }
            None => out.push('&'),
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_without_end_is_refused() {
        assert_eq!(flatten(&"<a>".repeat(10_000), "", &mut |_, _| {}), Outcome::Broken);
    }
}
