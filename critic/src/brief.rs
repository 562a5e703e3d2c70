//! The prompts for the two tasks of the Critic, and the reading of its answers.

use std::sync::{Arc, LazyLock};

use casebook_agent::model::brief::{Brief, Briefing};
use casebook_agent::model::form::read;
use casebook_agent::model::prompt::{Prompt, lay_out};
use casebook_agent::model::schema::AnswerForm;
use casebook_agent::reasoner::Done;
use casebook_protocol::rubric::{COHERENCE_RUBRIC, CONSOLIDATION_RULES, CREDIBILITY_RUBRIC};
use casebook_protocol::timeline::{MAX_EVENTS, MAX_GAPS};
use casebook_protocol::{Answer, MAX_LEADS, Task, TaskKind, View};
use casebook_trust::rule::{CAP_SINGLE_SOURCE, CAP_UNSUPPORTED, TIMELINE_THRESHOLD};
use serde_json::Value;

mod form;
mod review;
mod timeline;

use form::{ReviewForm, TimelineForm};

const REVIEW: Prompt = Prompt::new(include_str!("../prompts/review.md"));
const TIMELINE: Prompt = Prompt::new(include_str!("../prompts/timeline.md"));

static REVIEW_FORM: LazyLock<Arc<AnswerForm>> = LazyLock::new(|| {
    Arc::new(AnswerForm::of::<ReviewForm>("review", "The Review: a judgement of each finding of this round."))
});
static TIMELINE_FORM: LazyLock<Arc<AnswerForm>> =
    LazyLock::new(|| Arc::new(AnswerForm::of::<TimelineForm>("timeline", "The Timeline, rewritten whole.")));

static REVIEW_SYSTEM: LazyLock<String> = LazyLock::new(|| system(REVIEW));
static TIMELINE_SYSTEM: LazyLock<String> = LazyLock::new(|| system(TIMELINE));

fn system(prompt: Prompt) -> String {
    let [unsupported, single, threshold] =
        [CAP_UNSUPPORTED, CAP_SINGLE_SOURCE, TIMELINE_THRESHOLD].map(|score| format!("{score:.2}"));
    prompt.render(&[
        ("credibility", CREDIBILITY_RUBRIC),
        ("coherence", COHERENCE_RUBRIC),
        ("consolidation", CONSOLIDATION_RULES),
        ("unsupported", &unsupported),
        ("single", &single),
        ("threshold", &threshold),
        ("gaps", &MAX_GAPS.to_string()),
        ("leads", &MAX_LEADS.to_string()),
        ("events", &MAX_EVENTS.to_string()),
    ])
}

#[derive(Debug, Clone, Copy, Default)]
pub struct CriticBrief;

impl Brief for CriticBrief {
    fn ready(&self) {
        for form in [&REVIEW_FORM, &TIMELINE_FORM] {
            LazyLock::force(form);
        }
        for text in [&REVIEW_SYSTEM, &TIMELINE_SYSTEM] {
            LazyLock::force(text);
        }
    }

    fn brief(&self, task: &Task, room: usize) -> Briefing {
        let (prompt, system, sections) = match &task.view {
            View::Review(view) => (REVIEW, &REVIEW_SYSTEM, review::sections(view, room)),
            View::Timeline(view) => (TIMELINE, &TIMELINE_SYSTEM, timeline::sections(view, room)),
            // Cannot happen, because queues separate the roles. `read` rejects the answer.
            View::Plan(_) | View::Investigate(_) | View::Decide(_) | View::Report(_) => {
                (REVIEW, &REVIEW_SYSTEM, Vec::new())
            }
        };
        let parts = lay_out(&sections, room.saturating_sub(system.len()));
        Briefing { prompt: prompt.name().to_owned(), system: system.to_string(), parts }
    }

    fn form(&self, kind: TaskKind) -> Arc<AnswerForm> {
        Arc::clone(if kind == TaskKind::Timeline { &TIMELINE_FORM } else { &REVIEW_FORM })
    }

    fn read(&self, task: &Task, done: &[Done], object: &Value, room: usize) -> Result<Answer, Vec<String>> {
        match &task.view {
            View::Review(view) => review::judged(view, done, read(object)?),
            View::Timeline(view) => timeline::answer(view, read(object)?, room),
            View::Plan(_) | View::Investigate(_) | View::Decide(_) | View::Report(_) => {
                Err(vec![format!("a Critic reviews and keeps the Timeline; {} is neither", task.id)])
            }
        }
    }

    fn returned(&self, task: &Task, done: &[Done], object: &Value) -> String {
        match &task.view {
            View::Review(view) => read(object).map(|form| review::returned(view, done, &form)),
            View::Timeline(view) => read(object).map(|form| timeline::returned(view, &form)),
            View::Plan(_) | View::Investigate(_) | View::Decide(_) | View::Report(_) => Ok(String::new()),
        }
        .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
