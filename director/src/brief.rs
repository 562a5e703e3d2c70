//! The prompts for the three tasks of the Director, and the reading of its answers.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use casebook_agent::model::brief::{Brief, Briefing};
use casebook_agent::model::data::{section, text_section};
use casebook_agent::model::form::{Faults, read};
use casebook_agent::model::prompt::{JOURNAL_OWN, Prompt, Section, Written, channels, lay_out, scaled};
use casebook_agent::model::schema::AnswerForm;
use casebook_agent::reasoner::Done;
use casebook_protocol::rubric::{COHERENCE_RUBRIC, CREDIBILITY_RUBRIC};
use casebook_protocol::{
    Answer, CallStatus, Conclusion, Decision, DirectorView, Domain, Fate, FindingId, LeadId, MemberState, Plan,
    Question, Task, TaskKind, View, one_line,
};
use casebook_trust::claim::has_word;
use casebook_trust::rule::TIMELINE_THRESHOLD;
use serde_json::{Value, json};

mod form;

use form::{DecideForm, PlanForm, ReportForm};

const PLAN: Prompt = Prompt::new(include_str!("../prompts/plan.md"));
const DECIDE: Prompt = Prompt::new(include_str!("../prompts/decide.md"));
const REPORT: Prompt = Prompt::new(include_str!("../prompts/report.md"));

/// In bytes: dozens of Experts with a paragraph each.
const ROSTER: usize = 16 * 1024;
/// Characters of an Expert's description in a short prompt.
const SHORT: usize = 120;
/// Characters of the reason for an Expert's failure.
const TROUBLE: usize = 240;
const FOLLOW: usize = 50;
/// Characters of a lead.
const LEAD: usize = 200;

static PLAN_FORM: LazyLock<Arc<AnswerForm>> =
    LazyLock::new(|| Arc::new(AnswerForm::of::<PlanForm>("plan", "The question of this round.")));
static DECIDE_FORM: LazyLock<Arc<AnswerForm>> =
    LazyLock::new(|| Arc::new(AnswerForm::of::<DecideForm>("decide", "Stay in this phase or advance.")));
static REPORT_FORM: LazyLock<Arc<AnswerForm>> =
    LazyLock::new(|| Arc::new(AnswerForm::of::<ReportForm>("report", "The conclusion of the investigation.")));

static PLAN_SYSTEM: LazyLock<String> = LazyLock::new(|| system(PLAN));
static DECIDE_SYSTEM: LazyLock<String> = LazyLock::new(|| system(DECIDE));
static REPORT_SYSTEM: LazyLock<String> = LazyLock::new(|| system(REPORT));

fn system(prompt: Prompt) -> String {
    let threshold = format!("{TIMELINE_THRESHOLD:.2}");
    prompt.render(&[("credibility", CREDIBILITY_RUBRIC), ("coherence", COHERENCE_RUBRIC), ("threshold", &threshold)])
}

#[derive(Debug, Clone, Copy, Default)]
pub struct DirectorBrief;

impl Brief for DirectorBrief {
    fn ready(&self) {
        for form in [&PLAN_FORM, &DECIDE_FORM, &REPORT_FORM] {
            LazyLock::force(form);
        }
        for text in [&PLAN_SYSTEM, &DECIDE_SYSTEM, &REPORT_SYSTEM] {
            LazyLock::force(text);
        }
    }

    fn brief(&self, task: &Task, room: usize) -> Briefing {
        let (prompt, system, view) = match &task.view {
            View::Plan(view) => (PLAN, &PLAN_SYSTEM, Some(view)),
            View::Decide(view) => (DECIDE, &DECIDE_SYSTEM, Some(view)),
            View::Report(view) => (REPORT, &REPORT_SYSTEM, Some(view)),
            // Cannot happen, because queues separate the roles. `read` rejects the answer.
            View::Investigate(_) | View::Review(_) | View::Timeline(_) => (DECIDE, &DECIDE_SYSTEM, None),
        };
        let sections = view.map(|view| sections(task, view, room)).unwrap_or_default();
        let parts = lay_out(&sections, room.saturating_sub(system.len()));
        Briefing { prompt: prompt.name().to_owned(), system: system.to_string(), parts }
    }

