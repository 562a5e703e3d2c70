//! The rules over one source, which see an event once even if it has several lines.

use std::sync::Arc;

use super::RuleSet;
use super::pass::{BlockPass, SourceHits};
use crate::Format;
use crate::fields::auditd::event::Gather;

/// The number of the source, that of the record, and its time in nanoseconds.
type At = ((i64, i64), Option<i64>);

pub(crate) struct EventPass {
    rules: Arc<RuleSet>,
    pass: BlockPass,
    gather: Gather<At>,
}

impl EventPass {
    /// None if no rule can match a record of this source.
    pub(crate) fn new(rules: &Arc<RuleSet>, sensor: &str, file: &str, format: Format) -> Option<Self> {
        let pass = BlockPass::new(rules, sensor, file, format)?;
        Some(Self { rules: Arc::clone(rules), pass, gather: Gather::default() })
    }

    /// Keeps a line until its event is complete, and then adds the hits of the event.
    pub(crate) fn add(&mut self, fields: &[(String, String)], line: &[u8], at: At, hits: &mut SourceHits) {
        let Self { rules, pass, gather } = self;
        gather.add(at, line, fields, &mut |whole| evaluate(rules, pass, whole, hits));
    }

    /// Evaluates the events that are left at the end of the file.
    pub(crate) fn end(&mut self, hits: &mut SourceHits) {
        let Self { rules, pass, gather } = self;
        gather.finish(&mut |whole| evaluate(rules, pass, whole, hits));
    }
}

fn evaluate(
    rules: &RuleSet,
    pass: &mut BlockPass,
    ((record, time), line, fields): (At, Vec<u8>, Vec<(String, String)>),
    hits: &mut SourceHits,
) {
    pass.add(&fields, &line, 0);
    for met in pass.take() {
        hits.add(rules, met, record, time);
    }
}
