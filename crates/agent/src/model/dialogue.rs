//! The conversation of a task with a language model, as a pure function: the next step follows from the task, its
//! prompt and what it has done. A task that is repeated after a crash makes the same requests up to that point.

use casebook_protocol::{ArtifactId, CallId, ModelCallId, Purpose, Task, ToolSpec, Usage};

use crate::model::brief::{Brief, Briefing};
use crate::model::config::{ModelSelection, Profile, Way};
use crate::model::schema::{AnswerForm, Schema};
use crate::model::{Ask, Choice, Format, Message, Offer, Part, Reply, ToolAnswer, tokens};
use crate::reasoner::{Action, Asking, CallRequest, Done, Exchange, Past, Turn};
use casebook_protocol::Tokens;

mod fit;
mod reading;

use reading::{Reading, read};

/// The most tool calls of one reply. More would be refused one by one.
pub const MOST_CALLS: usize = 64;
/// How often per task an unreadable reply is requested again from the same model.
const UNREADABLE: u32 = 1;

pub struct Dialogue<'a> {
    pub task: &'a Task,
    pub selected: &'a ModelSelection,
    pub brief: &'a dyn Brief,
    pub past: &'a Past,
    pub turn: &'a Turn,
}

#[derive(Default)]
struct Walk {
    messages: Vec<Entry>,
    /// Position in the chain of models.
    model: usize,
    /// The turn of the next tool calls, from 1.
    turn: u32,
    /// The next call is the repair.
    repair: bool,
    unreadable: u32,
    lost: Vec<String>,
}

enum Entry {
    Reply(Reply),
    /// Results of tool calls, of which as much is shown as fits.
    Results(Vec<Shown>),
    Ours(String),
}

enum Shown {
    Made { id: String, done: Done },
    Note { id: String, tool: String, text: String },
}

