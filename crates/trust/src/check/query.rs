//! Checks what a count or an absence shows: the query, its sources and its window.

use serde_json::Value;

use super::Exhibit;
use crate::claim::{Corpus, exception, has_word};
use casebook_protocol::{CitationCheck, Timestamp, one_line};

mod pattern;

/// What a query that found nothing searched for: one of the alternatives, each with all of its texts.
struct Sought {
    /// As the query has it.
    shown: String,
    alternatives: Vec<Vec<String>>,
    /// The claim must name one of the alternatives.
    required: bool,
    /// The query distinguishes upper and lower case.
    exact: bool,
}

/// An absence holds for all conditions of a query together. The claim must name each of several conditions. Of
/// alternatives it may name some, but not a part of one: that the whole is absent does not show that a part is.
pub(super) fn asked_for(exhibit: &Exhibit, claim: &str) -> Result<(), String> {
    let Ok(arguments) = serde_json::from_str::<Value>(&exhibit.call.arguments) else { return Ok(()) };
    let terms: Vec<String> = arguments.get("terms").map(values_in).unwrap_or_default();
    let any = arguments.get("mode").and_then(Value::as_str) == Some("any");
    let mut all: Vec<Sought> = match any {
        true => vec![Sought {
            shown: terms.join(", "),
            alternatives: terms.iter().map(|term| vec![term.clone()]).collect(),
            required: false,
            exact: false,
        }],
        false => terms.iter().map(|term| text(term.clone(), terms.len() > 1)).collect(),
    };
    all.extend(arguments.get("where").map(conditions).unwrap_or_default());
    all.iter().try_for_each(|sought| sought.named_in(claim))?;
    excepted(arguments.get("where").unwrap_or(&Value::Null), claim)
}

/// A condition that leaves a value out shows only that nothing other than the value was found. The claim must say so, and
/// name the value after the exception: "no logon other than of `x`".
fn excepted(conditions: &Value, claim: &str) -> Result<(), String> {
    const NEGATED: [&str; 3] = ["ne", "not_contains", "not_regex"];
    let negated = |one: &&Value| one.get("op").and_then(Value::as_str).is_some_and(|op| NEGATED.contains(&op));
    let all = conditions.as_array().into_iter().flatten().chain(conditions.is_object().then_some(conditions));
    let left_out: Vec<String> = all.filter(negated).flat_map(values_in).collect();
    let before = exception(claim).and_then(|at| claim.get(..at)).map(str::to_lowercase);
    if left_out.is_empty()
        || before.is_some_and(|before| !left_out.iter().any(|value| names(&before, &value.to_lowercase())))
    {
        return Ok(());
    }
    Err(format!(
        "the query left out {left_out:?}, and the claim does not say so: write `other than` before these values"
    ))
}

fn text(value: String, required: bool) -> Sought {
    Sought { shown: value.clone(), alternatives: vec![vec![value]], required, exact: false }
}

fn conditions(value: &Value) -> Vec<Sought> {
    let own = |condition: &Value| match condition.get("op").and_then(Value::as_str) {
        Some("exists") => Vec::new(),
        Some("regex") => values_in(condition).into_iter().map(|value| of_pattern(&value)).collect(),
        _ => values_in(condition).into_iter().map(|value| text(value, true)).collect(),
    };
    value.as_array().map_or_else(|| own(value), |all| all.iter().flat_map(own).collect())
}

fn of_pattern(pattern: &str) -> Sought {
    let whole = || vec![vec![pattern.to_owned()]];
    let alternatives = pattern::alternatives(pattern).unwrap_or_else(whole);
    let exact = !pattern.starts_with("(?i)");
    Sought { shown: pattern.to_owned(), alternatives, required: true, exact }
}

