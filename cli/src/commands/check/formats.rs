//! Checks formats.toml, and tries its formats on the evidence.

use std::path::Path;

use casebook_evidence::Catalog;
use casebook_expert::formats;
use casebook_protocol::one_line;
use casebook_runtime::config::{self, sorted};

use super::Found;

pub(super) fn check(path: &Path, found: &mut Found) {
    let parsed = config::text(path).and_then(|text| formats::parse(path, &text));
    let Some((_, formats)) = found.keep(path, parsed) else { return };
    found.formats.push((path.to_path_buf(), formats));
}

/// Entries without files, and files whose records do not follow their format.
pub(super) fn compare(catalog: &Catalog, found: &mut Found) {
    for (path, formats) in std::mem::take(&mut found.formats) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        for (n, format) in formats.iter().enumerate() {
            let Some(files) = &format.files else { continue };
            let mut notice = |what: String| found.notices.push(formats::place(&path, &text, n, &what));
            let mut matching = catalog.sources().iter().filter(|source| files.matches(&source.file)).peekable();
            if matching.peek().is_none() {
                let files = one_line(&files.to_string(), 120);
                notice(format!("{files} matches no file of the evidence; correct or remove it"));
            }
            for source in matching.filter(|source| source.malformed > 0) {
                let line = source.malformed_examples.first().map_or(0, |place| place.line);
                notice(format!(
                    "the pattern does not match {} of {} records of {}; the first is on line {line}",
                    source.malformed,
                    source.records,
                    one_line(&source.file, 120)
                ));
            }
        }
    }
    found.notices = sorted(std::mem::take(&mut found.notices));
}
