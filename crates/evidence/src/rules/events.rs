//! The rules over one source, which see an event once even if it has several lines.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::RuleSet;
use super::hits::Kept;
use super::pass::{Carried, SourcePass};
use crate::Format;
use crate::fields::auditd::event::Gather;

/// The number of the source, that of the record, and its time.
type At = ((i64, i64), Option<i64>);

#[derive(Debug)]
pub(crate) struct EventPass {
    pass: SourcePass,
    gather: Option<Gather<At>>,
}

impl EventPass {
    /// None if no rule can match a record of this source.
    pub(crate) fn new(rules: &Arc<RuleSet>, sensor: &str, file: &str, format: Format) -> Option<Self> {
        let gather = (format == Format::Auditd).then(Gather::default);
        Some(Self { pass: SourcePass::new(rules, sensor, file, format)?, gather })
    }

    /// Evaluates a record, or keeps it until its event is complete. `time` is in nanoseconds.
    pub(crate) fn add(&mut self, fields: &[(String, String)], bytes: &[u8], record: (i64, i64), time: Option<i64>) {
        let Self { pass, gather } = self;
        match gather {
            None => pass.add(fields, bytes, record, time),
            Some(gather) => gather.add((record, time), bytes, fields, &mut |((record, time), line, fields)| {
                pass.add(&fields, &line, record, time);
            }),
        }
    }

    /// Evaluates the events that are left at the end of the file.
    pub(crate) fn end(&mut self) {
        let Self { pass, gather } = self;
        if let Some(gather) = gather {
            gather.finish(&mut |((record, time), line, fields)| pass.add(&fields, &line, record, time));
        }
    }

    /// The hits for correlations since the last call.
    pub(crate) fn carried(&mut self) -> Vec<Carried> {
        self.pass.carried()
    }

    pub(crate) fn finish(self) -> BTreeMap<usize, Kept> {
        self.pass.finish()
    }
}
