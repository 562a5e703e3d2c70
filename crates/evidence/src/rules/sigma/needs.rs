//! What a record must have for a compiled rule to match it.

use std::collections::HashMap;

use rsigma_eval::matcher::GroupMode;
use rsigma_eval::{CompiledDetection, CompiledDetectionItem, CompiledMatcher, CompiledRule};
use rsigma_parser::{ConditionExpr, Quantifier};

use crate::rules::needs::{Need, Needs, all, any, of_pattern, of_text};

pub(super) fn of_rule(rule: &CompiledRule) -> Needs {
    any(rule.conditions.iter().map(|condition| of_condition(condition, &rule.detections)))
}

fn of_condition(condition: &ConditionExpr, known: &HashMap<String, CompiledDetection>) -> Needs {
    let each = |parts: &[ConditionExpr]| parts.iter().map(|part| of_condition(part, known)).collect::<Vec<_>>();
    match condition {
        ConditionExpr::And(parts) => all(each(parts)),
        ConditionExpr::Or(parts) => any(each(parts)),
        ConditionExpr::Not(_) => Vec::new(),
        ConditionExpr::Identifier(name) => known.get(name).map(of_detection).unwrap_or_default(),
        ConditionExpr::Selector { quantifier, pattern } => {
            let selected = known.iter().filter(|(name, _)| pattern.matches_detection_name(name));
            let selected = selected.map(|(_, detection)| of_detection(detection));
            match quantifier {
                Quantifier::All => all(selected),
                Quantifier::Count(0) => Vec::new(),
                Quantifier::Any | Quantifier::Count(_) => any(selected),
            }
        }
    }
}

fn of_detection(detection: &CompiledDetection) -> Needs {
    match detection {
        CompiledDetection::AllOf(items) => all(items.iter().map(of_item)),
        CompiledDetection::AnyOf(parts) => any(parts.iter().map(of_detection)),
        CompiledDetection::And(parts) => all(parts.iter().map(of_detection)),
        CompiledDetection::Keywords(matcher) => of_matcher(matcher, None),
        CompiledDetection::ArrayMatch { .. } | CompiledDetection::Conditional { .. } => Vec::new(),
    }
}

fn of_item(item: &CompiledDetectionItem) -> Needs {
    let Some(field) = item.field.as_deref() else { return of_matcher(&item.matcher, None) };
    // Only these two match a record without the field.
    if item.exists == Some(false) || (item.exists.is_none() && matches!(item.matcher, CompiledMatcher::Null)) {
        return Vec::new();
    }
    let needs = if item.exists.is_none() { of_matcher(&item.matcher, Some(field)) } else { Vec::new() };
    if needs.is_empty() { vec![vec![Need::Field(field.to_owned())]] } else { needs }
}

fn of_matcher(matcher: &CompiledMatcher, field: Option<&str>) -> Needs {
    let each = |parts: &[CompiledMatcher]| parts.iter().map(|part| of_matcher(part, field)).collect::<Vec<_>>();
    match matcher {
        CompiledMatcher::Exact { value, .. }
        | CompiledMatcher::Contains { value, .. }
        | CompiledMatcher::StartsWith { value, .. }
        | CompiledMatcher::EndsWith { value, .. } => of_text(value, field),
        CompiledMatcher::AhoCorasickSet { needles, .. } => any(needles.iter().map(|needle| of_text(needle, field))),
        CompiledMatcher::Regex(pattern) => of_pattern(pattern.as_str(), field),
        CompiledMatcher::RegexSetMatch { set, mode } => {
            let parts = set.patterns().iter().map(|pattern| of_pattern(pattern, field));
            if *mode == GroupMode::Any { any(parts) } else { all(parts) }
        }
        CompiledMatcher::AnyOf(parts) => any(each(parts)),
        CompiledMatcher::AllOf(parts) => all(each(parts)),
        CompiledMatcher::CaseInsensitiveGroup { children, mode } => {
            if *mode == GroupMode::Any {
                any(each(children))
            } else {
                all(each(children))
            }
        }
        _ => Vec::new(),
    }
}
