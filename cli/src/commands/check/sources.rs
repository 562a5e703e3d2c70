//! Checks sources.toml, and compares it with the evidence.

use std::path::Path;

use casebook_evidence::{Catalog, Declared};
use casebook_expert::sources;
use casebook_protocol::one_line;
use casebook_runtime::config::{self, sorted};

use super::Found;

pub(super) fn check(path: &Path, found: &mut Found) {
    let text = config::text(path);
    let parsed = text.and_then(|text| sources::parse(path, &text));
    let Some(declared) = found.keep(path, parsed) else { return };
    for (n, rule) in declared.rules.iter().enumerate().filter(|(_, rule)| !rule.confirmed) {
        let what = format!(
            "{} counts as a guess; check the entry, then set confirmed = true",
            one_line(&rule.files.to_string(), 120)
        );
        notice(path, n, &what, found);
    }
    found.declared.push(declared);
}

fn notice(path: &Path, entry: usize, what: &str, found: &mut Found) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    found.notices.push(sources::place(path, &text, entry, what));
}

/// Entries without files, and sources without an entry.
pub(super) fn compare(catalog: &Catalog, found: &mut Found) {
    for declared in std::mem::take(&mut found.declared) {
        let Declared { file: Some(path), rules, .. } = &declared else { continue };
        for (n, rule) in rules.iter().enumerate() {
            let pattern = one_line(&rule.files.to_string(), 120);
            let mut matching = catalog.sources().iter().filter(|source| rule.files.matches(&source.file)).peekable();
            if matching.peek().is_none() {
                notice(path, n, &format!("{pattern} matches no file of the evidence; correct or remove it"), found);
            } else if !matching.any(|source| declared.rule(&source.file).is_some_and(|first| std::ptr::eq(first, rule)))
            {
                let what = format!("{pattern} has no effect: earlier entries match its files; remove it or move it up");
                notice(path, n, &what, found);
            }
        }
        for source in catalog.sources().iter().filter(|source| declared.rule(&source.file).is_none()) {
            let what =
                format!("no entry matches {}, so it counts as a guess; add an entry", one_line(&source.file, 120));
            found.notices.push(config::ConfigFault { file: path.clone(), line: 1, what });
        }
    }
    found.notices = sorted(std::mem::take(&mut found.notices));
}