    fn form(&self, kind: TaskKind) -> Arc<AnswerForm> {
        Arc::clone(match kind {
            TaskKind::Plan => &PLAN_FORM,
            TaskKind::Report => &REPORT_FORM,
            TaskKind::Decide | TaskKind::Investigate | TaskKind::Review | TaskKind::Timeline => &DECIDE_FORM,
        })
    }

    fn read(&self, task: &Task, _done: &[Done], object: &Value, _: usize) -> Result<Answer, Vec<String>> {
        match &task.view {
            View::Plan(view) => plan(view, read(object)?),
            View::Decide(_) => decide(read(object)?),
            View::Report(view) => report(view, read(object)?),
            View::Investigate(_) | View::Review(_) | View::Timeline(_) => {
                Err(vec![format!("a Director plans, decides and reports; {} is none of these", task.id)])
            }
        }
    }

    fn returned(&self, task: &Task, done: &[Done], object: &Value) -> String {
        let View::Plan(view) = &task.view else { return String::new() };
        let Ok(Answer::Plan(plan)) = self.read(task, done, object, 0) else { return String::new() };
        let left = left(view, done, &plan.takes_up);
        if left.is_empty() {
            return left;
        }
        format!(
            "These leads of the Critic are left open:\n{left}Give the whole answer again: name a lead in `takes_up` if the question follows it, or write a Journal entry with its id that says why not. This is the only second chance."
        )
    }
}

/// The open leads that neither a plan nor an entry of its Journal names.
fn left(view: &DirectorView, done: &[Done], takes_up: &[LeadId]) -> String {
    let noted = |id: &LeadId| {
        done.iter().any(|d| d.call.status == CallStatus::Answered && has_word(&d.call.arguments, id.as_str()))
    };
    let open = view.leads.iter().filter(|lead| lead.fate == Fate::Open).map(|lead| &lead.lead);
    let left = open.filter(|lead| !takes_up.contains(&lead.id) && !noted(&lead.id));
    left.map(|lead| format!("- {}: {}\n", lead.id, one_line(&lead.draft.what, LEAD))).collect()
}

fn sections<'a>(task: &'a Task, view: &'a DirectorView, room: usize) -> Vec<Section<'a>> {
    let mut sections = vec![
        channels::alert(4, &view.alert).cached(),
        channels::journal(3, scaled(JOURNAL_OWN, room), &view.journal).cached(),
        roster(5, &view.roster),
    ];
    sections.extend(channels::notes(&view.notes));
    sections.extend(channels::coverage(0, &view.coverage));
    sections.extend(channels::out_of_reach(&view.out_of_reach));
    sections.extend(view.timeline.as_ref().map(|timeline| channels::timeline(2, room, timeline, &view.ranks)));
    sections.extend(view.review.as_ref().map(|review| channels::review(1, scaled(channels::REVIEW, room), review)));
    sections.extend(channels::leads(&view.leads));
    sections.extend(channels::credible(1, scaled(channels::REVIEW, room), &view.credible));
    sections.extend(view.accounting.as_ref().map(|accounting| channels::acts(1, accounting)));
    sections.push(Section::fixed(section("now", &json!({"phase": task.phase, "round": task.round}))));
    sections.extend(budget(view).map(Section::fixed));
    sections
}

fn roster(rank: u8, members: &[MemberState]) -> Section<'_> {
    Section::new(rank, ROSTER, move |limit| {
        let shown = |longest: usize| -> String {
            let members: Vec<Value> = members
                .iter()
                .map(|m| {
                    let mut shown = json!({"domain": m.domain, "description": one_line(&m.description, longest)});
                    for (key, text) in [("trouble", &m.trouble), ("limit", &m.limit)] {
                        if let (Some(text), Some(map)) = (text, shown.as_object_mut()) {
                            map.insert(key.to_owned(), one_line(text, TROUBLE).into());
                        }
                    }
                    shown
                })
                .collect();
            section("roster", &Value::Array(members))
        };
        let whole = shown(usize::MAX);
        if whole.len() <= limit {
            return Written { text: whole, left_out: None };
        }
        let left_out = Some(format!("roster: descriptions beyond {SHORT} characters"));
        Written { text: shown(SHORT), left_out }
    })
}

