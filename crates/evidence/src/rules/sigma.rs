//! The only module that uses the library for Sigma. It reads rules into our types and matches them.

mod condition;
mod needs;

use std::borrow::Cow;
use std::collections::BTreeSet;

use rsigma_eval::{CompiledRule, Event, EventValue, compile_rule, explain_rule};
use rsigma_parser::{
    ConditionExpr, ConditionOperator, CorrelationCondition, CorrelationRule, CorrelationType, Detection,
    Level as SigmaLevel, Quantifier, SigmaCollection, SigmaRule, SigmaValue, WindowMode, parse_sigma_yaml,
};
use serde_json::Value;

use super::correlate::{Condition, Joined, Kind, Operator};
use super::explain::Explained;
use super::needs::Needs;
use super::taxonomy::LogSource;
use super::view::View;
use super::{Level, text};
use condition::Test;

/// A YAML document with a rule.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) title: String,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) level: Level,
    pub(super) author: Option<String>,
    pub(super) references: Vec<String>,
    pub(super) tags: Vec<String>,
    pub(super) falsepositives: Vec<String>,
    /// The `casebook:` block.
    pub(super) casebook: Option<Value>,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    Detection(Box<Matcher>),
    Correlation(Correlation),
}

/// A rule about single records, ready to match.
#[derive(Debug, Clone)]
pub(super) struct Matcher {
    pub(super) logsource: LogSource,
    /// The Sigma fields that it reads.
    pub(super) fields: BTreeSet<String>,
    /// What a record must have to match.
    pub(super) needs: Needs,
    rule: CompiledRule,
    test: Test,
}

