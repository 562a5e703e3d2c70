use std::fmt;

use serde::de::{Deserialize as _, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Spanned, with_deserializer_from_str_with_options};
use toml::de::DeTable;

use super::yaml::options;

/// The line of `path` in YAML, or of the longest part of it that exists. A list can only be the last step of a path.
pub(super) fn yaml(text: &str, path: &[&str]) -> usize {
    let mut line = 1;
    // After an error, the line found so far is still useful.
    let _ = with_deserializer_from_str_with_options(text, options(), |yaml| {
        Find { path, line: &mut line }.deserialize(yaml)
    });
    line.max(1)
}

struct Find<'a> {
    path: &'a [&'a str],
    line: &'a mut usize,
}

impl<'de> DeserializeSeed<'de> for Find<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.path {
            [] => IgnoredAny::deserialize(deserializer).map(|_| ()),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Find<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Some((step, rest)) = self.path.split_first() else { return Ok(()) };
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            if key.value == *step {
                *self.line = line(&key);
                return entries.next_value_seed(Find { path: rest, line: self.line });
            }
            entries.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let index: usize = self.path.first().and_then(|step| step.parse().ok()).ok_or_else(|| A::Error::custom(""))?;
        for _ in 0..index {
            items.next_element::<IgnoredAny>()?;
        }
        if let Some(item) = items.next_element::<Spanned<IgnoredAny>>()? {
            *self.line = line(&item);
        }
        Ok(())
    }
}

fn line<T>(spanned: &Spanned<T>) -> usize {
    usize::try_from(spanned.referenced.line()).unwrap_or(1)
}

/// The byte offset of `path` in TOML, or of the longest part of it that exists.
pub(super) fn toml(text: &str, path: &[&str]) -> usize {
    let mut at = 0;
    let Ok(table) = DeTable::parse(text) else { return at };
    let Some((first, rest)) = path.split_first() else { return at };
    let Some((key, mut value)) = table.get_ref().get_key_value(*first) else { return at };
    at = key.span().start;
    for step in rest {
        let held = value.get_ref();
        if let Some((key, inner)) = held.as_table().and_then(|table| table.get_key_value(*step)) {
            (at, value) = (key.span().start, inner);
        } else if let Some(item) = step.parse().ok().and_then(|index: usize| held.as_array()?.get(index)) {
            (at, value) = (item.span().start, item);
        } else {
            break;
        }
    }
    at
}
