//! What a record must have for a rule to match it. A record without it needs no evaluation of the rule. Needs may only
//! be too weak: a need that does not follow from the rule would hide hits.

use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

/// In bytes. Most records contain some shorter text, unless it is one of [`RARE`].
const TEXT_MIN: usize = 3;
/// Characters, and pairs of them, that few values contain.
const RARE: [&str; 12] = ["'", ";", "|", "`", "<", ">", "$(", "()", "{", "..", "&&", "\\"];
/// Prefixes of a pattern.
const PREFIXES: usize = 32;
/// The rest of a longer text tells little more.
const TEXT_MAX: usize = 24;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Need {
    /// A value of the field, or of any field, contains this ASCII text in lower case. See [`folded`].
    Text { field: Option<String>, text: String },
    /// The record has the field.
    Field(String),
}

/// At least one need of each list.
pub(super) type Needs = Vec<Vec<Need>>;

pub(super) fn all(parts: impl IntoIterator<Item = Needs>) -> Needs {
    parts.into_iter().flatten().collect()
}

/// Of parts of which one is enough: one list with the best list of each.
pub(super) fn any(parts: impl IntoIterator<Item = Needs>) -> Needs {
    let mut parts: Vec<Needs> = parts.into_iter().collect();
    if parts.len() == 1 {
        return parts.pop().unwrap_or_default();
    }
    let mut together = Vec::new();
    for part in parts {
        let Some(best) = best(&part).and_then(|place| part.get(place)) else { return Vec::new() };
        together.extend(best.iter().cloned());
    }
    together.sort_unstable();
    together.dedup();
    if together.is_empty() { Vec::new() } else { vec![together] }
}

fn weight(need: &Need) -> usize {
    match need {
        Need::Field(_) => 0,
        Need::Text { field, text } => 2 * text.len() + usize::from(field.is_some()),
    }
}

/// The weight of the least need of all lists.
fn shortest(needs: &Needs) -> Option<usize> {
    needs.iter().flatten().map(weight).min()
}

/// The place of the list that the fewest records satisfy.
pub(super) fn best(needs: &Needs) -> Option<usize> {
    let worth = |list: &Vec<Need>| (list.iter().map(weight).min(), std::cmp::Reverse(list.len()));
    needs.iter().enumerate().max_by_key(|(_, list)| worth(list)).map(|(place, _)| place)
}

/// The needs of a value that contains `text`.
pub(super) fn of_text(text: &str, field: Option<&str>) -> Needs {
    let runs = text.split(|c: char| !c.is_ascii()).max_by_key(|run| run.len());
    let mut text = runs.map(|run| run.get(..TEXT_MAX).unwrap_or(run).to_ascii_lowercase()).unwrap_or_default();
    if text.len() < TEXT_MIN {
        let Some(rare) = RARE.iter().find(|rare| text.contains(*rare)) else { return Vec::new() };
        text = (*rare).to_owned();
    }
    vec![vec![Need::Text { field: field.map(str::to_owned), text }]]
}

/// The needs of a value that a regular expression finds.
pub(super) fn of_pattern(pattern: &str, field: Option<&str>) -> Needs {
    let parsed = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern);
    parsed.map(|hir| of_hir(&without_case(&hir), field)).unwrap_or_default()
}

/// The same expression over text in lower case, with a letter for each class that has only its two cases.
fn without_case(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Class(class) => letter(class).map_or_else(|| hir.clone(), |letter| literal(&letter.to_string())),
        HirKind::Literal(text) => literal(&String::from_utf8_lossy(&text.0).to_ascii_lowercase()),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(without_case).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(without_case).collect()),
        HirKind::Repetition(repeated) => {
            Hir::repetition(Repetition { sub: Box::new(without_case(&repeated.sub)), ..repeated.clone() })
        }
        HirKind::Capture(group) => without_case(&group.sub),
        HirKind::Empty | HirKind::Look(_) => hir.clone(),
    }
}

fn literal(text: &str) -> Hir {
    Hir::literal(text.as_bytes())
}

fn of_hir(hir: &Hir, field: Option<&str>) -> Needs {
    let mut needs = of_parts(hir, field);
    // The parser takes alternatives apart: `%27|%2527` is `%2` and then `7` or `527`.
    if needs.is_empty() {
        needs = beginnings(hir, field);
    }
    needs
}

/// The texts with which a match begins.
fn beginnings(hir: &Hir, field: Option<&str>) -> Needs {
    let mut prefixes = Extractor::new();
    let found = prefixes.limit_class(4).limit_total(PREFIXES).extract(hir);
    let texts = found.literals().unwrap_or_default().iter().map(|text| String::from_utf8_lossy(text.as_bytes()));
    any(texts.map(|text| of_text(&text, field)))
}

