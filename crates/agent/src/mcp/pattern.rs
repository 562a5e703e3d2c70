//! Names with wildcards.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use wildmatch::WildMatchPattern;

/// A name, in which * matches any characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
pub struct Pattern(#[schemars(length(min = 1, max = 128))] String);

impl Pattern {
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_exact(&self) -> bool {
        !self.0.contains('*')
    }

    pub fn matches(&self, name: &str) -> bool {
        WildMatchPattern::<'*', '\0'>::new(&self.0).matches(name)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub fn any(patterns: &[Pattern], name: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_stands_for_any_characters() {
        let check = |pattern: &str, name: &str, expect: bool| {
            assert_eq!(Pattern::new(pattern).matches(name), expect, "{pattern} {name}");
        };
        check("search", "search", true);
        check("search", "search_code", false);
        check("", "", true);
        check("", "x", false);
        check("*", "anything", true);
        check("search_*", "search_code", true);
        check("search_*", "research_code", false);
        check("*_code", "search_code", true);
        check("a*b*c", "axxbyyc", true);
        check("a*b*c", "axxc", false);
        check("ab*ba", "aba", false);
        check("*a*", "bab", true);
    }
}
