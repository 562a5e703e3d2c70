//! Custom prompts in place of the built-in ones, one file per task, to try other wordings in a backtest.

use std::collections::BTreeMap;
use std::sync::Arc;

use casebook_protocol::rubric::{COHERENCE_RUBRIC, CONSOLIDATION_RULES, CREDIBILITY_RUBRIC};
use casebook_protocol::timeline::{MAX_EVENTS, MAX_GAPS};
use casebook_protocol::{Answer, FindingDraft, MAX_LEADS, Task, TaskKind, one_line};
use casebook_trust::rule::{CAP_SINGLE_SOURCE, CAP_UNSUPPORTED, TIMELINE_THRESHOLD};
use serde_json::Value;

use crate::model::brief::{Brief, Briefing};
use crate::model::prompt::{Prompt, SERVERS_PLACE, servers};
use crate::model::schema::AnswerForm;
use crate::reasoner::Done;

/// The longest accepted prompt, in bytes. Longer ones leave no room in small windows.
pub const MAX_PROMPT: usize = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {fault}")]
pub struct PromptError {
    pub file: String,
    pub fault: String,
}

const SERVERS_HERE: &str = "{{servers}}";

#[derive(Debug, Clone, PartialEq, Eq)]
struct Custom {
    name: String,
    system: String,
}

impl Custom {
    fn system(&self, task: &Task) -> String {
        self.system.replace(SERVERS_HERE, servers(task))
    }
}

/// Prompts by task. A task without one uses the built-in prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompts(BTreeMap<TaskKind, Custom>);

