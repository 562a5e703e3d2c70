//! YAML 1.2, with limits against documents that expand when they are read.

use serde::de::DeserializeOwned;
use serde_path_to_error::{Deserializer, Track};
use serde_saphyr::{Error, MergeKeyPolicy, Options, with_deserializer_from_str_with_options};

const DEEPEST: usize = 32;

/// The value in `text`, or the line and the error. An empty text is an empty map. Merge keys, custom tags and
/// duplicate keys are errors.
pub(super) fn read<T: DeserializeOwned>(text: &str, track: &mut Track) -> Result<T, (usize, String)> {
    with_deserializer_from_str_with_options(text, options(), |yaml| T::deserialize(Deserializer::new(yaml, track)))
        .map_err(|error| {
            let line = error.location().map_or(1, |at| usize::try_from(at.line()).unwrap_or(1)).max(1);
            (line, sentence(error.without_snippet()))
        })
}

pub(super) fn options() -> Options {
    let budget = serde_saphyr::budget! {
        max_depth: DEEPEST,
        flow_nesting_limit: DEEPEST + 1,
        // The second one is reported as a separate fault.
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

fn sentence(error: &Error) -> String {
    match error {
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().map_or_else(String::new, |key| casebook_protocol::one_line(key, 80) + ": ");
            format!("{key}this key is here a second time; leave one of the two out")
        }
        Error::MergeKeyNotAllowed { .. } => "merge keys (<<) are not read; write the keys out".to_owned(),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "grows too large when it is read; use fewer aliases and less nesting".to_owned()
        }
        Error::NonFiniteFloat { .. } => "expected a finite number; write another".to_owned(),
        Error::MultipleDocuments { .. } => "expected one document; leave out what follows ---".to_owned(),
        Error::AliasError { .. } => "this alias cannot be read here; write out what it stands for".to_owned(),
        Error::TaggedEnumMismatch { .. } => "this tag is not known; leave it out".to_owned(),
        Error::SerdeUnknownVariant { expected, .. } => {
            format!("unknown variant, expected one of {}", expected.join(", "))
        }
        other => {
            let text = other.render_with_options(serde_saphyr::RenderOptions::default());
            text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text).to_owned()
        }
    }
}
