//! Any moment of an investigation: the API and the page show what a replay of the log up to it gives.

use casebook_hub::State;
use casebook_protocol::{Recorded, one_line};
use casebook_tests::web::stage::Stage;
use casebook_tests::web::{bare, said};
use futures_util::{StreamExt, stream};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use serde_json::{Value, json};

/// Moments whose channels are compared; all if the log has fewer.
const MOMENTS: usize = 1_000;
/// Moments whose page is compared as well.
const PAGES: usize = 16;
const AT_ONCE: usize = 4;

fn moments(log: &[Recorded], dice: &mut ChaCha8Rng) -> Vec<usize> {
    if log.len() <= MOMENTS {
        return (1..=log.len()).collect();
    }
    (0..MOMENTS).map(|_| dice.random_range(1..=log.len())).collect()
}

/// A value as JSON text gives it back.
fn sent<T: Serialize>(value: &T) -> Value {
    serde_json::from_slice(&serde_json::to_vec(value).unwrap()).unwrap()
}

async fn channel(stage: &Stage, id: &str, name: &str, n: usize) -> Option<Value> {
    let (status, body) = stage.server.get(&format!("/api/v1/investigations/{id}/{name}?at={n}")).await.unwrap();
    assert!(status == 200 || status == 404, "{name} at {n}: {status}");
    (status == 200).then(|| serde_json::from_slice(&body).unwrap())
}

async fn compare(stage: &Stage, id: &str, log: &[Recorded], n: usize) {
    let state = State::replay(&log[..n]);
    let journal = sent(&json!({"items": state.journal, "next": null}));
    assert_eq!(channel(stage, id, "journal", n).await, Some(journal), "Journal after event {n}");
    assert_eq!(channel(stage, id, "review", n).await, state.review.as_ref().map(sent), "Review after event {n}");
    assert_eq!(channel(stage, id, "timeline", n).await, state.timeline.as_ref().map(sent), "Timeline after event {n}");
}

/// What the page says under this heading.
fn section(page: &str, heading: &str) -> String {
    let rest = page.split_once(&format!("id=\"{heading}\"")).unwrap_or_else(|| panic!("no {heading}")).1;
    // Without the rest of the tag.
    said(&format!("<{}", rest.split("</section>").next().unwrap()))
}

fn shows(text: &str, wanted: &str, n: usize) {
    assert!(text.contains(&bare(wanted)), "after event {n} the page lacks {wanted:?}: {text}");
}

/// The page of a moment shows its channels, and nothing that came later.
async fn compare_page(stage: &Stage, id: &str, log: &[Recorded], n: usize) {
    let state = State::replay(&log[..n]);
    let all = State::replay(log).journal.len();
    let page = stage.server.text(&format!("/i/{id}?tab=channels&at={n}")).await.unwrap();
    shows(&said(&page), &format!("event {n} of {}", log.len()), n);
    let journal = section(&page, "ch-journal");
    shows(&journal, &format!("Journal {} of {all}", state.journal.len()), n);
    for entry in &state.journal {
        let place = format!("#{} {} · round {}", entry.seq, entry.entry.kind.name(), entry.round);
        shows(&journal, &format!("{place} {}", one_line(&entry.entry.text, 400)), n);
    }
    let review = section(&page, "ch-review");
    match &state.review {
        None => shows(&review, "No Review yet.", n),
        Some(given) => {
            let head = format!("Review of round {} {} {}", given.round, given.findings.len(), given.summary);
            shows(&review, &head, n);
            given.findings.iter().for_each(|one| shows(&review, &format!("{} {}", one.finding.id, one.score), n));
        }
    }
    let timeline = section(&page, "ch-timeline");
    match &state.timeline {
        None => shows(&timeline, "No Timeline yet.", n),
        Some(given) => {
            shows(&timeline, &format!("Timeline, version {} {}", given.version, given.events.len()), n);
            given.events.iter().for_each(|event| shows(&timeline, &one_line(&event.description, 160), n));
        }
    }
    for next in [n.saturating_sub(1).max(1), (n + 1).min(log.len())] {
        assert!(page.contains(&format!("\"/i/{id}?at={next}\"")), "no link from event {n} to {next}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_moment_shows_a_replay_of_the_log_up_to_it() {
    let (stage, id) = Stage::closed().await.unwrap();
    let log = stage.log(&id).await.unwrap();
    let mut dice = ChaCha8Rng::seed_from_u64(8);
    let moments = moments(&log, &mut dice);
    let compared = stream::iter(&moments).map(|n| compare(&stage, &id, &log, *n)).buffer_unordered(AT_ONCE);
    compared.collect::<Vec<()>>().await;
    // The last event has no past to show.
    let pages: Vec<usize> = (0..PAGES).map(|_| dice.random_range(1..log.len())).collect();
    for n in pages {
        compare_page(&stage, &id, &log, n).await;
    }
    println!("{} moments of {} events", moments.len(), log.len());
}