/// A correlation whose rules are named, not yet found.
#[derive(Debug, Clone)]
pub(super) struct Correlation {
    pub(super) kind: Kind,
    /// Ids or names of rules.
    pub(super) rules: Vec<String>,
    pub(super) group_by: Vec<GroupField>,
    pub(super) span_seconds: u64,
    pub(super) condition: Condition,
    /// The counted fields of a `value_count`.
    pub(super) counted: Vec<String>,
    /// The rules count on their own, too.
    pub(super) generate: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupField {
    pub(super) name: String,
    /// For a rule (by id or name), the field that holds it, if it has another name there.
    pub(super) of_rule: Vec<(String, String)>,
}

/// Longest regular expression; one of this length cannot use much memory.
const PATTERN_MAX: usize = 4096;
/// Most occurrences that a correlation can ask for.
pub(super) const COUNT_MAX: u64 = 10_000;
const REFERENCES_MAX: usize = 32;
const SPAN_MAX: u64 = 400 * 86_400;

/// Reads one YAML document.
///
/// Errors: Why it is not a rule that can be used, and what to write.
pub(super) fn read(yaml: &str) -> Result<Document, String> {
    let collection = parse_sigma_yaml(yaml).map_err(|e| text::advised(&e.to_string()))?;
    let SigmaCollection { rules, correlations, filters, errors } = collection;
    if let Some(error) = errors.first() {
        return Err(text::advised(error));
    }
    match (rules.into_iter().next(), correlations.into_iter().next(), filters.is_empty()) {
        (Some(rule), ..) => detection(rule),
        (_, Some(rule), _) => correlation(rule),
        (_, _, false) => {
            Err("expected a rule or a correlation, got a filter; write its exceptions into the rule".into())
        }
        _ => {
            Err("expected a rule with detection or correlation, got neither; write one, or delete the document".into())
        }
    }
}

fn detection(mut rule: SigmaRule) -> Result<Document, String> {
    let casebook = rule.custom_attributes.get("casebook").map(json);
    // They change how the library works, which is ours to decide.
    rule.custom_attributes.clear();
    let mut fields = BTreeSet::new();
    for detection in rule.detection.named.values() {
        collect(detection, &mut fields)?;
    }
    if rule.detection.named.is_empty() {
        return Err(
            "detection: expected a selection, got none; write one such as selection: with a field below it".into()
        );
    }
    if rule.detection.timeframe.is_some() {
        return Err("detection.timeframe: not supported; write a correlation rule (docs/rules.md)".into());
    }
    let mut compiled = compile_rule(&rule).map_err(|e| text::advised(&e.to_string()))?;
    // The library would copy them for each match.
    (compiled.title, compiled.id, compiled.tags) = Default::default();
    let known: Vec<&str> = compiled.detections.keys().map(String::as_str).collect();
    compiled.conditions.iter().try_for_each(|condition| selects(condition, &known))?;
    let own = |part: Option<String>| part.filter(|text| !text.trim().is_empty());
    let logsource = LogSource {
        product: own(rule.logsource.product),
        service: own(rule.logsource.service),
        category: own(rule.logsource.category),
    };
    if logsource == LogSource::default() {
        return Err(
            "logsource: expected a product, category or service; write one such as category: process_creation".into()
        );
    }
    Ok(Document {
        title: rule.title,
        id: rule.id,
        name: rule.name,
        level: level(rule.level),
        author: rule.author,
        references: rule.references,
        tags: rule.tags,
        falsepositives: rule.falsepositives,
        casebook,
        body: Body::Detection(Box::new(Matcher {
            logsource,
            fields,
            needs: needs::of_rule(&compiled),
            test: Test::of_rule(&compiled),
            rule: compiled,
        })),
    })
}

fn level(level: Option<SigmaLevel>) -> Level {
    match level {
        Some(SigmaLevel::Critical) => Level::Critical,
        Some(SigmaLevel::High) => Level::High,
        Some(SigmaLevel::Medium) | None => Level::Medium,
        Some(SigmaLevel::Low) => Level::Low,
        Some(SigmaLevel::Informational) => Level::Informational,
    }
}

fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Collects the fields of a detection.
fn collect(detection: &Detection, fields: &mut BTreeSet<String>) -> Result<(), String> {
    match detection {
        Detection::AllOf(items) => {
            for item in items {
                fields.extend(item.field.name.clone());
                let refers = item.field.has_modifier(rsigma_parser::Modifier::FieldRef);
                for value in &item.values {
                    if let SigmaValue::String(text) = value {
                        fields.extend(Some(text.original.clone()).filter(|_| refers));
                        short(&text.original, item.field.has_modifier(rsigma_parser::Modifier::Re))?;
                    }
                }
            }
            Ok(())
        }
        Detection::AnyOf(all) | Detection::And(all) => all.iter().try_for_each(|one| collect(one, fields)),
        Detection::Keywords(_) => Ok(()),
        Detection::ArrayMatch { .. } | Detection::Conditional { .. } => {
            Err("detection: conditions on members of a list are not supported; write the field without [any] or [all]"
                .into())
        }
    }
}

fn short(text: &str, pattern: bool) -> Result<(), String> {
    if pattern && text.len() > PATTERN_MAX {
        return Err(format!(
            "detection: the regular expression has {} characters; write at most {PATTERN_MAX}",
            text.len()
        ));
    }
    Ok(())
}

/// Whether each pattern of the condition selects something: `1 of filter_*` without such a filter never holds.
fn selects(condition: &ConditionExpr, known: &[&str]) -> Result<(), String> {
    match condition {
        ConditionExpr::And(all) | ConditionExpr::Or(all) => all.iter().try_for_each(|one| selects(one, known)),
        ConditionExpr::Not(one) => selects(one, known),
        ConditionExpr::Identifier(name) if !known.contains(&name.as_str()) => Err(text::unknown_selection(name, known)),
        ConditionExpr::Selector { pattern, quantifier } => {
            let selected = known.iter().filter(|name| pattern.matches_detection_name(name)).count() as u64;
            let enough = !matches!(quantifier, Quantifier::Count(wanted) if *wanted > selected);
            let pattern = pattern.to_string();
            if selected == 0 || !enough { Err(text::unknown_selection(&pattern, known)) } else { Ok(()) }
        }
        ConditionExpr::Identifier(_) => Ok(()),
    }
}

fn correlation(rule: CorrelationRule) -> Result<Document, String> {
    let casebook = rule.custom_attributes.get("casebook").map(json);
    let kind = match rule.correlation_type {
        CorrelationType::EventCount => Kind::EventCount,
        CorrelationType::ValueCount => Kind::ValueCount,
        CorrelationType::Temporal => Kind::Temporal,
        CorrelationType::TemporalOrdered => Kind::TemporalOrdered,
        _ => {
            let known = "event_count, value_count, temporal or temporal_ordered";
            return Err(format!("correlation.type: not supported; write {known}"));
        }
    };
    if rule.window != WindowMode::Sliding {
        return Err("correlation.window: not supported; delete it: the window slides".into());
    }
    if rule.rules.is_empty() || rule.rules.len() > REFERENCES_MAX {
        return Err(format!(
            "correlation.rules: expected 1 to {REFERENCES_MAX} ids or names of rules, got {}",
            rule.rules.len()
        ));
    }
    if rule.timespan.seconds == 0 || rule.timespan.seconds > SPAN_MAX {
        return Err("correlation.timespan: expected a time from 1s to 400d; write one such as 10m".into());
    }
    let (condition, counted) = condition(&rule, kind)?;
    let group_by = rule.group_by.iter().map(|name| {
        let alias = rule.aliases.iter().find(|alias| alias.alias == *name);
        let of_rule = alias.map(|alias| alias.mapping.clone().into_iter().collect()).unwrap_or_default();
        GroupField { name: name.clone(), of_rule }
    });
    let body = Correlation {
        kind,
        group_by: group_by.collect(),
        span_seconds: rule.timespan.seconds,
        condition,
        counted,
        generate: rule.generate,
        rules: rule.rules,
    };
    Ok(Document {
        title: rule.title,
        id: rule.id,
        name: rule.name,
        level: level(rule.level),
        author: rule.author,
        references: rule.references,
        tags: rule.tags,
        falsepositives: rule.falsepositives,
        casebook,
        body: Body::Correlation(body),
    })
}

fn condition(rule: &CorrelationRule, kind: Kind) -> Result<(Condition, Vec<String>), String> {
    match &rule.condition {
        CorrelationCondition::Threshold { predicates, field, .. } => {
            let of = |op: ConditionOperator| match op {
                ConditionOperator::Lt => Operator::Less,
                ConditionOperator::Lte => Operator::AtMost,
                ConditionOperator::Gt => Operator::More,
                ConditionOperator::Gte => Operator::AtLeast,
                ConditionOperator::Eq => Operator::Equal,
                ConditionOperator::Neq => Operator::Other,
            };
            let counted = field.clone().unwrap_or_default();
            if kind == Kind::ValueCount && counted.is_empty() {
                return Err("correlation.condition.field: a value_count needs the field whose values it counts".into());
            }
            if let Some((_, count)) = predicates.iter().find(|(_, count)| *count > COUNT_MAX) {
                return Err(format!("correlation.condition: expected a number up to {COUNT_MAX}, got {count}"));
            }
            Ok((Condition::Count(predicates.iter().map(|(op, count)| (of(*op), *count)).collect()), counted))
        }
        CorrelationCondition::Extended(expression) if kind == Kind::Temporal => {
            Ok((Condition::Rules(joined(expression, &rule.rules)?), Vec::new()))
        }
        CorrelationCondition::Extended(_) => {
            Err("correlation.condition: only a temporal correlation can combine rules; write a number such as gte: 10"
                .into())
        }
    }
}

fn joined(expression: &ConditionExpr, rules: &[String]) -> Result<Joined, String> {
    let all = |all: &[ConditionExpr]| all.iter().map(|one| joined(one, rules)).collect::<Result<Vec<_>, _>>();
    Ok(match expression {
        ConditionExpr::And(parts) => Joined::All(all(parts)?),
        ConditionExpr::Or(parts) => Joined::Any(all(parts)?),
        ConditionExpr::Not(one) => Joined::Not(Box::new(joined(one, rules)?)),
        ConditionExpr::Identifier(name) => match rules.iter().position(|rule| rule == name) {
            Some(place) => Joined::Rule(place),
            None => {
                let known: Vec<&str> = rules.iter().map(String::as_str).collect();
                return Err(text::unknown_selection(name, &known));
            }
        },
        ConditionExpr::Selector { .. } => {
            return Err("correlation.condition: \"of\" is not supported; join the rules with and, or, not".into());
        }
    })
}

impl Matcher {
    pub(super) fn matches(&self, view: View<'_>) -> bool {
        self.test.holds(&Record(view))
    }

