//! The engine from outside: folders of files in, sources and answers out.

mod archives;
mod blocks;
mod cases;
pub(crate) mod collections;
mod coverage;
mod damage;
mod declare;
mod events;
mod evtx;
mod formats;
mod grow;
mod lines;
mod times;
mod told;
mod tools;

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::*;

/// A folder of evidence with these files.
struct Folder {
    dir: tempfile::TempDir,
}

impl Folder {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let folder = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir(folder.evidence()).unwrap();
        for (name, content) in files {
            folder.write(name, content);
        }
        folder
    }

    fn of(name: &str, content: &str) -> Self {
        Self::new(&[(name, content.as_bytes())])
    }

    fn evidence(&self) -> std::path::PathBuf {
        self.dir.path().join("evidence")
    }

    fn write(&self, name: &str, content: &[u8]) {
        let path = self.evidence().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn index(&self) -> std::path::PathBuf {
        self.dir.path().join("data").join("index.sqlite")
    }

    fn try_open(&self) -> Result<Catalog, LoadError> {
        Catalog::open(&self.evidence(), &self.index(), &mut |_| {})
    }

    fn open(&self) -> Catalog {
        let catalog = self.try_open().unwrap();
        accounted(&catalog, &self.evidence());
        catalog
    }

    fn tools(&self) -> EvidenceTools {
        let catalog = Arc::new(self.open());
        let ids: Vec<String> = catalog.sources().iter().map(|s| s.id.clone()).collect();
        EvidenceTools::new(catalog, &ids)
    }
}

fn call(tools: &EvidenceTools, tool: &str, arguments: &str) -> Value {
    let answer = tools.call(tool, arguments).unwrap_or_else(|e| panic!("{tool} {arguments}: {e}"));
    assert_eq!(tools.call(tool, arguments).unwrap(), answer, "the same call gives the same answer");
    assert!(answer.len() <= 1 << 20, "an answer is bounded");
    serde_json::from_str(&answer).unwrap()
}

/// What holds of any catalog: every line is accounted for, and every record is what the file has there.
fn accounted(catalog: &Catalog, evidence: &Path) {
    for source in catalog.sources() {
        let tools = EvidenceTools::new(Arc::new(reopened(catalog)), std::slice::from_ref(&source.id));
        let columns = r#"{"query":"SELECT count(*), count(DISTINCT line), count(time) FROM records"}"#;
        let counts: Value = serde_json::from_str(&tools.call("sql", columns).unwrap()).unwrap();
        let count = |n: usize| counts["rows"][0][counts["columns"][n].as_str().unwrap()].as_u64().unwrap();
        assert_eq!(count(0), source.records, "{}", source.file);
        assert_eq!(count(2), source.records - source.untimed, "{}", source.file);
        assert!(source.malformed + source.oversize <= 2 * source.records);
        let cached = source.notes.iter().any(|n| n.contains("UTF-16") || n.contains("gzip"));
        let Ok(text) = std::fs::read(evidence.join(&source.file)) else { continue };
        let packed = [&[0x1f, 0x8b][..], &[0x28, 0xb5, 0x2f, 0xfd], b"ElfFile\0"];
        if cached || packed.iter().any(|magic| text.starts_with(magic)) {
            continue;
        }
        assert_eq!(source.bytes, text.len() as u64, "{}", source.file);
        let lines: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
        assert_eq!(source.lines, lines.len() as u64, "{}", source.file);
        by_line(catalog, source, &text, &lines);
    }
}

fn by_line(catalog: &Catalog, source: &Source, text: &[u8], lines: &[&[u8]]) {
    let mut found = 0;
    let mut covered = 0;
    // If records share a line, their places are their line numbers.
    let placed = source.notes.iter().any(|note| note.starts_with("several records are on one line"));
    let all = if placed { source.records } else { source.lines };
    for number in 1..=all {
        let line = lines.get(usize::try_from(number).unwrap() - 1).copied().filter(|_| !placed).unwrap_or(text);
        for nth in 1.. {
            let Ok(record) = catalog.record_nth(&source.file, number, nth) else { break };
            found += 1;
            let raw = if nth == 1 { catalog.raw(&source.file, number).unwrap() } else { record.bytes.clone() };
            assert!(memchr::memmem::find(text, &raw).is_some(), "{}:{number}", source.file);
            if nth == 1 {
                let begins = memchr::memmem::find(line, raw.split(|b| *b == b'\n').next().unwrap());
                assert!(begins.is_some(), "{}:{number} begins on its line", source.file);
                covered += 1 + raw.iter().filter(|b| **b == b'\n').count() as u64;
            }
        }
        if number > 400 {
            return;
        }
    }
    assert_eq!(found, source.records, "{}", source.file);
    if !matches!(source.format, Format::JsonArray | Format::JsonObjects) {
        assert_eq!(covered + source.blank_lines + source.format_lines, source.lines, "{}", source.file);
    }
}

fn reopened(catalog: &Catalog) -> Catalog {
    let root = catalog.root().to_path_buf();
    Catalog::open(&root, catalog.index_path(), &mut |p| assert_ne!(p.step, "loading", "the index is reused")).unwrap()
}