impl Dialogue<'_> {
    pub fn next(&self) -> Action {
        let form = self.brief.form(self.task.view.kind());
        let mut walk = Walk { turn: 1, ..Walk::default() };
        for exchange in self.past.asked.iter() {
            if let Some(thought) = self.take(&mut walk, exchange, &form) {
                return thought;
            }
        }
        self.ask(&walk)
    }

    /// Takes in one exchange. Returns an action if the exchange leads to one.
    fn take(&self, walk: &mut Walk, exchange: &Exchange, form: &AnswerForm) -> Option<Action> {
        let call = &exchange.call;
        let reply = match &exchange.result {
            Ok(reply) => reply.as_ref(),
            Err(crate::model::Fault::Unreadable) if walk.unreadable < UNREADABLE => {
                walk.unreadable += 1;
                return None;
            }
            Err(_) => {
                walk.give_up_on(call.failed.clone().unwrap_or_else(|| format!("model {} failed", call.model)));
                return None;
            }
        };
        match read(reply, call.purpose, self.submit()) {
            Reading::Refused => {
                walk.give_up_on(format!("model {} refused", call.model));
                None
            }
            Reading::Calls(requests) => self.called(walk, reply, requests),
            Reading::Object(object) => {
                let mut faults = form.faults(&object);
                if faults.is_empty() {
                    match self.brief.read(self.task, &self.past.done, &object) {
                        Ok(answer) => return Some(Action::Answer(Box::new(answer))),
                        Err(more) => faults = more,
                    }
                }
                self.faulty(walk, reply, call.purpose, &faults)
            }
            Reading::Nothing(fault) => self.faulty(walk, reply, call.purpose, &[fault]),
        }
    }

    fn called(&self, walk: &mut Walk, reply: &Reply, requests: Vec<CallRequest>) -> Option<Action> {
        let mut shown = Vec::new();
        for (asked, place) in reply.calls.iter().zip(0..).take(MOST_CALLS) {
            let id = CallId::of(&self.task.id, walk.turn, place);
            let Some(done) = self.past.done.iter().find(|d| d.call.id == id) else {
                return Some(Action::Call(requests));
            };
            shown.push(Shown::Made { id: asked.id.clone(), done: done.clone() });
        }
        let mut reply = reply.clone();
        reply.calls.truncate(MOST_CALLS);
        walk.messages.push(Entry::Reply(reply));
        walk.messages.push(Entry::Results(shown));
        walk.turn += 1;
        None
    }

    /// An invalid answer: one repair, then a failure with its reasons.
    fn faulty(&self, walk: &mut Walk, reply: &Reply, purpose: Purpose, faults: &[String]) -> Option<Action> {
        let list = faults.iter().take(crate::model::schema::MAX_ERRORS).map(|f| format!("- {f}"));
        let list = list.collect::<Vec<_>>().join("\n");
        if purpose == Purpose::Repair {
            return Some(Action::GiveUp(format!("its answer is not valid, even after one repair:\n{list}")));
        }
        let text = format!(
            "Your answer cannot be used:\n{list}\nGive the whole answer again, corrected. This is the only repair, and no tools can be called any more."
        );
        let mut reply = reply.clone();
        reply.calls.truncate(MOST_CALLS);
        if reply.calls.is_empty() {
            if reply.text.trim().is_empty() {
                reply.text = "(no answer)".into();
            }
            walk.messages.push(Entry::Reply(reply));
            walk.messages.push(Entry::Ours(text));
        } else {
            let note = |id: &str, tool: &str| Shown::Note {
                id: id.to_owned(),
                tool: tool.to_owned(),
                text: if tool == self.submit() { text.clone() } else { "not made".to_owned() },
            };
            let submitted = reply.calls.iter().any(|c| c.tool == self.submit());
            let notes = reply.calls.iter().map(|c| note(&c.id, &c.tool)).collect();
            walk.messages.push(Entry::Reply(reply));
            walk.messages.push(Entry::Results(notes));
            if !submitted {
                walk.messages.push(Entry::Ours(text));
            }
        }
        walk.repair = true;
        None
    }

    /// The name of the tool for the answer, different from the names of the task's tools.
    fn submit(&self) -> &'static str {
        if self.turn.toolset.tools.iter().any(|t| t.name == "submit") { "submit_answer" } else { "submit" }
    }

    /// The next request, for the first remaining model of the chain that has room.
    fn ask(&self, walk: &Walk) -> Action {
        let mut lost = walk.lost.clone();
        for profile in self.selected.chain.iter().skip(walk.model) {
            match self.request(walk, profile) {
                Ok(asking) => return Action::Ask(Box::new(asking)),
                Err(reason) => lost.push(reason),
            }
        }
        Action::GiveUp(lost.join("; then "))
    }

    fn request(&self, walk: &Walk, profile: &Profile) -> Result<Asking, String> {
        let purpose = match (walk.repair, self.turn.last) {
            (true, _) => Purpose::Repair,
            (false, true) => Purpose::Last,
            (false, false) => Purpose::Turn,
        };
        let frame = self.frame(profile, purpose, &walk.messages);
        let (briefing, messages) = fit::fit(self, walk, profile, &frame)?;
        let nth = u32::try_from(self.past.asked.len()).unwrap_or(u32::MAX).saturating_add(1);
        let ask = Ask {
            id: ModelCallId::of(&self.task.id, nth),
            model: profile.name.clone(),
            prompt: briefing.prompt.clone(),
            purpose,
            system: vec![Part { text: briefing.system.clone(), cache: true }],
            messages,
            tools: frame.tools,
            choice: frame.choice,
            format: frame.format,
            max_output: profile.max_output,
        };
        let canonical = ask.canonical();
        let input = tokens(canonical.len());
        let output = u64::from(profile.max_output);
        let worst = Tokens { input, output, ..Tokens::default() };
        let most = Usage {
            model_calls: 1,
            input_tokens: input,
            output_tokens: output,
            cost_micros: profile.price.map_or(0, |price| price.cost(&worst)),
            ..Usage::default()
        };
        // Time for a few attempts.
        let time = profile.timeout.saturating_mul(3);
        Ok(Asking { ask, request: ArtifactId::of(canonical.as_bytes()), bytes: canonical.len() as u64, most, time })
    }

    /// Tools, choice and format of a request. Tools stay listed if they may no longer be called, for the provider's
    /// cache, and since Anthropic requires the tools of all calls in the conversation.
    fn frame(&self, profile: &Profile, purpose: Purpose, messages: &[Entry]) -> Frame {
        let form = self.brief.form(self.task.view.kind());
        let tools: Vec<Offer> = self.turn.toolset.tools.iter().map(offer).collect();
        let open = purpose == Purpose::Turn && !tools.is_empty();
        let talked = messages.iter().any(|m| matches!(m, Entry::Results(_)));
        match profile.way {
            Way::Native => {
                let tools = if open || talked { tools } else { Vec::new() };
                Frame {
                    choice: if open || tools.is_empty() { Choice::Free } else { Choice::Nothing },
                    tools,
                    format: Some(Format { name: form.name.clone(), schema: form.wire.clone() }),
                }
            }
            Way::SubmitTool => {
                let submit = Offer {
                    name: self.submit().to_owned(),
                    description: format!("Gives your answer and ends the task. {}", form.description),
                    schema: form.wire.clone(),
                    strict: true,
                };
                if open {
                    Frame { tools: tools.into_iter().chain([submit]).collect(), choice: Choice::Free, format: None }
                } else {
                    Frame { choice: Choice::Only(submit.name.clone()), tools: vec![submit], format: None }
                }
            }
        }
    }
}

impl Walk {
    fn give_up_on(&mut self, reason: String) {
        self.model += 1;
        self.lost.push(reason);
    }
}

struct Frame {
    tools: Vec<Offer>,
    choice: Choice,
    format: Option<Format>,
}

fn offer(tool: &ToolSpec) -> Offer {
    let schema = Schema::read(&tool.input_schema);
    Offer { name: tool.name.clone(), description: tool.description.clone(), schema, strict: false }
}

#[cfg(test)]
pub(super) mod tests;