    /// The same by the library.
    #[cfg(test)]
    pub(super) fn matches_slowly(&self, view: View<'_>) -> bool {
        rsigma_eval::evaluate_rule(&self.rule, &Record(view)).is_some()
    }
}

/// Whether `matcher` matches, and each part of its condition with the value of the record.
pub(super) fn explained(matcher: &Matcher, view: View<'_>) -> Explained {
    let told = explain_rule(&matcher.rule, &Record(view));
    let parts = told.conditions.iter().flat_map(|condition| super::explain::parts(&json(condition))).collect();
    Explained { matched: told.matched, parts }
}

struct Record<'r>(View<'r>);

impl Event for Record<'_> {
    fn get_field(&self, path: &str) -> Option<EventValue<'_>> {
        let mut values = self.0.values(path);
        let first = EventValue::Str(Cow::Borrowed(values.next()?));
        match values.next() {
            None => Some(first),
            Some(second) => {
                let rest = [second].into_iter().chain(values).map(|value| EventValue::Str(Cow::Borrowed(value)));
                Some(EventValue::Array([first].into_iter().chain(rest).collect()))
            }
        }
    }

    fn any_string_value(&self, pred: &dyn Fn(&str) -> bool) -> bool {
        self.0.texts().any(pred)
    }

    fn all_string_values(&self) -> Vec<Cow<'_, str>> {
        self.0.texts().map(Cow::Borrowed).collect()
    }

    fn visit_string_values(&self, visit: &mut dyn FnMut(&str)) {
        self.0.texts().for_each(visit);
    }

    fn to_json(&self) -> Value {
        self.0.fields().iter().map(|(path, value)| (path.clone(), Value::String(value.clone()))).collect()
    }
}
