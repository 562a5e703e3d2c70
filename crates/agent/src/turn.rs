//! The turn loop of a task as a machine: it decides what comes next and does nothing itself, so that
//! what a crash interrupts goes on from the recorded calls (design, section 4).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use casebook_protocol::{
    Allowance, Answer, CallId, CallStatus, Citation, FindingDraft, Purpose, TaskId, TaskKind, Toolset, Usage,
};

use crate::reasoner::{Action, Asking, CallRequest, Done, Exchange, Past};

/// What came about.
#[derive(Debug)]
pub enum Input {
    Action(Action),
    Called(Box<Done>),
    Replied(Box<Exchange>),
    /// The task's time is nearly over: a request that offers tools is not made any more.
    Late,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Ask the reasoner for its next move; `last` says that no more tool call will be granted.
    Think {
        /// No tools are offered any more.
        last: bool,
    },
    Ask(Box<Asking>),
    /// Make a call, or take its recorded result.
    Call {
        id: CallId,
        request: CallRequest,
        /// It may be made; otherwise it fails with this message.
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
    /// What the model calls used.
    used: Usage,
    /// A limit is so near that the next model call has to be the last one.
    hurry: bool,
    /// The answer that waits for the calls that its citations are checked by.
    held: Option<Box<Answer>>,
}

impl TurnLoop {
    /// The loop of a task that may call the tools of `toolset`.
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
            hurry: false,
            held: None,
        }
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

    pub fn begin(&self) -> Vec<Effect> {
        vec![Effect::Think { last: self.last() }]
    }

    fn last(&self) -> bool {
        self.turn >= self.allowance.turns
            || self.calls >= self.allowance.tool_calls
            || self.tools.is_empty()
            || self.hurry
    }

    pub fn step(&mut self, input: Input) -> Vec<Effect> {
        match input {
            Input::Action(Action::GiveUp(reason)) => vec![Effect::Finish(Err(reason))],
            Input::Action(Action::Ask(asking)) => self.ask(asking),
            Input::Replied(exchange) => self.replied(*exchange),
            Input::Late => self.in_a_hurry(),
            Input::Action(Action::Answer(answer)) => self.answered(answer),
            Input::Action(Action::Call(requests)) if self.last() => {
                let asked: Vec<_> = requests.into_iter().map(|r| r.tool).collect();
                vec![Effect::Finish(Err(format!(
                    "asked for {} when no more tool call was granted, and gave no answer",
                    asked.join(", ")
                )))]
            }
            Input::Action(Action::Call(requests)) if requests.is_empty() => {
                vec![Effect::Finish(Err("neither called a tool nor answered".into()))]
            }
            Input::Action(Action::Call(requests)) => self.call(requests),
            Input::Called(done) => self.called(*done),
        }
    }

    /// Asks, if what the reply can cost at the most is within the limits. The call before the last one
    /// that fits is the last in which tools could be called, so that there is room for an answer.
    fn ask(&mut self, asking: Box<Asking>) -> Vec<Effect> {
        let one_fits = self.over(&asking.most, 1);
        let two_fit = self.over(&asking.most, 2);
        match (one_fits, two_fit) {
            (Some(limit), _) => vec![Effect::Finish(Err(format!("it may not ask a model again: {limit}")))],
            (None, Some(_)) if !self.last() => self.in_a_hurry(),
            (None, _) => vec![Effect::Ask(asking)],
        }
    }

    fn in_a_hurry(&mut self) -> Vec<Effect> {
        self.hurry = true;
        vec![Effect::Think { last: true }]
    }

    /// The limit that `calls` more calls, each using `most`, could pass.
    fn over(&self, most: &Usage, calls: u64) -> Option<String> {
        let Allowance { model_calls, tokens, cost_micros, .. } = self.allowance;
        let asked = self.past.asked.len() as u64;
        let per_call = most.input_tokens.saturating_add(most.output_tokens);
        let used = self.used.input_tokens.saturating_add(self.used.output_tokens);
        let say = |what: &str, used: u64, each: u64, limit: u64| {
            (used.saturating_add(each.saturating_mul(calls)) > limit)
                .then(|| format!("{what}: {used} of {limit} used, and the next call could take {each}"))
        };
        say("model calls", asked, 1, u64::from(model_calls))
            .or_else(|| say("tokens", used, per_call, tokens))
            .or_else(|| say("cost in millionths", self.used.cost_micros, most.cost_micros, cost_micros))
    }

    fn replied(&mut self, exchange: Exchange) -> Vec<Effect> {
        self.used += exchange.call.usage;
        // Another had time for tools where this one hurried: what it recorded is what goes on.
        self.hurry &= exchange.call.purpose != Purpose::Turn;
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
                    "no more than {} tool calls are granted: answer with what you have",
                    self.allowance.tool_calls
                ))
            } else if self.tools.contains_key(&request.tool) {
                None
            } else {
                let known: Vec<_> = self.tools.keys().map(String::as_str).collect();
                Some(format!("there is no tool {:?} in your toolset, which has {}", request.tool, known.join(", ")))
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

    /// An answer of the kind asked for; the queries that its citations count or find empty are made
    /// once more, by code, before it counts (rule 3.2).
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
                let id = CallId::of(&self.task, self.turn + 1000, place);
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

/// Turn and place as numbers, since `t10` sorts before `t2`.
fn order(id: &CallId) -> (u32, u32) {
    let mut parts = id.as_str().rsplit('.');
    let place = parts.next().and_then(|p| p.parse().ok()).unwrap_or(0);
    let turn = parts.next().and_then(|t| t.strip_prefix('t')).and_then(|t| t.parse().ok()).unwrap_or(0);
    (turn, place)
}

#[cfg(test)]
mod tests;
