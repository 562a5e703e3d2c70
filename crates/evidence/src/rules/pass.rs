//! Evaluates a set of rules during loading: records first, source by source; correlations at the end, over the
//! hits of all sources in the order of time.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use memchr::memmem::Finder;

use super::correlate::{Correlator, Episode, Occurrence, Part, Place};
use super::explain::Explained;
use super::hits::{Group, GroupPart, Hit, Kept};
use super::matching::Seen;
use super::route::Router;
use super::view::{Columns, View};
use super::{Pattern, Rule, RuleSet, sigma};
use crate::{Format, decodings};

/// Bytes of a value that a correlation compares.
const VALUE_MAX: usize = 512;
/// Stops of services after which a log may be silent.
const STOPPED_MAX: usize = 1000;

/// A hit that correlations read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) rule: usize,
    pub(crate) at: Place,
    /// Those of the fields that [`RuleSet::carried`] names, packed.
    pub(crate) values: Vec<u8>,
}

/// Finds the rules that the records of one source meet.
#[derive(Debug)]
pub(crate) struct Evaluator {
    rules: Arc<RuleSet>,
    router: Router,
    columns: Columns,
    seen: Seen,
    whole: bool,
    audit: Finder<'static>,
}

impl Evaluator {
    /// None if no rule can match a record of this source.
    pub(crate) fn new(rules: &Arc<RuleSet>, sensor: &str, file: &str, format: Format) -> Option<Self> {
        let router = Router::new(rules, sensor, file)?;
        // The fields of these formats do not hold all words of a record.
        let whole = matches!(format, Format::KeyValue | Format::Cef | Format::ModSecurity | Format::CmTrace);
        Some(Self {
            rules: Arc::clone(rules),
            router,
            columns: Columns::default(),
            seen: Seen::default(),
            whole,
            audit: Finder::new("audit("),
        })
    }

    /// Calls `found` with the number of each rule that the record meets.
    fn each(&mut self, fields: &[(String, String)], bytes: &[u8], mut found: impl FnMut(usize, View<'_>, &RuleSet)) {
        let text = if self.whole { std::str::from_utf8(bytes).ok() } else { None };
        let fields = joined(fields, may_be_coded(bytes, &self.audit));
        let view = self.columns.read(&self.rules.slots, &fields, text);
        let Some(matchers) = self.router.matchers(&self.rules, view) else { return };
        matchers.matching(&self.rules, view, &mut self.seen).iter().for_each(|rule| found(*rule, view, &self.rules));
    }

    /// The numbers of the rules that the record meets: by one search, and by evaluating each rule.
    #[cfg(test)]
    pub(super) fn met_twice(&mut self, fields: &[(String, String)], bytes: &[u8]) -> (Vec<usize>, Vec<usize>) {
        let (mut quickly, mut slowly) = (Vec::new(), Vec::new());
        self.each(fields, bytes, |rule, _, _| quickly.push(rule));
        let text = if self.whole { std::str::from_utf8(bytes).ok() } else { None };
        let fields = joined(fields, true);
        let view = self.columns.read(&self.rules.slots, &fields, text);
        let sources = self.router.log_sources(&self.rules);
        let meets = |(_, matcher): &(&usize, &sigma::Matcher)| {
            matcher.logsource.meets(&sources) && matcher.matches_slowly(view)
        };
        slowly.extend(self.rules.matchers.iter().filter(meets).map(|(rule, _)| *rule));
        slowly.sort_unstable();
        (quickly, slowly)
    }

    pub(crate) fn met(&mut self, fields: &[(String, String)], bytes: &[u8]) -> Vec<Rule> {
        let mut met = Vec::new();
        self.each(fields, bytes, |rule, _, _| met.push(rule));
        met.into_iter().filter_map(|rule| self.rules.rule(rule)).cloned().collect()
    }
}

/// A rule that a record of a block meets.
#[derive(Debug)]
pub(crate) struct Met {
    rule: usize,
    /// The place of the record in its block.
    pub(crate) nth: usize,
    /// What correlations read; see [`Carried::values`].
    values: Option<Vec<u8>>,
}

/// The rules over blocks of one source.
#[derive(Debug)]
pub(crate) struct BlockPass {
    evaluator: Evaluator,
    met: Vec<Met>,
}

impl BlockPass {
    /// None if no rule can match a record of this source.
    pub(crate) fn new(rules: &Arc<RuleSet>, sensor: &str, file: &str, format: Format) -> Option<Self> {
        let evaluator = Evaluator::new(rules, sensor, file, format)?;
        Some(Self { evaluator, met: Vec::new() })
    }