fn fills() -> [(&'static str, String); 10] {
    let score = |score: f64| format!("{score:.2}");
    [
        ("credibility", CREDIBILITY_RUBRIC.to_owned()),
        ("coherence", COHERENCE_RUBRIC.to_owned()),
        ("consolidation", CONSOLIDATION_RULES.to_owned()),
        ("unsupported", score(CAP_UNSUPPORTED)),
        ("single", score(CAP_SINGLE_SOURCE)),
        ("threshold", score(TIMELINE_THRESHOLD)),
        ("gaps", MAX_GAPS.to_string()),
        ("leads", MAX_LEADS.to_string()),
        ("events", MAX_EVENTS.to_string()),
        // Filled for each task.
        (SERVERS_PLACE, SERVERS_HERE.to_owned()),
    ]
}

impl Prompts {
    /// Adds the prompt file `file` (such as `plan.md`) with the content `text`.
    pub fn take(&mut self, file: &str, text: &str) -> Result<(), PromptError> {
        let refused = |fault: String| PromptError { file: one_line(file, 80), fault };
        let kind =
            TaskKind::ALL.into_iter().find(|kind| file.strip_suffix(".md") == Some(kind.name())).ok_or_else(|| {
                let names: Vec<String> = TaskKind::ALL.iter().map(|kind| format!("{}.md", kind.name())).collect();
                refused(format!("expected one of {}", names.join(", ")))
            })?;
        if text.len() > MAX_PROMPT {
            return Err(refused(format!("expected at most {MAX_PROMPT} bytes, got {}", text.len())));
        }
        let first = text.lines().next().unwrap_or_default();
        let name = first
            .strip_prefix(&format!("Casebook task: {} (prompt ", kind.name()))
            .and_then(|rest| rest.strip_suffix(')'))
            .filter(|name| !name.trim().is_empty() && !name.contains([')', '{']))
            .ok_or_else(|| {
                refused(format!(
                    "expected the first line `Casebook task: {kind} (prompt NAME VERSION)`, such as `Casebook task: {kind} (prompt {kind} 2)`",
                    kind = kind.name()
                ))
            })?;
        let fills = fills();
        let fills: Vec<(&str, &str)> = fills.iter().map(|(name, fill)| (*name, fill.as_str())).collect();
        placeholders(text, &fills).map_err(refused)?;
        let system = Prompt::filled(text, &fills);
        self.0.insert(kind, Custom { name: one_line(name, 80), system });
        Ok(())
    }

    pub fn kinds(&self) -> impl Iterator<Item = TaskKind> {
        self.0.keys().copied()
    }
}

fn placeholders(text: &str, fills: &[(&str, &str)]) -> Result<(), String> {
    for (line, number) in text.lines().zip(1..) {
        for piece in line.split("{{").skip(1) {
            let name = piece.split_once("}}").map(|(name, _)| name);
            if name.is_none_or(|name| name != "team" && fills.iter().all(|(known, _)| *known != name)) {
                let known: Vec<&str> = ["team"].into_iter().chain(fills.iter().map(|(name, _)| *name)).collect();
                return Err(format!(
                    "line {number}: unknown placeholder {{{{{}}}}}; use one of {}",
                    one_line(name.unwrap_or(piece), 40),
                    known.join(", ")
                ));
            }
        }
    }
    Ok(())
}

/// A role with the prompts of [`Prompts`], or its built-in ones.
pub struct Reworded {
    pub brief: Arc<dyn Brief>,
    pub prompts: Option<Arc<Prompts>>,
    /// Appended, so that all prompts of a role begin alike.
    pub added: String,
}

impl Reworded {
    fn custom(&self, task: &Task) -> Option<&Custom> {
        self.prompts.as_ref().and_then(|prompts| prompts.0.get(&task.view.kind()))
    }

    /// The room that is left for the usual prompt.
    fn rest(&self, task: &Task, room: usize) -> usize {
        let room = room.saturating_sub(self.added.len());
        let longer =
            |custom: &Custom| custom.system(task).len().saturating_sub(self.brief.brief(task, room).system.len());
        room.saturating_sub(self.custom(task).map_or(0, longer))
    }
}

impl Brief for Reworded {
    fn brief(&self, task: &Task, room: usize) -> Briefing {
        let mut briefing = self.brief.brief(task, self.rest(task, room));
        if let Some(custom) = self.custom(task) {
            (briefing.prompt, briefing.system) = (custom.name.clone(), custom.system(task));
        }
        briefing.system.push_str(&self.added);
        briefing
    }

    fn form(&self, kind: TaskKind) -> Arc<AnswerForm> {
        self.brief.form(kind)
    }

    fn ready(&self) {
        self.brief.ready();
    }

    fn read(&self, task: &Task, done: &[Done], object: &Value, room: usize) -> Result<Answer, Vec<String>> {
        self.brief.read(task, done, object, self.rest(task, room))
    }

    fn returned(&self, task: &Task, done: &[Done], object: &Value) -> String {
        self.brief.returned(task, done, object)
    }

    fn mended(&self, task: &Task, done: &[Done], first: &Value, second: &Value) -> Option<(Answer, u32)> {
        self.brief.mended(task, done, first, second)
    }

    fn raised(&self, task: &Task, done: &[Done]) -> Vec<FindingDraft> {
        self.brief.raised(task, done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(file: &str, text: &str) -> String {
        Prompts::default().take(file, text).unwrap_err().to_string()
    }

    #[test]
    fn a_prompt_is_filled_in_and_named() {
        let mut prompts = Prompts::default();
        prompts.take("plan.md", "Casebook task: plan (prompt plan mine-2)\n{{team}}\n{{threshold}} or more\n").unwrap();
        let custom = &prompts.0[&TaskKind::Plan];
        assert_eq!(custom.name, "plan mine-2");
        assert!(
            custom.system.contains("# The team") && custom.system.ends_with("\n0.50 or more\n"),
            "{}",
            custom.system
        );
        assert_eq!(prompts.kinds().collect::<Vec<_>>(), [TaskKind::Plan]);
    }

    /// A role that says little and raises what it sees.
    struct Raising;

    impl Brief for Raising {
        fn brief(&self, _: &Task, _: usize) -> Briefing {
            Briefing { prompt: "plan 1".into(), system: "built in".into(), parts: Vec::new() }
        }

        fn form(&self, _: TaskKind) -> Arc<AnswerForm> {
            unreachable!("nothing is asked")
        }

        fn read(&self, _: &Task, _: &[Done], _: &Value, _: usize) -> Result<Answer, Vec<String>> {
            Err(Vec::new())
        }

        fn raised(&self, _: &Task, _: &[Done]) -> Vec<FindingDraft> {
            let finding = serde_json::json!({
                "kind": "instruction", "claim": "A record addresses the analyst.", "time": null, "entities": [],
                "bearing": "incriminating", "weight": "moderate", "about_alert": false, "technique": null,
                "confidence": 0.9, "citations": [], "look_next": null,
            });
            vec![serde_json::from_value(finding).unwrap()]
        }
    }

    #[test]
    fn other_words_take_nothing_from_what_code_raises() {
        let mut prompts = Prompts::default();
        prompts.take("plan.md", "Casebook task: plan (prompt plan mine)\nx\n").unwrap();
        let reworded = Reworded { brief: Arc::new(Raising), prompts: Some(Arc::new(prompts)), added: String::new() };
        let task = crate::model::dialogue::tests::task();
        assert_eq!(reworded.brief(&task, 1000).prompt, "plan mine");
        assert_eq!(reworded.raised(&task, &[]), Raising.raised(&task, &[]));
    }

    #[test]
    fn what_is_no_prompt_is_refused_with_what_to_write() {
        assert!(fault("plans.md", "x").contains("expected one of plan.md, investigate.md"));
        let first = fault("plan.md", "Casebook task: review (prompt review 1)\n");
        assert!(first.contains("`Casebook task: plan (prompt NAME VERSION)`"), "{first}");
        let unknown = fault("plan.md", "Casebook task: plan (prompt plan 2)\nx\n{{alert}}\n");
        assert!(
            unknown.starts_with("plan.md: line 3: unknown placeholder {{alert}}; use one of team, cred"),
            "{unknown}"
        );
        assert!(fault("plan.md", "Casebook task: plan (prompt plan 2)\n{{team\n").contains("line 2"));
        assert!(fault("plan.md", &"x".repeat(MAX_PROMPT + 1)).contains("got 65537"));
    }
}
