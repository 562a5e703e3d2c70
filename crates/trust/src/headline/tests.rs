use casebook_protocol::alert::hidden;
use casebook_protocol::{Alert, Score};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn report(alert: &Value, verdict: Verdict, events: bool) -> Report {
    let mut report: Report = serde_json::from_str(include_str!("../../../../hub/fixtures/report-v1.json")).unwrap();
    report.alert = Alert::parse(alert.to_string().as_bytes()).unwrap();
    report.verdict = verdict;
    if !events {
        report.timeline.events.clear();
    }
    report
}

#[test]
fn each_verdict_says_what_happened_to_whom_how_sure_and_since_when() {
    let alert = json!({"id": "a", "title": "Module load.", "host": "web-03", "user": {"name": "root"},
        "event_time": "2026-03-01T02:14:07Z"});
    let bare = json!({"id": "a", "title": "Module load"});
    let line = |alert: &Value, verdict, events, finished| headline(&report(alert, verdict, events), finished);
    for (verdict, expect) in [
        (
            Verdict::TruePositive,
            "Attack: Module load on `web-03`, user `root`; confidence 0.70 (highly-plausible), since 2024-01-01 10:00Z.",
        ),
        (
            Verdict::BenignPositive,
            "Harmless: Module load on `web-03`, user `root`, happened and is explained; confidence 0.70 (highly-plausible), first event 2024-01-01 10:00Z.",
        ),
        (
            Verdict::FalsePositive,
            "False alarm: Module load on `web-03`, user `root`, did not happen; confidence 0.70 (highly-plausible), first event 2024-01-01 10:00Z.",
        ),
        (
            Verdict::Inconclusive,
            "Open: Module load on `web-03`, user `root`, is not settled: a person must look; confidence 0.70 (highly-plausible), since 2024-01-01 10:00Z.",
        ),
    ] {
        assert_eq!(line(&alert, verdict, true, true), expect);
    }
    for (got, expect) in [
        (
            line(&alert, Verdict::Inconclusive, false, false),
            "Not finished: Module load on `web-03`, user `root`, has no verdict yet; no event has enough support, alerted 2026-03-01 02:14Z.",
        ),
        (line(&bare, Verdict::TruePositive, false, true), "Attack: Module load; no event has enough support."),
        (
            line(&bare, Verdict::FalsePositive, false, true),
            "False alarm: Module load did not happen; no event has enough support.",
        ),
    ] {
        assert_eq!(got, expect);
    }
}

#[test]
fn long_names_are_cut_visibly() {
    let alert = json!({"id": "a", "title": "word ".repeat(40), "host": "h".repeat(200), "user": "a b c d e"});
    let line = headline(&report(&alert, Verdict::Inconclusive, true), true);
    assert!(line.contains(&format!("`{}…`, user `a b c…`,", "h".repeat(47))), "{line}");
    assert!(line.starts_with("Open: word word") && line.contains("word… on `"), "{line}");
    assert_eq!(words(&line), WORDS);
}

#[test]
fn the_earliest_credible_event_counts() {
    let mut report = report(&json!({"id": "a"}), Verdict::TruePositive, true);
    let mut early = report.timeline.events[0].clone();
    early.when.at = "2020-01-01T00:00:00Z".parse().unwrap();
    early.when.precision = Precision::Day;
    report.timeline.events.push(early);
    assert!(headline(&report, true).ends_with("since 2020-01-01."));
    report.timeline.events.last_mut().unwrap().score = Score::clamped(0.49);
    assert!(headline(&report, true).ends_with("since 2024-01-01 10:00Z."), "an event that is not believed");
}

proptest! {
    #[test]
    fn whatever_the_alert_says_it_is_one_line_of_at_most_thirty_words(
        texts in proptest::array::uniform3("(\\PC|[ `\\n\\u{202e}\\u{200b}\\u{2028}.])*"),
        words_in in 0_usize..40, verdict in 0_usize..4, events: bool, finished: bool, score in 0.0..1.0,
    ) {
        let [title, host, user] = texts;
        let title = format!("{title} {}", "and so on ".repeat(words_in));
        let alert = json!({"id": "a", "title": title, "host": host, "user": user, "time": "2026-03-01T00:00:00Z"});
        let mut report = report(&alert, Verdict::ALL[verdict], events);
        report.timeline.score = Score::clamped(score);
        let line = headline(&report, finished);
        prop_assert!(words(&line) <= WORDS, "{} words: {}", words(&line), line);
        prop_assert!(!line.chars().any(hidden) && line.matches('`').count().is_multiple_of(2), "{:?}", line);
        prop_assert!(line.ends_with('.') && line.contains(": "), "{:?}", line);
    }
}