    pub(crate) fn add(&mut self, fields: &[(String, String)], bytes: &[u8], nth: usize) {
        let met = &mut self.met;
        self.evaluator.each(fields, bytes, |rule, view, rules| {
            let value = |(_, slot): &(_, usize)| view.at(*slot).next().map(|v| crate::profile::cut(v, VALUE_MAX));
            let values = rules.carried.get(&rule).map(|wanted| wanted.iter().map(value).collect::<Vec<_>>());
            let values = values.map(|values| postcard::to_allocvec(&values).unwrap_or_default());
            met.push(Met { rule, nth, values });
        });
    }

    /// What the records of the block met.
    pub(crate) fn take(&mut self) -> Vec<Met> {
        std::mem::take(&mut self.met)
    }
}

/// The hits in one source.
#[derive(Debug, Default)]
pub(crate) struct SourceHits {
    kept: BTreeMap<usize, Kept>,
    carried: Vec<Carried>,
}

impl SourceHits {
    /// Adds a hit. The hits must come in the order of the records. `time` is in nanoseconds.
    pub(crate) fn add(&mut self, rules: &RuleSet, met: Met, (source, record): (i64, i64), time: Option<i64>) {
        let Met { rule, values, .. } = met;
        let at = Place { source, record, time: time.unwrap_or(0) };
        if rules.rule(rule).is_some_and(|r| !r.part) {
            self.kept.entry(rule).or_default().add(Hit { rule, at, timed: time.is_some(), group: None });
        }
        // A record without a time has no place among the others.
        self.carried.extend(values.filter(|_| time.is_some()).map(|values| Carried { rule, at, values }));
    }

    /// The hits for correlations since the last call.
    pub(crate) fn carried(&mut self) -> Vec<Carried> {
        std::mem::take(&mut self.carried)
    }

    pub(crate) fn finish(self) -> BTreeMap<usize, Kept> {
        self.kept
    }
}

/// Hits by rule and source of their last record.
type KeptBySource = BTreeMap<(usize, i64), Kept>;
/// The same, and whether some may be missing.
type Found = (KeptBySource, bool);

/// The correlations of a set, over hits in the order of time.
pub(crate) struct Correlations<'r> {
    rules: &'r RuleSet,
    correlator: Correlator<'r>,
    kept: KeptBySource,
    stopped: Vec<Episode>,
}

impl<'r> Correlations<'r> {
    /// None if there are no correlations.
    pub(crate) fn of(rules: &'r RuleSet) -> Option<Self> {
        let correlator = Correlator::new(&rules.plans);
        (!rules.plans.is_empty()).then(|| Self { rules, correlator, kept: BTreeMap::new(), stopped: Vec::new() })
    }

    pub(crate) fn add(&mut self, hit: &Carried) {
        let part = Part { rule: hit.rule, first: hit.at, last: hit.at, count: 1 };
        let names = self.rules.carried.get(&hit.rule).into_iter().flatten().map(|(name, _)| name.as_str());
        let values: Vec<Option<&str>> = postcard::from_bytes(&hit.values).unwrap_or_default();
        let values = names.zip(values).filter_map(|(name, value)| Some((name, Cow::Borrowed(value?)))).collect();
        self.correlator.add(Occurrence { part, values });
        let found = self.correlator.take();
        self.found(found);
    }

    fn found(&mut self, found: Vec<Episode>) {
        for episode in found {
            let pattern = self.rules.rule(episode.rule).and_then(|rule| rule.judgement.pattern);
            match pattern {
                Some(Pattern::ThenSilence) if self.stopped.len() < STOPPED_MAX => self.stopped.push(episode),
                Some(Pattern::ThenSilence) => {}
                _ => keep(self.rules, &mut self.kept, episode),
            }
        }
    }

