//! The conversation of a task with a language model, as a pure function: the next step follows from the task, its
//! prompt and what it has done. A task that is repeated after a crash makes the same requests up to that point.

use casebook_protocol::{
    Answer, ArtifactId, CallId, CallStatus, ModelCall, ModelCallId, Purpose, Task, ToolSpec, Usage, View,
};
use serde_json::Value;

use crate::model::brief::{Brief, Briefing};
use crate::model::config::{ModelSelection, Profile, Way};
use crate::model::schema::{AnswerForm, Schema};
use crate::model::{Ask, Choice, Format, Message, Offer, Part, Reply, ToolAnswer, tokens};
use crate::reasoner::{Action, Asking, Done, Exchange, Past, Turn};
use crate::turn::order;
use crate::worker::JOURNAL_TOOL;
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
    /// The answer that counts if no further one comes.
    stands: Option<Answer>,
    /// The answer whose faulty findings were returned, as the model gave it.
    first: Option<Value>,
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
        let taken = self.past.asked.iter().find_map(|exchange| self.take(&mut walk, exchange, &form));
        match (taken.unwrap_or_else(|| self.ask(&walk)), walk.stands) {
            (Action::GiveUp(_), Some(answer)) => Action::Answer(Box::new(answer)),
            (action, _) => action,
        }
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
        let reading = read(reply, call.purpose, self.submit());
        if reading == Reading::Refused {
            walk.give_up_on(format!("model {} refused", call.model));
            return None;
        }
        let calls = reading::calls(reply, call.purpose, self.submit());
        let made = self.made(walk.turn, calls.len());
        if made.len() < calls.len() {
            return Some(Action::Call(calls));
        }
        walk.turn += u32::from(!calls.is_empty());
        match reading {
            Reading::Refused | Reading::Calls => {
                self.say(walk, reply, made, None);
                None
            }
            Reading::Object(object) => {
                let mut faults = form.faults(&object);
                if faults.is_empty() {
                    match self.brief.read(self.task, &self.past.done, &object, self.room_of(call, &walk.messages)) {
                        Ok(answer) => return self.answered(walk, reply, made, object, answer),
                        Err(more) => faults = more,
                    }
                }
                let submitted = reply.calls.iter().any(|c| c.tool == self.submit());
                if !made.is_empty() && !submitted {
                    // The text beside the calls is another object than an answer.
                    self.say(walk, reply, made, None);
                    return None;
                }
                self.faulty(walk, reply, made, call.purpose, &faults)
            }
            Reading::Nothing(fault) => self.faulty(walk, reply, made, call.purpose, &[fault]),
        }
    }

    /// The room of the prompt that a reply answers. None for a model that is not in the chain any more: what it was
    /// shown is not known.
    fn room_of(&self, call: &ModelCall, messages: &[Entry]) -> usize {
        let replied = self.selected.chain.iter().find(|profile| profile.name == call.model);
        replied.map_or(0, |profile| fit::room(self, profile, &self.frame(profile, call.purpose, messages)))
    }

    /// The finished calls of a turn, in order.
    fn made(&self, turn: u32, count: usize) -> Vec<&Done> {
        let done = |place| {
            let id = CallId::of(&self.task.id, turn, place);
            self.past.done.iter().find(|d| d.call.id == id)
        };
        (0..).take(count).map_while(done).collect()
    }

    /// The finished calls of the turns before `turn`.
    fn until(&self, turn: u32) -> Vec<Done> {
        self.past.done.iter().filter(|done| order(&done.call.id).0 < turn).cloned().collect()
    }

    /// Takes an answer, unless a call in the same reply failed or its faulty findings can still be returned.
    fn answered(
        &self,
        walk: &mut Walk,
        reply: &Reply,
        made: Vec<&Done>,
        object: Value,
        answer: Answer,
    ) -> Option<Action> {
        if made.iter().any(|done| done.call.status == CallStatus::Failed) {
            let text = "Your answer was not taken yet, because a call beside it failed. Correct the call if it matters, and give the whole answer again.";
            self.say(walk, reply, made, Some(text));
            walk.stands.get_or_insert(answer);
            return None;
        }
        // Later calls must not change what was said about an earlier answer.
        let done = self.until(walk.turn);
        if let Some(first) = &walk.first {
            let mended = self.brief.mended(self.task, &done, first, &object);
            let (answer, corrected) = mended.unwrap_or((answer, 0));
            return Some(Action::Corrected(Box::new(answer), corrected));
        }
        let returned = self.brief.returned(self.task, &done, &object);
        if returned.is_empty() {
            return Some(Action::Answer(Box::new(answer)));
        }
        self.say(walk, reply, made, Some(&returned));
        (walk.stands, walk.first, walk.repair) = (Some(answer), Some(object), false);
        None
    }

    /// An invalid answer: one repair, then a failure with its reasons.
    fn faulty(
        &self,
        walk: &mut Walk,
        reply: &Reply,
        made: Vec<&Done>,
        purpose: Purpose,
        faults: &[String],
    ) -> Option<Action> {
        let list = faults.iter().take(crate::model::schema::MAX_ERRORS).map(|f| format!("- {f}"));
        let list = list.collect::<Vec<_>>().join("\n");
        if purpose == Purpose::Repair || walk.first.is_some() {
            return Some(Action::GiveUp(format!("its answer is not valid, even after one repair:\n{list}")));
        }
        let text = format!(
            "Your answer cannot be used:\n{list}\nGive the whole answer again, corrected. This is the only repair, and no tools can be called any more."
        );
        self.say(walk, reply, made, Some(&text));
        walk.repair = true;
        None
    }

    /// Adds a reply with the results of its calls, and `text` about its answer.
    fn say(&self, walk: &mut Walk, reply: &Reply, made: Vec<&Done>, text: Option<&str>) {
        let mut reply = reply.clone();
        reply.calls.truncate(MOST_CALLS);
        if reply.calls.is_empty() && reply.text.trim().is_empty() {
            reply.text = "(no answer)".into();
        }
        let mut made = made.into_iter();
        let mut shown = Vec::new();
        let mut told = false;
        for asked in &reply.calls {
            let note =
                |text: &str| Shown::Note { id: asked.id.clone(), tool: asked.tool.clone(), text: text.to_owned() };
            shown.push(match text {
                Some(text) if asked.tool == self.submit() => {
                    told = true;
                    note(text)
                }
                _ => match made.next() {
                    Some(done) => Shown::Made { id: asked.id.clone(), done: self.numbered(done) },
                    None => note("not made"),
                },
            });
        }
        walk.messages.push(Entry::Reply(reply));
        walk.messages.extend((!shown.is_empty()).then_some(Entry::Results(shown)));
        walk.messages.extend(text.filter(|_| !told).map(|text| Entry::Ours(text.to_owned())));
    }

    /// The result of a call as the model reads it: that of a Journal entry gives the number that the Hub will give it.
    fn numbered(&self, done: &Done) -> Done {
        let (View::Plan(view) | View::Decide(view) | View::Report(view)) = &self.task.view else { return done.clone() };
        let entry = |d: &&Done| d.call.tool == JOURNAL_TOOL && d.call.status == CallStatus::Answered;
        if !entry(&done) {
            return done.clone();
        }
        let before = self.past.done.iter().filter(entry).take_while(|d| d.call.id != done.call.id).count();
        let number = view.journal.len() + before + 1;
        Done { result: format!(r#"{{"accepted":true,"number":{number}}}"#).into(), ..done.clone() }
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
        let stands = walk.stands.clone().map(Box::new);
        let request = ArtifactId::of(canonical.as_bytes());
        Ok(Asking { ask, request, bytes: canonical.len() as u64, most, time, stands })
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