/// The limit that is near, or the reason to conclude. The time limit has no numbers, because they depend on the
/// clock and prompts must be reproducible.
fn budget(view: &DirectorView) -> Option<String> {
    let clockless = |text: &str| match text.split_once("time: ") {
        Some((before, _)) => format!("{before}time"),
        None => text.to_owned(),
    };
    let near = view.warning.as_deref().map(|w| format!("A limit is near: {}.", one_line(&clockless(w), 200)));
    let stop = view.stop_reason.as_deref().map(|r| {
        let reason = one_line(&clockless(r), 400);
        format!("The investigation must conclude now: {reason}.")
    });
    let lines: Vec<String> = near.into_iter().chain(stop).collect();
    (!lines.is_empty()).then(|| text_section("budget", &lines.join("\n")))
}

fn plan(view: &DirectorView, form: PlanForm) -> Result<Answer, Vec<String>> {
    let mut faults = Faults::default();
    let text = faults.text("/question", &form.question);
    let roster: Vec<&str> = view.roster.iter().map(|m| m.domain.as_str()).collect();
    let mut to: Vec<Domain> = Vec::new();
    for (i, name) in form.to.iter().enumerate() {
        match Domain::new(name.trim()).ok().filter(|d| roster.contains(&d.as_str())) {
            Some(domain) if to.contains(&domain) => {}
            Some(domain) => to.push(domain),
            None => {
                let what =
                    format!("{:?} is not on the roster: write some of {}", one_line(name, 40), roster.join(", "));
                faults.add(format!("/to/{i}"), what);
            }
        }
    }
    let follow = form.follow.iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let follow = follow.take(FOLLOW).collect();
    let takes_up = form.takes_up.iter().enumerate().filter_map(|(i, text)| {
        let found = view.leads.iter().find(|lead| lead.lead.id.as_str() == text.trim());
        if found.is_none() {
            faults.add(format!("/takes_up/{i}"), format!("{:?} is not a lead in the sections", one_line(text, 40)));
        }
        found.map(|lead| lead.lead.id.clone())
    });
    let takes_up = takes_up.collect();
    faults.or(Answer::Plan(Plan { question: Question { text, to, follow }, takes_up }))
}

fn decide(form: DecideForm) -> Result<Answer, Vec<String>> {
    let mut faults = Faults::default();
    let reason = faults.text("/reason", &form.reason);
    faults.or(Answer::Decide(Decision { next: form.next, reason }))
}

fn report(view: &DirectorView, form: ReportForm) -> Result<Answer, Vec<String>> {
    let mut faults = Faults::default();
    let summary = faults.text("/summary", &form.summary);
    let root_cause = faults.text("/root_cause", &form.root_cause);
    let findings = faults.findings("/findings", &form.findings, &known(view));
    let texts = |all: Vec<String>| all.into_iter().filter(|text| !text.trim().is_empty()).collect();
    faults.or(Answer::Report(Conclusion {
        verdict: form.verdict,
        summary,
        root_cause,
        actions: texts(form.actions),
        open_questions: texts(form.open_questions),
        findings,
    }))
}

fn known(view: &DirectorView) -> BTreeSet<FindingId> {
    let journal = view.journal.iter().flat_map(|e| &e.entry.citations);
    let timeline = view.timeline.iter().flat_map(|t| t.events.iter().flat_map(|e| &e.findings));
    let review = view.review.iter().flat_map(|r| {
        r.findings.iter().flat_map(|f| f.corroborated_by.iter().chain(&f.contradicted_by).chain([&f.finding.id]))
    });
    let credible = view.credible.iter().map(|f| &f.finding.id);
    journal.chain(timeline).chain(review).chain(credible).cloned().collect()
}

#[cfg(test)]
mod tests;
