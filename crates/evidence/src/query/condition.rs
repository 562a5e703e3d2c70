use regex::{Regex, RegexBuilder};

use crate::readings::Term;
use crate::time::text::{Reading, parse};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Eq,
    Ne,
    Contains,
    NotContains,
    StartsWith,
    EndsWith,
    Gt,
    Lt,
    Exists,
    Regex,
    NotRegex,
}

impl Op {
    pub(crate) const NAMES: [(&'static str, Self); 11] = [
        ("eq", Self::Eq),
        ("ne", Self::Ne),
        ("contains", Self::Contains),
        ("not_contains", Self::NotContains),
        ("starts_with", Self::StartsWith),
        ("ends_with", Self::EndsWith),
        ("gt", Self::Gt),
        ("lt", Self::Lt),
        ("exists", Self::Exists),
        ("regex", Self::Regex),
        ("not_regex", Self::NotRegex),
    ];
}

#[derive(Debug, Clone)]
pub(crate) struct Condition {
    field: String,
    op: Op,
    value: String,
    regex: Option<Regex>,
    implied: Option<Term>,
}

impl Condition {
    pub(crate) fn new(field: &str, op: Op, value: &str) -> Result<Self, String> {
        let regex = match op {
            Op::Regex | Op::NotRegex => {
                let built = RegexBuilder::new(value).size_limit(1 << 20).dfa_size_limit(1 << 20).build();
                Some(built.map_err(|e| format!("the regular expression {value:?} cannot be used: {e}"))?)
            }
            _ => None,
        };
        let literal = matches!(op, Op::Eq | Op::Contains | Op::StartsWith | Op::EndsWith);
        let implied = if literal { longest_plain(value).map(Term::new) } else { None };
        let (field, value) = (field.to_owned(), value.to_ascii_lowercase());
        Ok(Self { field, op, value, regex, implied })
    }

    /// Text that occurs in the bytes of every matching record.
    pub(crate) const fn implied(&self) -> Option<&Term> {
        self.implied.as_ref()
    }

    /// What the value is or has.
    pub(crate) fn text(&self) -> Option<&str> {
        matches!(self.op, Op::Eq | Op::Contains | Op::StartsWith | Op::EndsWith).then_some(self.value.as_str())
    }

    pub(crate) fn field(&self) -> &str {
        &self.field
    }

    /// Whether a record without the field can match.
    pub(crate) fn of_missing(&self) -> bool {
        self.op == Op::Exists && self.value == "false"
    }

    /// True if any value matches. For `ne` and the operators that begin with `not`, the field must exist and no value may
    /// match.
    pub(crate) fn is_true(&self, fields: &[(String, String)]) -> bool {
        let found = values(fields, &self.field);
        match self.op {
            Op::Exists => found.iter().any(|v| !v.is_empty()) == (self.value != "false"),
            Op::Ne | Op::NotContains | Op::NotRegex => !found.is_empty() && !found.iter().any(|v| self.matches(v)),
            _ => found.iter().any(|v| self.matches(v)),
        }
    }

    fn matches(&self, value: &str) -> bool {
        match self.op {
            Op::Eq | Op::Ne => equal(value, &self.value),
            Op::Contains | Op::NotContains => value.to_ascii_lowercase().contains(&self.value),
            Op::StartsWith => value.to_ascii_lowercase().starts_with(&self.value),
            Op::EndsWith => value.to_ascii_lowercase().ends_with(&self.value),
            Op::Gt => order(value, &self.value).is_some_and(std::cmp::Ordering::is_gt),
            Op::Lt => order(value, &self.value).is_some_and(std::cmp::Ordering::is_lt),
            Op::Regex | Op::NotRegex => self.regex.as_ref().is_some_and(|r| r.is_match(value)),
            Op::Exists => false,
        }
    }
}

fn equal(value: &str, lower: &str) -> bool {
    value.eq_ignore_ascii_case(lower)
}

/// Compares as numbers or times if both are, otherwise as text.
fn order(value: &str, lower: &str) -> Option<std::cmp::Ordering> {
    if let (Ok(a), Ok(b)) = (value.parse::<f64>(), lower.parse::<f64>()) {
        return a.partial_cmp(&b);
    }
    let time = |text: &str| parse(&text.to_ascii_uppercase(), Reading { day_first: false, numbers: true });
    if let (Some(a), Some(b)) = (time(value), time(lower)) {
        return Some(a.ns.cmp(&b.ns));
    }
    Some(value.to_ascii_lowercase().as_str().cmp(lower))
}

/// The longest part of a value that no encoding changes.
fn longest_plain(value: &str) -> Option<&str> {
    value
        .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '@' | '-')))
        .max_by_key(|part| part.len())
        .filter(|part| part.len() >= 4)
}

