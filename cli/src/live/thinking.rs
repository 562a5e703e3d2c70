//! What models do, for a person: one line a task that says who thought, and one for each call that
//! failed; every call only where that is asked for.

use std::collections::BTreeSet;
use std::time::Duration;

use casebook_protocol::{ModelCall, Purpose, TaskId, Usage, between};

use crate::screen::{DIM, YELLOW, paint, safe};
use casebook_report::words;

#[derive(Debug, Default)]
pub(super) struct Thinking {
    models: BTreeSet<String>,
    usage: Usage,
    time: Duration,
    repaired: bool,
}

impl Thinking {
    /// Takes a finished call in.
    pub(super) fn add(&mut self, call: &ModelCall) {
        if call.failed.is_none() {
            self.models.insert(call.model.clone());
        }
        self.usage += call.usage;
        self.time += between(call.started, call.ended);
        self.repaired |= call.purpose == Purpose::Repair;
    }

    pub(super) fn sum(&self, task: &TaskId) -> String {
        let models: Vec<&str> = self.models.iter().map(String::as_str).collect();
        let models = if models.is_empty() { "no model answered".to_owned() } else { safe(&models.join(", "), 80) };
        let repaired = if self.repaired { ", one repair" } else { "" };
        format!(
            "{task}: {models}, {}{repaired}, {}, {}",
            words::count(self.usage.model_calls, "call"),
            spent(&self.usage),
            words::seconds(self.time)
        )
    }
}

/// A call: one that failed is always told, another only where every call is.
pub(super) fn call(call: &ModelCall, every_call: bool) -> Option<String> {
    if let Some(why) = &call.failed {
        return Some(paint(YELLOW, format_args!("{} failed: {}", call.id, safe(why, super::REASON))));
    }
    every_call.then(|| {
        let purpose = match call.purpose {
            Purpose::Turn => "",
            Purpose::Last => ", the last turn",
            Purpose::Repair => ", a repair",
        };
        let text = format!(
            "{} {}{purpose}: {}, {}",
            call.id,
            safe(&call.model, 64),
            spent(&call.usage),
            words::seconds(between(call.started, call.ended))
        );
        paint(DIM, text)
    })
}

/// Tokens and money.
pub(crate) fn spent(usage: &Usage) -> String {
    format!(
        "{} tokens in ({} cached), {} out, cost {}",
        usage.input_tokens,
        words::share(usage.cached_tokens, usage.input_tokens),
        usage.output_tokens,
        words::money(usage.cost_micros)
    )
}

#[cfg(test)]
mod tests {
    use casebook_protocol::{ModelCallId, Timestamp};

    use super::*;

    fn made(purpose: Purpose, failed: Option<&str>) -> ModelCall {
        let mut call = ModelCall::new(ModelCallId::new("r1.plan.m1").unwrap(), "big\u{1b}", "plan 1", purpose);
        call.usage =
            Usage { input_tokens: 1000, cached_tokens: 250, output_tokens: 10, cost_micros: 1_500, ..call.usage };
        let (failed, ended) = (failed.map(str::to_owned), Timestamp::from_second(2).unwrap());
        ModelCall { failed, ended, ..call }
    }

    fn shown(text: Option<String>) -> Option<String> {
        text.map(|text| anstream::adapter::strip_str(&text).to_string())
    }

    #[test]
    fn a_task_is_one_line_and_a_failed_call_is_always_told() {
        let mut all = Thinking::default();
        all.add(&made(Purpose::Turn, None));
        all.add(&made(Purpose::Repair, None));
        let task = TaskId::new("r1.plan").unwrap();
        assert_eq!(
            all.sum(&task),
            "r1.plan: big⟨U+001B⟩, 2 calls, one repair, 2000 tokens in (25 % cached), 20 out, cost 0.0030, 4.0 s"
        );
        assert_eq!(shown(call(&made(Purpose::Turn, None), false)), None);
        assert_eq!(
            shown(call(&made(Purpose::Last, None), true)).unwrap(),
            "r1.plan.m1 big⟨U+001B⟩, the last turn: 1000 tokens in (25 % cached), 10 out, cost 0.0015, 2.0 s"
        );
        assert_eq!(shown(call(&made(Purpose::Turn, Some("no\nway")), false)).unwrap(), "r1.plan.m1 failed: no way");
    }
}
