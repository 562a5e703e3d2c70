//! The first line of a report: what happened to whom, how sure, and since when. It says no more than the verdict and
//! the Timeline do.

use casebook_protocol::{EventTime, Precision, Report, Score, Verdict, one_line};

use crate::rule::TIMELINE_THRESHOLD;

/// A person reads so many in a few seconds.
pub const WORDS: usize = 30;
/// A name may have so many words, and so many characters.
const NAME: (usize, usize) = (3, 48);
/// The longest title, in characters.
const TITLE: usize = 120;

/// At most [`WORDS`] words, with names in backquotes. What is cut ends with `…`.
pub fn headline(report: &Report, finished: bool) -> String {
    let (lead, then, first) = match (finished, report.verdict) {
        (false, _) => ("Not finished", "has no verdict yet", "first event"),
        (_, Verdict::TruePositive) => ("Attack", "", "since"),
        (_, Verdict::BenignPositive) => ("Harmless", "happened and is explained", "first event"),
        (_, Verdict::FalsePositive) => ("False alarm", "did not happen", "first event"),
        (_, Verdict::Inconclusive) => ("Open", "is not settled: a person must look", "since"),
    };
    let mut rest = whom(report);
    if !then.is_empty() {
        let comma = if report.alert.user().is_some() { "," } else { "" };
        rest.push_str(&format!("{comma} {then}"));
    }
    match confidence(report) {
        Some((score, label)) => rest.push_str(&format!("; confidence {score} ({})", label.to_lowercase())),
        None => rest.push_str("; no event has enough support"),
    }
    match since(report) {
        Some(time) => rest.push_str(&format!(", {first} {}", moment(time))),
        None => rest.extend(report.alert.time().map(|at| format!(", alerted {}", at.strftime("%Y-%m-%d %H:%MZ")))),
    }
    let left = WORDS.saturating_sub(words(lead) + words(&rest));
    let title = shortened(&report.alert.title, left, TITLE);
    let title = title.trim_end_matches(['.', ' ']);
    let title = if title.is_empty() { "the alerted activity" } else { title };
    format!("{lead}: {title}{rest}.")
}

/// The coherence of the Timeline; none if it has no event.
pub fn confidence(report: &Report) -> Option<(Score, &'static str)> {
    let timeline = &report.timeline;
    (!timeline.events.is_empty()).then(|| (timeline.score, timeline.label.name()))
}

/// The time of the earliest credible event.
pub fn since(report: &Report) -> Option<&EventTime> {
    let credible = report.timeline.events.iter().filter(|event| event.score.get() >= TIMELINE_THRESHOLD);
    credible.map(|event| &event.when).min_by_key(|when| when.at)
}

fn moment(time: &EventTime) -> String {
    let format = if time.precision == Precision::Day { "%Y-%m-%d" } else { "%Y-%m-%d %H:%MZ" };
    time.at.strftime(format).to_string()
}

fn whom(report: &Report) -> String {
    let name = |before: &str, name: Option<String>| {
        let short = shortened(&name.unwrap_or_default(), NAME.0, NAME.1);
        if short.is_empty() { String::new() } else { format!("{before}`{short}`") }
    };
    let (host, user) = (name(" on ", report.alert.host()), name(", user ", report.alert.user()));
    host + &user
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn shortened(text: &str, most: usize, chars: usize) -> String {
    let line = one_line(&text.replace('`', "'"), chars);
    if words(&line) <= most {
        return line;
    }
    let kept: Vec<&str> = line.split_whitespace().take(most).collect();
    kept.join(" ") + "…"
}

#[cfg(test)]
mod tests;
