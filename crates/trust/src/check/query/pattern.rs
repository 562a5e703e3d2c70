//! Takes a regular expression apart into the texts that it searches for.

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

/// More alternatives are not taken apart.
const MOST: usize = 64;
/// Stands for a gap, such as `.*`, between two texts.
const GAP: char = '\0';

/// The alternatives of a pattern, each with the texts that must all be there. Anchors do not count. None if it also
/// requires something other than text, such as a class of characters.
pub(super) fn alternatives(pattern: &str) -> Option<Vec<Vec<String>>> {
    let hir = regex_syntax::parse(pattern.strip_prefix("(?i)").unwrap_or(pattern)).ok()?;
    let texts = |one: String| {
        let texts = one.split(GAP).map(|text| text.trim().to_owned());
        texts.filter(|text| !text.is_empty()).collect::<Vec<String>>()
    };
    let all: Vec<Vec<String>> = spelled(&hir)?.into_iter().map(texts).collect();
    all.iter().all(|texts| !texts.is_empty()).then_some(all)
}

fn spelled(hir: &Hir) -> Option<Vec<String>> {
    let all = match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => vec![String::new()],
        HirKind::Literal(literal) => vec![String::from_utf8(literal.0.to_vec()).ok()?],
        HirKind::Class(class) => few(class)?,
        HirKind::Repetition(repetition) => repeated(repetition)?,
        HirKind::Capture(capture) => spelled(&capture.sub)?,
        HirKind::Alternation(parts) => parts.iter().map(spelled).collect::<Option<Vec<_>>>()?.concat(),
        HirKind::Concat(parts) => parts.iter().try_fold(vec![String::new()], |before, part| {
            let after = spelled(part)?;
            let joined = before.iter().flat_map(|b| after.iter().map(move |a| format!("{b}{a}")));
            Some(joined.take(MOST + 1).collect())
        })?,
    };
    (all.len() <= MOST).then_some(all)
}

fn repeated(repetition: &Repetition) -> Option<Vec<String>> {
    let gap = || Some(vec![GAP.to_string()]);
    match (repetition.min, repetition.max, repetition.sub.kind()) {
        (0, None, HirKind::Class(class)) if holds(class, 'a') && holds(class, '0') && holds(class, ' ') => gap(),
        (0 | 1, None, HirKind::Class(class)) if holds(class, ' ') && !holds(class, 'a') => gap(),
        (0, Some(1), _) => Some([vec![String::new()], spelled(&repetition.sub)?].concat()),
        _ => None,
    }
}

fn holds(class: &Class, c: char) -> bool {
    match class {
        Class::Unicode(class) => class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&c)),
        Class::Bytes(class) => class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&(c as u8))),
    }
}

/// The characters of a small class, such as `[Ii]`.
fn few(class: &Class) -> Option<Vec<String>> {
    let Class::Unicode(class) = class else { return None };
    let all: Vec<String> =
        class.ranges().iter().flat_map(|range| range.start()..=range.end()).take(9).map(String::from).collect();
    (all.len() <= 8).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::alternatives;

    #[test]
    fn patterns_of_texts_are_taken_apart_and_others_are_not() {
        let check = |pattern: &str, expect: &str| {
            let found = alternatives(pattern).map(|all| all.iter().map(|a| a.join("+")).collect::<Vec<_>>().join(" "));
            assert_eq!(found.as_deref().unwrap_or("whole"), expect, "{pattern}");
        };
        check("insmod", "insmod");
        check(r"^(insmod|modprobe)$", "insmod modprobe");
        check(r"(?i)\bnet\.exe\b|net1", "net.exe net1");
        check("insmod|insert", "insmod insert");
        check(r"net\s+user", "net+user");
        check(".*evil.*", "evil");
        check("insmod.*evil|load", "insmod+evil load");
        check("[Ii]nsmod", "Insmod insmod");
        check("scripts?", "script scripts");
        for whole in ["insmod[0-9]+", "a.+b", r"\d{4}", "^$", "(", "(a|b|c|d|e|f|g|h)(a|b|c|d|e|f|g|h)(a|b|c)x"] {
            check(whole, "whole");
        }
    }
}
