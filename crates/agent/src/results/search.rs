//! Finds the places of a text in a result, in a form that can be cited.

use casebook_trust::check::place;
use serde_json::{Value, json};

use super::{Part, slice};

/// The shown bytes before and after a hit.
const AROUND: usize = 160;
/// The number of shown places.
const PLACES: usize = 20;

pub(super) struct Hits {
    /// Byte and length of each hit, in order.
    pub(super) at: Vec<(usize, usize)>,
    /// It occurs only with another letter case.
    pub(super) any_case: bool,
}

/// Searches for the text as written, then with JSON's escapes once and twice, then in any letter case.
pub(super) fn hits(text: &str, needle: &str) -> Result<Hits, String> {
    if needle.is_empty() {
        return Err("expected a text to search for, got \"\"".to_owned());
    }
    let once = escaped(needle);
    let twice = escaped(&once);
    let forms = [needle, &once, &twice];
    let all = |text: &str, form: &str| text.match_indices(form).map(|(at, hit)| (at, hit.len())).collect();
    if let Some(form) = forms.into_iter().find(|form| text.contains(form)) {
        return Ok(Hits { at: all(text, form), any_case: false });
    }
    let text = text.to_ascii_lowercase();
    let lower = forms.map(str::to_ascii_lowercase);
    let at = lower.iter().find(|form| text.contains(form.as_str())).map(|form| all(&text, form));
    Ok(Hits { any_case: at.is_some(), at: at.unwrap_or_default() })
}

fn escaped(text: &str) -> String {
    let json = Value::from(text).to_string();
    json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

pub(super) fn places(part: &Part<'_>, needle: &str, after: usize) -> Result<Value, String> {
    let hits = hits(&part.text, needle)?;
    let total = hits.at.len();
    let left: Vec<(usize, usize)> = hits.at.into_iter().filter(|(at, _)| *at >= after).collect();
    let shown = left.get(..PLACES.min(left.len())).unwrap_or_default();
    let offsets: Vec<usize> = shown.iter().map(|(at, _)| *at).collect();
    let pointers = part.structured().then(|| place::pointers_at(&part.text, &offsets));
    let mut pointers = pointers.into_iter().flatten();
    let (mut line, mut counted) = (1, 0);
    let mut found = Vec::new();
    for (at, length) in shown {
        line += part.text.get(counted..*at).map_or(0, |text| text.matches('\n').count());
        counted = *at;
        let cite = match pointers.next() {
            Some(within) => format!("{}{within}", part.pointer),
            None if part.value.is_some() => part.pointer.to_owned(),
            None => format!("line {line}"),
        };
        let text = slice(&part.text, at.saturating_sub(AROUND), length + 2 * AROUND);
        found.push(json!({"at": cite, "line": line, "offset": at, "text": text}));
    }
    Ok(json!({
        "search": needle,
        "pointer": part.pointer,
        "found": total > 0,
        "total": total,
        "any_case": hits.any_case,
        "hits": found,
        "next_after": left.get(shown.len()).map(|(at, _)| at),
    }))
}