impl Sought {
    fn named_in(&self, claim: &str) -> Result<(), String> {
        let cased = |text: &str| if self.exact { text.to_owned() } else { text.to_lowercase() };
        let mut rest = cased(claim);
        let alternatives: Vec<Vec<String>> =
            self.alternatives.iter().map(|texts| texts.iter().map(|text| cased(text)).collect()).collect();
        let claim = rest.clone();
        let (named, others): (Vec<_>, Vec<_>) =
            alternatives.iter().partition(|texts| texts.iter().all(|text| names(&claim, text)));
        if named.is_empty() && self.required {
            return Err(format!(
                "the query also required {:?}, which the claim does not name: it shows only that they do not occur together",
                one_line(&self.shown, 80)
            ));
        }
        for text in named.iter().copied().flatten() {
            rest = std::iter::once(text.as_str())
                .chain(text.split_whitespace())
                .fold(rest, |rest, part| rest.replace(part, " "));
        }
        let touched = others.into_iter().flatten().find(|text| words(text).any(|word| has_word(&rest, word)));
        touched.map_or(Ok(()), |text| {
            let (text, shown) = (one_line(text, 80), one_line(&self.shown, 80));
            Err(format!("the query searched for {text:?} as a whole (in {shown:?}), and the claim names a part of it"))
        })
    }
}

/// True if `claim` has the text, or each of its words.
fn names(claim: &str, text: &str) -> bool {
    has_word(claim, text)
        || (text.contains(char::is_whitespace) && text.split_whitespace().all(|word| has_word(claim, word)))
}

/// The words of a text that are long enough to mean something.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() >= 3)
}

fn values_in(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Number(number) => vec![number.to_string()],
        Value::Array(items) => items.iter().flat_map(values_in).collect(),
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "op" | "field"))
            .flat_map(|(_, item)| values_in(item))
            .collect(),
        Value::Bool(_) | Value::Null => Vec::new(),
    }
}

/// Adds the arguments of the call and the sources that it searched: a count or an absence is about them.
pub(super) fn queried(exhibit: &Exhibit, corpus: &mut Corpus, check: &mut CitationCheck) -> Result<(), String> {
    match serde_json::from_str::<Value>(&exhibit.call.arguments) {
        Ok(arguments) => {
            corpus.add_query(&arguments);
            // In `\bname` the name is not a word by itself.
            let sought = arguments.get("where").map(conditions).unwrap_or_default();
            sought.iter().flat_map(|sought| sought.alternatives.iter().flatten()).for_each(|text| {
                corpus.add_query(&Value::from(text.as_str()));
            });
        }
        Err(_) => corpus.add_query(&Value::from(exhibit.call.arguments.as_str())),
    }
    if exhibit.served() {
        check.sources.push(super::served::source(exhibit));
        return Ok(());
    }
    let searched = exhibit.json.as_ref().and_then(|j| j.get("searched")).and_then(Value::as_array);
    match searched {
        Some(sources) if sources.is_empty() => return Err("no source was searched".to_owned()),
        Some(sources) => {
            sources.iter().for_each(|source| corpus.add_query(source));
            check.sources.extend(sources.iter().filter_map(Value::as_str).map(str::to_owned));
        }
        None => check.sources.push(exhibit.call.tool.clone()),
    }
    Ok(())
}

/// An edge of the window of a query of our own tools.
pub(super) fn edge(exhibit: &Exhibit, key: &str) -> Option<Timestamp> {
    exhibit.json.as_ref()?.get("window")?.get(key)?.as_str()?.parse().ok()
}

pub(super) fn covers(exhibit: &Exhibit, from: Option<Timestamp>, to: Option<Timestamp>) -> Result<(), String> {
    let early_enough = match (edge(exhibit, "from"), from) {
        (None, _) => true,
        (Some(searched), Some(claimed)) => searched <= claimed,
        (Some(_), None) => false,
    };
    let late_enough = match (edge(exhibit, "to"), to) {
        (None, _) => true,
        (Some(searched), Some(claimed)) => searched >= claimed,
        (Some(_), None) => false,
    };
    if early_enough && late_enough {
        Ok(())
    } else {
        Err("the absence is claimed over a window that was not searched (that of a count of 0 is the time of the finding)".to_owned())
    }
}
