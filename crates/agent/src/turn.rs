//! The turn loop of a task as a state machine without side effects. After a crash it continues from the recorded
//! calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use casebook_protocol::{
    AGAIN, Allowance, Answer, CallId, CallStatus, Citation, FindingDraft, Purpose, TaskId, TaskKind, Toolset, Usage,
};

use crate::reasoner::{Action, Asking, CallRequest, Done, Exchange, Past};

#[derive(Debug)]
pub enum Input {
    Action(Action),
    Called(Box<Done>),
    Replied(Box<Exchange>),
    /// The task's time is nearly over, so no request with tools is made.
    Late,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Think {
        last: bool,
    },
    Ask(Box<Asking>),
    Call {
        id: CallId,
        request: CallRequest,
        /// The call fails with this message without being made.
        refused: Option<String>,
    },
    Finish(Result<Box<Answer>, String>),
}

#[derive(Debug)]
pub struct TurnLoop {
    task: TaskId,
    kind: TaskKind,
    allowance: Allowance,
    tools: BTreeMap<String, bool>,
    turn: u32,
    calls: u32,
    open: BTreeSet<CallId>,
    past: Past,
    used: Usage,
    /// The limit that is near, so that the next model call must be the last one.
    hurry: Option<String>,
    /// The answer, while calls that check its citations are running.
    held: Option<Box<Answer>>,
    /// The answer that counts if no further one comes.
    stands: Option<Box<Answer>>,
    corrected: u32,
}

impl TurnLoop {
    #[must_use]
    pub fn new(task: TaskId, kind: TaskKind, allowance: Allowance, toolset: &Toolset) -> Self {
        let tools = toolset.tools.iter().map(|t| (t.name.clone(), t.repeatable)).collect();
        Self {
            task,
            kind,
            allowance,
            tools,
            turn: 1,
            calls: 0,
            open: BTreeSet::new(),
            past: Past::default(),
            used: Usage::default(),
            hurry: None,
            held: None,
            stands: None,
            corrected: 0,
        }
    }

    /// The findings that were corrected after code returned them.
    pub const fn corrected(&self) -> u32 {
        self.corrected
    }

    pub fn done(&self) -> &[Done] {
        &self.past.done
    }

    pub const fn past(&self) -> &Past {
        &self.past
    }

    pub const fn used(&self) -> Usage {
        self.used
    }

    /// The limits that it has reached.
    pub fn limits(&self) -> Vec<String> {
        let Allowance { turns, tool_calls, .. } = self.allowance;
        let mut all: Vec<String> = self.hurry.iter().cloned().collect();
        if self.calls >= tool_calls {
            all.push(format!("{tool_calls} tool calls"));
        }
        if self.turn >= turns {
            all.push(format!("{turns} turns"));
        }
        let cut = self.past.done.iter().filter(|done| cut_by_tool(done)).count();
        if cut > 0 {
            all.push(format!("{cut} results of sql without all rows"));
        }
        all
    }

    pub fn begin(&self) -> Vec<Effect> {
        vec![Effect::Think { last: self.last() }]
    }

    fn last(&self) -> bool {
        self.turn >= self.allowance.turns
            || self.calls >= self.allowance.tool_calls
            || self.tools.is_empty()
            || self.hurry.is_some()
    }

    pub fn step(&mut self, input: Input) -> Vec<Effect> {
        match input {
            Input::Action(Action::GiveUp(reason)) => self.ended(reason),
            Input::Action(Action::Ask(asking)) => self.ask(asking),
            Input::Replied(exchange) => self.replied(*exchange),
            Input::Late => self.in_a_hurry(format!("{} s", self.allowance.seconds)),
            Input::Action(Action::Answer(answer)) => self.answered(answer),
            Input::Action(Action::Corrected(answer, corrected)) => {
                self.corrected = corrected;
                self.answered(answer)
            }
            Input::Action(Action::Call(requests)) if self.last() => {
                let asked: Vec<_> = requests.into_iter().map(|r| r.tool).collect();
                self.ended(format!(
                    "asked for {} when no more tool call was granted, and gave no answer",
                    asked.join(", ")
                ))
            }
            Input::Action(Action::Call(requests)) if requests.is_empty() => {
                self.ended("neither called a tool nor answered".into())
            }
            Input::Action(Action::Call(requests)) => self.call(requests),
            Input::Called(done) => self.called(*done),
        }
    }

    /// Asks if the most expensive reply is within the limits. If only one more call fits, it is the last one and
    /// offers no tools, so that there is room for an answer.
    fn ask(&mut self, asking: Box<Asking>) -> Vec<Effect> {
        self.stands.clone_from(&asking.stands);
        let one_fits = self.over(&asking.most, 1);
        let two_fit = self.over(&asking.most, 2);
        match (one_fits, two_fit) {
            (Some(limit), _) => self.ended(format!("no further model call is allowed: {limit}")),
            (None, Some(limit)) if !self.last() => self.in_a_hurry(limit),
            (None, _) => vec![Effect::Ask(asking)],
        }
    }

    /// Ends without a further answer.
    fn ended(&mut self, reason: String) -> Vec<Effect> {
        match self.stands.take() {
            Some(answer) => self.answered(answer),
            None => vec![Effect::Finish(Err(reason))],
        }
    }

    fn in_a_hurry(&mut self, limit: String) -> Vec<Effect> {
        self.hurry = Some(limit);
        vec![Effect::Think { last: true }]
    }

