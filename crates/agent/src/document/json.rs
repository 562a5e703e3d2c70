//! JSON as people keep it: with comments and trailing commas.

use std::collections::BTreeSet;

use jsonc_parser::ast::{ObjectProp, Value as Ast};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

use super::{Content, DEEPEST, Key, Node};

type Fault = (usize, String);

/// What JSON has, comments and trailing commas.
const WRITTEN: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The tree of `text`, or the line and what is wrong.
pub(super) fn read(text: &str) -> Result<Node, Fault> {
    let lines = Lines(text.match_indices('\n').map(|(at, _)| at).collect());
    let parsed = parse_to_ast(text, &CollectOptions::default(), &WRITTEN).map_err(|error| {
        // The kind alone: the error's own text is for a terminal.
        (lines.of(error.range().start), format!("is no JSON: {}", error.kind().to_string().to_lowercase()))
    })?;
    match parsed.value {
        Some(value) => node(&lines, &value, 0),
        None => Err((1, "the file is empty: write {\"mcpServers\": {}}".to_owned())),
    }
}

/// Where lines end.
struct Lines(Vec<usize>);

impl Lines {
    fn of(&self, at: usize) -> usize {
        self.0.partition_point(|end| *end < at) + 1
    }
}

fn node(lines: &Lines, value: &Ast<'_>, depth: usize) -> Result<Node, Fault> {
    let line = lines.of(value.start());
    if depth > DEEPEST {
        return Err((line, format!("is nested more than {DEEPEST} deep: leave this out")));
    }
    let content = match value {
        Ast::StringLit(text) => Content::Plain(Value::String(text.value.to_string())),
        Ast::NumberLit(number) => Content::Plain(match serde_json::from_str(number.value) {
            Ok(Value::Number(number)) => Value::Number(number),
            _ => return Err((line, "is no number that JSON can hold".to_owned())),
        }),
        Ast::BooleanLit(bool) => Content::Plain(Value::Bool(bool.value)),
        Ast::NullKeyword(_) => Content::Plain(Value::Null),
        Ast::Array(array) => {
            let items = array.elements.iter().map(|item| node(lines, item, depth + 1));
            Content::List(items.collect::<Result<_, _>>()?)
        }
        Ast::Object(object) => {
            let mut seen = BTreeSet::new();
            let entries = object.properties.iter().map(|property| entry(lines, property, &mut seen, depth + 1));
            Content::Map(entries.collect::<Result<_, _>>()?)
        }
    };
    Ok(Node { line, content })
}

fn entry<'a>(
    lines: &Lines,
    property: &'a ObjectProp<'_>,
    seen: &mut BTreeSet<&'a str>,
    depth: usize,
) -> Result<(Key, Node), Fault> {
    let text = property.name.as_str();
    let line = lines.of(property.name.start());
    if !seen.insert(text) {
        let shown = casebook_protocol::one_line(text, 80);
        return Err((line, format!("{shown}: stands here a second time: leave one of the two out")));
    }
    Ok((Key { line, text: text.to_owned() }, node(lines, &property.value, depth)?))
}
