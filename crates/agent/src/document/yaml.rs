//! YAML 1.2, within limits.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use serde_saphyr::{Error, MergeKeyPolicy, Options, Spanned, from_str_with_options};

use super::{Content, DEEPEST, Key, Node};

/// The tree of `text`, or the line and what is wrong.
pub(super) fn read(text: &str) -> Result<Node, (usize, String)> {
    match from_str_with_options::<Option<Node>>(text, options()) {
        Ok(node) => Ok(node.unwrap_or(Node { line: 1, content: Content::Map(Vec::new()) })),
        Err(error) => {
            let line = error.location().map_or(1, |at| usize::try_from(at.line()).unwrap_or(1)).max(1);
            Err((line, told(error.without_snippet())))
        }
    }
}

/// Limits against texts that grow when they are read.
fn options() -> Options {
    let budget = serde_saphyr::budget! {
        max_depth: DEEPEST,
        flow_nesting_limit: DEEPEST + 1,
        // A second one is a fault of its own.
        max_documents: 2,
        max_nodes: 50_000,
        max_events: 200_000,
        max_aliases: 200,
        max_anchors: 200,
        max_recorded_anchor_events: 20_000,
        max_recorded_anchor_bytes: 2 * super::LARGEST,
    };
    serde_saphyr::options! {
        budget: budget,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 20_000,
            max_replay_stack_depth: 8,
            max_alias_expansions_per_anchor: 100,
        },
    }
}

/// What is wrong, without what stands in the file: a secret may stand there by mistake.
fn told(error: &Error) -> String {
    match error {
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().map_or_else(String::new, |key| casebook_protocol::one_line(key, 80) + ": ");
            format!("{key}stands here a second time: leave one of the two out")
        }
        Error::MergeKeyNotAllowed { .. } => "merge keys (<<) are not read: write the keys out".to_owned(),
        Error::Budget { .. } => "grows too large when it is read: use fewer aliases and less nesting".to_owned(),
        Error::NonFiniteFloat { .. } => "a number must be finite: write another".to_owned(),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "grows too large when its aliases are read: write them out, or use fewer".to_owned()
        }
        Error::MultipleDocuments { .. } => "a file holds one document: leave out what follows ---".to_owned(),
        Error::AliasError { .. } => "this alias cannot be read here: write out what it stands for".to_owned(),
        other => {
            let text = other.render_with_options(serde_saphyr::RenderOptions::default());
            format!("is no YAML that can be read: {}", casebook_protocol::one_line(&text, 200))
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Read>::deserialize(deserializer)?;
        Ok(Self { line: line(&spanned), content: spanned.value.0 })
    }
}

fn line<T>(spanned: &Spanned<T>) -> usize {
    usize::try_from(spanned.referenced.line()).unwrap_or(1).max(1)
}

struct Read(Content);

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Read)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Plain(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Plain(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Plain(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Content, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number must be finite"))?;
        Ok(Content::Plain(Value::Number(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::Plain(Value::String(value.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Plain(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Plain(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content, A::Error> {
        let mut read = Vec::new();
        while let Some(item) = items.next_element()? {
            read.push(item);
        }
        Ok(Content::List(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Content, A::Error> {
        let mut read: Vec<(Key, Node)> = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            let key = Key { line: line(&key), text: key.value };
            if read.iter().any(|(had, _)| had.text == key.text) {
                return Err(A::Error::custom("a key stands here a second time: leave one of the two out"));
            }
            read.push((key, entries.next_value()?));
        }
        Ok(Content::Map(read))
    }
}