    /// The hits by rule and source of their last record; and whether some may be missing, since there were too many groups.
    /// `silent` says whether the log of a place is silent after it, for a host that may be empty.
    pub(crate) fn finish<E>(mut self, mut silent: impl FnMut(Place, &str) -> Result<bool, E>) -> Result<Found, E> {
        let forgot = self.correlator.forgot;
        let open = std::mem::replace(&mut self.correlator, Correlator::new(&[])).finish();
        self.found(open);
        for mut episode in self.stopped {
            let host = episode.group.first().map(|(_, host)| host.clone()).unwrap_or_default();
            if silent(episode.last, &host)? {
                episode.group.retain(|(_, value)| !value.is_empty());
                keep(self.rules, &mut self.kept, episode);
            }
        }
        Ok((self.kept, forgot))
    }
}

fn keep(rules: &RuleSet, kept: &mut KeptBySource, episode: Episode) {
    if rules.rule(episode.rule).is_none_or(|rule| rule.part) {
        return;
    }
    let named = |part: &Part, name: fn(&super::Rule) -> &String| rules.rule(part.rule).map(name).cloned();
    let part = |part: &Part| GroupPart {
        rule: named(part, |rule| &rule.id).unwrap_or_default(),
        title: named(part, |rule| &rule.title).unwrap_or_default(),
        count: part.count,
        first: part.first.record,
        last: part.last.record,
    };
    let group = Group {
        by: episode.group,
        count: episode.count,
        first: (episode.first.record, episode.first.time),
        parts: episode.parts.iter().map(part).collect(),
    };
    let hit = Hit { rule: episode.rule, at: episode.last, timed: true, group: Some(Box::new(group)) };
    kept.entry((episode.rule, episode.last.source)).or_default().add(hit);
}

/// Whether a value may hold a `%`: the record has one, or what JSON, XML or an audit log may write for it.
pub(super) fn may_be_coded(bytes: &[u8], audit: &Finder<'_>) -> bool {
    memchr::memchr3(b'%', b'\\', b'#', bytes).is_some() || audit.find(bytes).is_some()
}

/// With what a record says in other words: a value that is encoded more than once, decoded as often as it is encoded;
/// and, of a sensor that stores a program and its arguments apart, the whole command line of each process.
///
/// Without `coded`, no value is encoded more than once.
fn joined(fields: &[(String, String)], coded: bool) -> Cow<'_, [(String, String)]> {
    let command = |(path, arguments): &(String, String)| {
        let of = path.strip_suffix(".arguments")?;
        let binary = format!("{of}.binary");
        let (_, program) = fields.iter().find(|(path, _)| *path == binary)?;
        Some((format!("{of}.commandline"), format!("{program} {arguments}")))
    };
    // Rules know values that are encoded once.
    let twice = |(path, value): &(String, String)| {
        let coded = memchr::memchr(b'%', value.as_bytes()).is_some() && value.contains("%25");
        coded.then(|| decodings(value).map(|text| (path.clone(), text)).collect::<Vec<_>>())
    };
    let mut more: Vec<(String, String)> = fields.iter().filter_map(command).collect();
    if coded {
        more.extend(fields.iter().filter_map(twice).flatten());
    }
    if more.is_empty() { Cow::Borrowed(fields) } else { Cow::Owned(fields.iter().cloned().chain(more).collect()) }
}

/// Why rules did or did not match one record.
impl RuleSet {
    /// For each rule of single records, why it matches the record or not; `Err` for a rule that is for other logs,
    /// with the log sources of the record.
    pub fn explain(
        &self,
        sensor: &str,
        file: &str,
        fields: &[(String, String)],
        wanted: &dyn Fn(&super::Rule) -> bool,
    ) -> Vec<(usize, Result<Explained, String>)> {
        let mut columns = Columns::default();
        let fields = joined(fields, true);
        let view = columns.read(&self.slots, &fields, None);
        let mut router = Router::new(self, sensor, file);
        let sources = router.as_mut().map(|router| {
            let _ = router.matchers(self, view);
            router.log_sources(self)
        });
        let sources = sources.unwrap_or_default();
        let all: HashMap<usize, &sigma::Matcher> = self.matchers.iter().map(|(n, m)| (*n, m)).collect();
        let mut numbers: Vec<usize> = all.keys().copied().collect();
        numbers.sort_unstable();
        let explained = numbers.into_iter().filter_map(|number| {
            let (rule, matcher) = (self.rule(number)?, all.get(&number)?);
            if !wanted(rule) {
                return None;
            }
            let meets = matcher.logsource.meets(&sources);
            Some((number, if meets { Ok(sigma::explained(matcher, view)) } else { Err(sources.to_string()) }))
        });
        explained.collect()
    }
}
