//! Joins rules to a set: finds the rules of correlations, and the fields that they need of them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;

use ahash::AHashMap;

use super::correlate::{Kind, Plan};
use super::sigma::{Body, Correlation, Document, Matcher};
use super::taxonomy::TAXONOMY;
use super::view::Slots;
use super::{Numbers, Pattern, Rule, RuleFault, RuleFile, RuleSet, hash, names};

const NANOSECONDS: i64 = 1_000_000_000;
/// Correlations of correlations of correlations.
const DEPTH_MAX: usize = 8;

/// Errors: Correlations that name unknown rules or, in the end, themselves.
pub(super) fn joined(read: Vec<(Rule, Document)>, files: &[RuleFile]) -> Result<RuleSet, Vec<RuleFault>> {
    let mut faults = Vec::new();
    let mut plans = Vec::new();
    let mut parts: HashMap<usize, bool> = HashMap::new();
    let known = names(&read);
    for (number, (rule, document)) in read.iter().enumerate() {
        let Body::Correlation(correlation) = &document.body else { continue };
        match plan(number, rule, correlation, &known) {
            Ok(plan) => {
                for part in &plan.rules {
                    *parts.entry(*part).or_insert(true) &= !correlation.generate;
                }
                plans.push(plan);
            }
            Err(what) => faults.push(fault(rule, what)),
        }
    }
    for plan in &plans {
        if let (false, Some((rule, _))) = (ends(plan, &plans, &mut Numbers::new(), 0), read.get(plan.rule)) {
            let what =
                format!("correlation.rules: it depends on itself, or on more than {DEPTH_MAX} correlations in a row");
            faults.push(fault(rule, what));
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    Ok(set(read, plans, &parts, files))
}

fn fault(rule: &Rule, what: String) -> RuleFault {
    RuleFault { file: rule.file.clone(), line: rule.line, what }
}

fn plan(number: usize, rule: &Rule, correlation: &Correlation, known: &HashMap<&str, usize>) -> Result<Plan, String> {
    let number_of = |name: &String| {
        let missing = || {
            let name = casebook_protocol::one_line(name, 80);
            format!("correlation.rules: no rule has the id or name \"{name}\"; add that rule")
        };
        known.get(name.as_str()).copied().ok_or_else(missing)
    };
    let rules: Vec<usize> = correlation.rules.iter().map(number_of).collect::<Result<_, String>>()?;
    let group = correlation.group_by.iter().map(|field| {
        let of_rule = |rule: &usize| {
            let named = field.of_rule.iter().find(|(name, _)| known.get(name.as_str()) == Some(rule));
            named.map_or_else(|| field.name.clone(), |(_, field)| field.clone())
        };
        (field.name.clone(), rules.iter().map(of_rule).collect())
    });
    let pattern = rule.judgement.pattern;
    let fits = match pattern {
        None => true,
        Some(Pattern::ImpossibleTravel) => correlation.kind == Kind::ValueCount && correlation.counted.len() == 2,
        Some(Pattern::EvenIntervals | Pattern::ThenSilence) => correlation.kind == Kind::EventCount,
    };
    if !fits {
        return Err(
            "casebook.pattern: expected an event_count, or for impossible_travel a value_count of latitude and \
                    longitude; change correlation.type"
                .into(),
        );
    }
    Ok(Plan {
        pattern,
        rule: number,
        kind: correlation.kind,
        group: group.collect(),
        counted: correlation.counted.clone(),
        span: i64::try_from(correlation.span_seconds).unwrap_or(i64::MAX / NANOSECONDS).saturating_mul(NANOSECONDS),
        condition: correlation.condition.clone(),
        rules,
    })
}

/// False if the correlations below `plan` form a circle.
fn ends(plan: &Plan, plans: &[Plan], above: &mut Numbers, depth: usize) -> bool {
    if depth > DEPTH_MAX || !above.insert(plan.rule) {
        return false;
    }
    let mut below = plans.iter().filter(|other| plan.rules.contains(&other.rule));
    let all = below.all(|other| ends(other, plans, above, depth + 1));
    above.remove(&plan.rule);
    all
}

fn set(read: Vec<(Rule, Document)>, plans: Vec<Plan>, parts: &HashMap<usize, bool>, files: &[RuleFile]) -> RuleSet {
    let mut slots = Slots::default();
    for field in TAXONOMY.logsource.iter().flat_map(|entry| entry.when.keys()) {
        slots.add(field);
    }
    let mut rules = Vec::new();
    let mut matchers: AHashMap<usize, Matcher> = AHashMap::new();
    for (number, (mut rule, document)) in read.into_iter().enumerate() {
        rule.part = parts.get(&number).copied().unwrap_or(false);
        rules.push(rule);
        if let Body::Detection(matcher) = document.body {
            for field in &matcher.fields {
                slots.add(field);
            }
            matchers.insert(number, *matcher);
        }
    }
    let mut carried: AHashMap<usize, Vec<(String, usize)>> = AHashMap::new();
    for plan in &plans {
        let mut fields: BTreeSet<&String> = plan.counted.iter().collect();
        fields.extend(plan.group.iter().flat_map(|(_, fields)| fields));
        let mut all = Numbers::new();
        below(plan, &plans, &mut all);
        for rule in all.into_iter().filter(|rule| matchers.contains_key(rule)) {
            let carried = carried.entry(rule).or_default();
            for field in &fields {
                if !carried.iter().any(|(known, _)| known == *field) {
                    carried.push(((*field).clone(), slots.add(field)));
                }
            }
        }
    }
    RuleSet { rules, matchers, plans, carried, slots, routes: Mutex::default(), hash: hash(files) }
}

/// The rules that `plan` depends on.
fn below(plan: &Plan, plans: &[Plan], all: &mut Numbers) {
    for rule in &plan.rules {
        if all.insert(*rule)
            && let Some(other) = plans.iter().find(|other| other.rule == *rule)
        {
            below(other, plans, all);
        }
    }
}