    /// The limit that `calls` more calls could exceed, each of which uses `most`.
    fn over(&self, most: &Usage, calls: u64) -> Option<String> {
        let Allowance { model_calls, tokens, cost_micros, .. } = self.allowance;
        let asked = self.past.asked.len() as u64;
        let per_call = most.input_tokens.saturating_add(most.output_tokens);
        let used = self.used.input_tokens.saturating_add(self.used.output_tokens);
        let check = |what: &str, used: u64, each: u64, limit: u64| {
            (used.saturating_add(each.saturating_mul(calls)) > limit)
                .then(|| format!("{what}: {used} of {limit} used, and the next call could use {each}"))
        };
        check("model calls", asked, 1, u64::from(model_calls))
            .or_else(|| check("tokens", used, per_call, tokens))
            .or_else(|| check("cost in millionths", self.used.cost_micros, most.cost_micros, cost_micros))
    }

    fn replied(&mut self, exchange: Exchange) -> Vec<Effect> {
        self.used += exchange.call.usage;
        // A recorded reply may be from a worker that still had time for tools.
        self.hurry = self.hurry.take().filter(|_| exchange.call.purpose != Purpose::Turn);
        Arc::make_mut(&mut self.past.asked).push(exchange);
        vec![Effect::Think { last: self.last() }]
    }

    fn call(&mut self, requests: Vec<CallRequest>) -> Vec<Effect> {
        let turn = self.turn;
        self.turn += 1;
        let mut effects = Vec::new();
        for (request, place) in requests.into_iter().zip(0..) {
            let id = CallId::of(&self.task, turn, place);
            let refused = if self.calls >= self.allowance.tool_calls {
                Some(format!(
                    "the limit of {} tool calls is reached; answer with what you have",
                    self.allowance.tool_calls
                ))
            } else if self.tools.contains_key(&request.tool) {
                None
            } else {
                let known: Vec<_> = self.tools.keys().map(String::as_str).collect();
                Some(format!("expected a tool of your toolset ({1}), got {0:?}", request.tool, known.join(", ")))
            };
            self.calls += 1;
            self.open.insert(id.clone());
            effects.push(Effect::Call { id, request, refused });
        }
        effects
    }

    fn called(&mut self, done: Done) -> Vec<Effect> {
        if !self.open.remove(&done.call.id) {
            return Vec::new();
        }
        let all = Arc::make_mut(&mut self.past.done);
        all.push(done);
        if !self.open.is_empty() {
            return Vec::new();
        }
        all.sort_by_key(|d| order(&d.call.id));
        match self.held.take() {
            Some(answer) => vec![Effect::Finish(Ok(answer))],
            None => vec![Effect::Think { last: self.last() }],
        }
    }

    /// Checks the kind of an answer. Code repeats the queries of its count, aggregate and absence citations first
    /// (rule "citation check").
    fn answered(&mut self, mut answer: Box<Answer>) -> Vec<Effect> {
        if answer.kind() != self.kind {
            return vec![Effect::Finish(Err(format!(
                "answered a {} task as if it were {}",
                self.kind.name(),
                answer.kind().name()
            )))];
        }
        let Answer::Investigate(findings) = answer.as_mut() else {
            return vec![Effect::Finish(Ok(answer))];
        };
        let mut again: BTreeMap<CallId, CallId> = BTreeMap::new();
        let mut effects = Vec::new();
        for citation in findings.iter_mut().flat_map(|f: &mut FindingDraft| f.citations.iter_mut()) {
            if matches!(citation, Citation::Literal { .. }) {
                continue;
            }
            let Some(first) =
                self.past.done.iter().find(|d| d.call.id == *citation.call() && d.call.status == CallStatus::Answered)
            else {
                continue;
            };
            if self.tools.get(&first.call.tool) != Some(&true) {
                continue;
            }
            let place = u32::try_from(again.len()).unwrap_or(u32::MAX);
            let id = again.entry(first.call.id.clone()).or_insert_with(|| {
                let id = CallId::of(&self.task, self.turn + AGAIN, place);
                let request = CallRequest { tool: first.call.tool.clone(), arguments: first.call.arguments.clone() };
                effects.push(Effect::Call { id: id.clone(), request, refused: None });
                id
            });
            *citation = citation.clone().called_again_as(id.clone());
        }
        if effects.is_empty() {
            return vec![Effect::Finish(Ok(answer))];
        }
        self.open.extend(again.into_values());
        self.held = Some(answer);
        effects
    }
}

/// The tool's own limit cut this result, not one that the caller chose.
fn cut_by_tool(done: &Done) -> bool {
    let chosen =
        || serde_json::from_str::<serde_json::Value>(&done.call.arguments).is_ok_and(|a| a.get("limit").is_some());
    done.call.tool == "sql" && done.result.contains(r#""truncated":true"#) && !chosen()
}

/// Turn and place as numbers, since `t10` sorts before `t2`.
pub(crate) fn order(id: &CallId) -> (u32, u32) {
    let mut parts = id.as_str().rsplit('.');
    let place = parts.next().and_then(|p| p.parse().ok()).unwrap_or(0);
    let turn = parts.next().and_then(|t| t.strip_prefix('t')).and_then(|t| t.parse().ok()).unwrap_or(0);
    (turn, place)
}

#[cfg(test)]
mod tests;
