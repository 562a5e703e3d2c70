//! A Critic that believes everything, to measure the mechanical checks and the rules alone.

use casebook_agent::reasoner::{Action, Analyst, Done};
use casebook_agent::worker::answer;
use casebook_protocol::{Answer, EventDraft, Judgement, ReviewDraft, Score, Task, TimelineDraft, TimelineView, View};
use casebook_trust::rule::credible;

/// Gives every finding the best score of one source, and makes an event of each credible one.
pub const CREDULOUS_CRITIC: Analyst = Analyst(think);

fn think(task: &Task, _: &[Done], _: bool) -> Action {
    match &task.view {
        View::Review(view) => {
            let judged = view.findings.iter().map(|f| Judgement::new(&f.finding.id, Score::clamped(0.89), "believed"));
            let (summary, judgements) = ("Everything is believed.".into(), judged.collect());
            answer(Answer::Review(ReviewDraft { summary, judgements, leads: Vec::new() }))
        }
        View::Timeline(view) => answer(Answer::Timeline(timeline(view))),
        other => Action::GiveUp(format!("a Critic has no {} task", other.kind().name())),
    }
}

fn timeline(view: &TimelineView) -> TimelineDraft {
    let before = view.previous.iter().flat_map(|t| &t.events);
    let before = before.map(|e| EventDraft { description: e.description.clone(), findings: e.findings.clone() });
    let new = view.review.findings.iter().filter(|f| credible(f) && f.finding.draft.time.is_some());
    let new =
        new.map(|f| EventDraft { description: f.finding.draft.claim.clone(), findings: vec![f.finding.id.clone()] });
    TimelineDraft {
        narrative: "Everything that is credible.".into(),
        events: before.chain(new).collect(),
        gaps: vec![],
        score: Score::clamped(0.5),
    }
}
