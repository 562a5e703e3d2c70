//! The prompt of an Expert, and the reading of its answer.

use std::sync::{Arc, LazyLock};

use casebook_agent::model::brief::{Brief, Briefing};
use casebook_agent::model::data::section;
use casebook_agent::model::prompt::{
    JOURNAL_READ, Prompt, SERVERS, Section, Written, channels, lay_out, scaled, servers,
};
use casebook_agent::model::schema::AnswerForm;
use casebook_agent::reasoner::Done;
use casebook_protocol::{Answer, ExpertView, FindingDraft, HostCoverage, SourceInfo, Task, TaskKind, View, one_line};
use casebook_trust::rule::{CAP_SINGLE_SOURCE, CAP_UNSUPPORTED, TIMELINE_THRESHOLD};
use serde_json::{Value, json};

mod form;
mod read;
mod second;

use form::InvestigateForm;

const INVESTIGATE: Prompt = Prompt::new(include_str!("../prompts/investigate.md"));

/// In bytes. The tools list all sources.
const SOURCES: usize = 8 * 1024;
/// Characters about the content of a source.
const ABOUT: usize = 600;
/// Bytes of the question, and characters of a name to follow.
const QUESTION: usize = 6 * 1024;
const NAME: usize = 300;

static FORM: LazyLock<Arc<AnswerForm>> = LazyLock::new(|| {
    Arc::new(AnswerForm::of::<InvestigateForm>("investigate", "The findings that answer the question."))
});

static SYSTEM: LazyLock<String> = LazyLock::new(|| system(""));
/// For an Expert with tools of other servers.
static SYSTEM_WITH_SERVERS: LazyLock<String> = LazyLock::new(|| system(SERVERS));

fn system(servers: &str) -> String {
    let [unsupported, single, threshold] =
        [CAP_UNSUPPORTED, CAP_SINGLE_SOURCE, TIMELINE_THRESHOLD].map(|score| format!("{score:.2}"));
    INVESTIGATE.render(&[
        ("unsupported", &unsupported),
        ("single", &single),
        ("threshold", &threshold),
        ("servers", servers),
    ])
}

#[derive(Debug, Clone, Copy, Default)]
pub struct ExpertBrief;

impl Brief for ExpertBrief {
    fn brief(&self, task: &Task, room: usize) -> Briefing {
        let (system, sections) = match &task.view {
            View::Investigate(view) => {
                let system = if servers(task).is_empty() { &SYSTEM } else { &SYSTEM_WITH_SERVERS };
                (system, sections(task, view, room))
            }
            // Cannot happen, because queues separate the roles. `read` rejects the answer.
            _ => (&SYSTEM, Vec::new()),
        };
        let parts = lay_out(&sections, room.saturating_sub(system.len()));
        Briefing { prompt: INVESTIGATE.name().to_owned(), system: system.to_string(), parts }
    }

    fn form(&self, _: TaskKind) -> Arc<AnswerForm> {
        Arc::clone(&FORM)
    }

    fn ready(&self) {
        LazyLock::force(&FORM);
        LazyLock::force(&SYSTEM);
        LazyLock::force(&SYSTEM_WITH_SERVERS);
        casebook_trust::injection::known();
    }

    fn read(&self, task: &Task, done: &[Done], object: &Value, _: usize) -> Result<Answer, Vec<String>> {
        match &task.view {
            View::Investigate(_) => {
                let taken = read::findings(done, casebook_agent::model::form::read(object)?)?;
                Ok(Answer::Investigate(taken.into_iter().map(|taken| taken.draft).collect()))
            }
            other => Err(vec![format!("an Expert investigates; this is a {} task", other.kind().name())]),
        }
    }

    fn returned(&self, task: &Task, done: &[Done], object: &Value) -> String {
        second::returned(&taken(done, object).unwrap_or_default(), done, alerted(task).as_deref())
    }

    fn mended(&self, task: &Task, done: &[Done], first: &Value, second: &Value) -> Option<(Answer, u32)> {
        let (findings, corrected) =
            second::mended(taken(done, first)?, taken(done, second)?, done, alerted(task).as_deref());
        Some((Answer::Investigate(findings), corrected))
    }

    fn raised(&self, task: &Task, done: &[Done]) -> Vec<FindingDraft> {
        crate::raise::beside(task, done)
    }
}

/// The host of the alert.
fn alerted(task: &Task) -> Option<String> {
    let View::Investigate(view) = &task.view else { return None };
    view.alert.host()
}

fn taken(done: &[Done], object: &Value) -> Option<Vec<read::Taken>> {
    read::findings(done, casebook_agent::model::form::read(object).ok()?).ok()
}

fn sections<'a>(task: &'a Task, view: &'a ExpertView, room: usize) -> Vec<Section<'a>> {
    vec![
        channels::alert(3, &view.alert),
        sources(1, &view.sources).cached(),
        channels::journal(2, scaled(JOURNAL_READ, room), &view.journal).cached(),
        question(task, view),
    ]
}

/// If there is little room, only sources with the most records.
fn sources(rank: u8, sources: &[SourceInfo]) -> Section<'_> {
    Section::new(rank, SOURCES, move |limit| {
        let items = sources.iter().map(|s| {
            let shown = json!({"source": s.source, "sensor": s.sensor, "on_subject_host": s.on_subject_host,
                "records": s.records, "about": one_line(&s.about, ABOUT),
                "covers": s.coverage.iter().map(HostCoverage::words).collect::<Vec<_>>()});
            (s.records, shown)
        });
        let (shown, left_out) = channels::kept_values(items, usize::MAX, limit, |missing, all| {
            format!("sources: {missing} of {all}, those with the fewest records; your tools reach them")
        });
        Written { text: section("sources", &Value::Array(shown)), left_out }
    })
}

/// The question, its author, and the names to follow. It is never left out.
fn question<'a>(task: &'a Task, view: &'a ExpertView) -> Section<'a> {
    let mut room = QUESTION;
    let text = one_line(&view.question.text, QUESTION / 2);
    let all = view.question.follow.iter().map(|name| one_line(name, NAME));
    let follow: Vec<String> = all
        .take_while(|name| {
            room = room.saturating_sub(name.len());
            room > 0
        })
        .collect();
    let shown = json!({
        "text": text,
        "follow": follow,
        "domain": task.domain,
        "tool_calls": task.allowance.tool_calls,
        "turns": task.allowance.turns,
    });
    let missing = view.question.follow.len() - follow.len();
    let left_out = (missing > 0).then(|| format!("question: {missing} of the names to follow"));
    let text = section("question", &shown);
    Section::new(u8::MAX, usize::MAX, move |_| Written { text: text.clone(), left_out: left_out.clone() })
}

#[cfg(test)]
mod tests;