/// The values of the given path in any case, or of all paths that end with it. Positions in lists may be
/// omitted.
pub(crate) fn values<'f>(fields: &'f [(String, String)], wanted: &str) -> Vec<&'f str> {
    let exact: Vec<&str> = fields.iter().filter(|(p, _)| same(p, wanted)).map(|(_, v)| v.as_str()).collect();
    if !exact.is_empty() {
        return exact;
    }
    fields.iter().filter(|(p, _)| ends(p, wanted)).map(|(_, v)| v.as_str()).collect()
}

fn is_position(segment: &str) -> bool {
    segment == "*" || (!segment.is_empty() && segment.bytes().all(|b| b.is_ascii_digit()))
}

fn same(path: &str, wanted: &str) -> bool {
    path.eq_ignore_ascii_case(wanted) || (folds(path, wanted) && without(path).eq_ignore_ascii_case(&without(wanted)))
}

fn ends(path: &str, wanted: &str) -> bool {
    let tail = |path: &str, wanted: &str| {
        let at = path.len().checked_sub(wanted.len());
        at.is_some_and(|at| {
            path.get(at..).is_some_and(|t| t.eq_ignore_ascii_case(wanted))
                && (at == 0 || path.as_bytes().get(at - 1) == Some(&b'.'))
        })
    };
    tail(path, wanted) || (folds(path, wanted) && tail(&without(path), &without(wanted)))
}

/// True if the path has a list position that `wanted` omits.
fn folds(path: &str, wanted: &str) -> bool {
    listed(path) && !wanted.split('.').any(|s| s != "*" && is_position(s))
}

fn listed(path: &str) -> bool {
    path.bytes().any(|b| b.is_ascii_digit()) && path.split('.').any(is_position)
}

/// Whether `values` may find something in these paths, in which `*` is any position.
pub(crate) fn may_have<'p>(mut paths: impl Iterator<Item = &'p str>, wanted: &str) -> bool {
    let wanted = without(wanted);
    paths.any(|path| {
        let path = without(path);
        let at = path.len().checked_sub(wanted.len());
        at.and_then(|at| path.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case(&wanted))
    })
}

/// True if `wanted` is this path or the end of it. List positions may be omitted.
pub(crate) fn is_named(path: &str, wanted: &str) -> bool {
    let (path, wanted) = (without(path).to_ascii_lowercase(), without(wanted).to_ascii_lowercase());
    path.strip_suffix(&wanted).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// True if `fields` has exactly this name, so that no other path counts. Packed fields have paths of at least
/// two parts.
pub(crate) fn is_settled(fields: &[(String, String)], wanted: &str) -> bool {
    !wanted.contains('.') && fields.iter().any(|(path, _)| path.eq_ignore_ascii_case(wanted))
}

/// Quickly excludes paths with another last name.
pub(crate) fn may_be(path: &str, wanted: &str) -> bool {
    fn tail(path: &str) -> Option<&str> {
        path.rsplit('.').find(|s| !is_position(s))
    }
    tail(wanted).is_none_or(|wanted| tail(path).is_some_and(|path| path.eq_ignore_ascii_case(wanted)))
}

fn without(path: &str) -> String {
    path.split('.').filter(|s| !is_position(s)).collect::<Vec<_>>().join(".")
}
