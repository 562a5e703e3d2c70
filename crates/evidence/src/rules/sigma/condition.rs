//! Evaluates a rule. The library looks up each selection by its name, and evaluates a rule that matches again to
//! collect what matched. Together that takes longer than most comparisons.

use std::collections::HashMap;

use rsigma_eval::{CompiledDetection, CompiledDetectionItem, CompiledMatcher, CompiledRule, Event};
use rsigma_parser::{ConditionExpr, Quantifier};

use super::Record;

/// A condition with its selections.
#[derive(Debug, Clone)]
pub(super) enum Test {
    Selection(CompiledDetection),
    All(Vec<Self>),
    Any(Vec<Self>),
    AtLeast(u64, Vec<Self>),
    Not(Box<Self>),
}

impl Test {
    pub(super) fn of_rule(rule: &CompiledRule) -> Self {
        Self::Any(rule.conditions.iter().map(|condition| Self::of(condition, &rule.detections)).collect())
    }

    fn of(condition: &ConditionExpr, known: &HashMap<String, CompiledDetection>) -> Self {
        let each = |parts: &[ConditionExpr]| parts.iter().map(|part| Self::of(part, known)).collect();
        match condition {
            ConditionExpr::And(parts) => Self::All(each(parts)),
            ConditionExpr::Or(parts) => Self::Any(each(parts)),
            ConditionExpr::Not(part) => Self::Not(Box::new(Self::of(part, known))),
            ConditionExpr::Identifier(name) => {
                Self::Any(known.get(name).cloned().map(Self::Selection).into_iter().collect())
            }
            ConditionExpr::Selector { quantifier, pattern } => {
                let selected = known.iter().filter(|(name, _)| pattern.matches_detection_name(name));
                let selected = selected.map(|(_, detection)| Self::Selection(detection.clone())).collect();
                match quantifier {
                    Quantifier::Any => Self::Any(selected),
                    Quantifier::All => Self::All(selected),
                    Quantifier::Count(least) => Self::AtLeast(*least, selected),
                }
            }
        }
    }

    pub(super) fn holds(&self, record: &Record<'_>) -> bool {
        match self {
            Self::Selection(detection) => selects(detection, record),
            Self::All(parts) => parts.iter().all(|part| part.holds(record)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(record)),
            Self::AtLeast(least, parts) => parts.iter().filter(|part| part.holds(record)).count() as u64 >= *least,
            Self::Not(part) => !part.holds(record),
        }
    }
}

fn selects(detection: &CompiledDetection, record: &Record<'_>) -> bool {
    match detection {
        CompiledDetection::AllOf(items) => items.iter().all(|item| fits(item, record)),
        CompiledDetection::AnyOf(parts) => parts.iter().any(|part| selects(part, record)),
        CompiledDetection::And(parts) => parts.iter().all(|part| selects(part, record)),
        CompiledDetection::Keywords(matcher) => matcher.matches_keyword(record),
        // Rules with conditions on members of a list are refused when they are read.
        CompiledDetection::ArrayMatch { .. } | CompiledDetection::Conditional { .. } => false,
    }
}

fn fits(item: &CompiledDetectionItem, record: &Record<'_>) -> bool {
    let value = item.field.as_ref().map(|field| record.get_field(field));
    match (item.exists, value) {
        (Some(exists), value) => value.flatten().is_some() == exists,
        (None, Some(Some(value))) => item.matcher.matches(&value, record),
        (None, Some(None)) => matches!(item.matcher, CompiledMatcher::Null),
        (None, None) => item.matcher.matches_keyword(record),
    }
}