fn of_parts(hir: &Hir, field: Option<&str>) -> Needs {
    match hir.kind() {
        HirKind::Concat(parts) => {
            let (mut needs, mut before): (Needs, _) = (Vec::new(), None);
            for (place, part) in parts.iter().enumerate() {
                if matches!(part.kind(), HirKind::Look(_) | HirKind::Empty) {
                    continue;
                }
                let mut own = of_hir(part, field);
                let is_text = matches!(part.kind(), HirKind::Literal(_));
                if !is_text {
                    // With the texts around it, an alternative is longer: `\.(exe|js)`.
                    let from = before.unwrap_or(place);
                    let around = beginnings(&Hir::concat(parts.iter().skip(from).cloned().collect()), field);
                    if own.len() == 1 && shortest(&around) >= shortest(&own) {
                        own.clear();
                    }
                    own.extend(around);
                }
                before = is_text.then_some(place);
                for list in own {
                    if !needs.contains(&list) {
                        needs.push(list);
                    }
                }
            }
            needs
        }
        HirKind::Literal(text) => of_text(&String::from_utf8_lossy(&text.0), field),
        HirKind::Alternation(parts) => any(parts.iter().map(|part| of_hir(part, field))),
        HirKind::Repetition(repeated) if repeated.min > 0 => of_hir(&repeated.sub, field),
        HirKind::Capture(group) => of_hir(&group.sub, field),
        _ => Vec::new(),
    }
}

/// The letter of which the class has only upper and lower case.
fn letter(class: &Class) -> Option<char> {
    let Class::Unicode(class) = class else { return None };
    let mut all = class.iter().flat_map(|range| (range.start()..=range.end()).take(4)).map(plain);
    let first = all.next().filter(char::is_ascii)?;
    all.all(|other| other == first).then_some(first)
}

fn plain(letter: char) -> char {
    match letter {
        // The only other letters that a pattern without case takes for one of ASCII.
        'ſ' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    }
}

/// The text in lower case, as needs are compared with it.
pub(super) fn folded(text: &str, into: &mut String) {
    into.clear();
    into.extend(text.chars().flat_map(char::to_lowercase).map(plain));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(needs: &Needs) -> Vec<Vec<&str>> {
        let text = |need: &Need| match need {
            Need::Text { text, .. } => Some(text.clone().leak() as &str),
            Need::Field(_) => None,
        };
        needs.iter().map(|list| list.iter().filter_map(text).collect()).collect()
    }

    #[test]
    fn a_pattern_needs_its_texts() {
        for (pattern, expect) in [
            (r"(?i)\bpowershell\b.*-enc", vec![vec!["powershell"], vec!["-enc"]]),
            (r"\b(curl|wget)\s.*/tmp/", vec![vec!["curl", "wget"], vec!["/tmp/"]]),
            (r"(curl|sh)\s.*/tmp/", vec![vec!["/tmp/"]]),
            ("(?i)skull", vec![vec!["skull"]]),
            ("(abc)?def+(ghi){2}", vec![vec!["abcdef", "def"], vec!["def"], vec!["ghighi"]]),
            ("[Aa][Bb]cd|Grün", vec![]),
            (r"(\x27|%27|%2527)\s*(or|and)", vec![vec!["%2527", "%27", "'"]]),
            (r"[;|`]\s*(id|ls)\b", vec![vec![";", "`", "|"]]),
            (r"(\.\.|%2e%2e)/+", vec![vec!["%2e%2e/", "../"]]),
            (r"(?i)\.(js|exe)[\s_]*x", vec![vec![".exe", ".js"]]),
            (r"a(\|\||;)b", vec![vec!["a;b", "a||b"]]),
            (r"[a-z]\s*(or|and)", vec![]),
            ("x*", vec![]),
            ("(", vec![]),
        ] {
            let mut found = of_pattern(pattern, None);
            found.iter_mut().for_each(|list| list.sort_by_key(|need| format!("{need:?}")));
            assert_eq!(texts(&found), expect, "{pattern}");
        }
    }

    #[test]
    fn a_long_text_is_cut_and_a_short_one_is_in_most_records() {
        assert_eq!(texts(&of_text(&"Ab".repeat(20), None)), [["ab".repeat(12).as_str()]]);
        assert!(of_text("ab", None).is_empty());
        assert_eq!(texts(&of_text("über/Alles", None)), [["ber/alles"]]);
    }

    #[test]
    fn letters_beyond_ascii_that_a_pattern_takes_for_ascii_are_folded() {
        let mut text = String::new();
        folded("ÜBER Pa\u{17f}\u{17f}wort \u{212a}ey", &mut text);
        assert_eq!(text, "über passwort key");
    }
}
