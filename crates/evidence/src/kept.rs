//! Compares evidence files with the hashes in a report.

use std::io;
use std::path::{Component, Path};

use casebook_protocol::{FileHash, Files, MAX_FILES, MAX_NOTES, SourceNote, one_line};

use super::catalog::hash_of;
use super::{Catalog, ReadError, Skipped, Source};

/// Characters of a note.
const NOTE: usize = 240;
/// Files that are not loaded, among the notes.
const LEFT_OUT: usize = MAX_NOTES / 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Same,
    /// The part that was read is the same, and more was written after it.
    Grown,
    Changed,
}

impl Catalog {
    /// The files that were read, with their hashes.
    pub fn files(&self) -> Files {
        let known = (0..).map_while(|source| self.inner(source).ok()).map(|(_, inner)| &inner.evidence);
        let hashes = known.map(|one| FileHash { file: one.file.clone(), bytes: one.size, sha256: one.sha256.clone() });
        let mut listed: Vec<FileHash> = hashes.collect();
        listed.sort();
        listed.dedup();
        let more = listed.len().saturating_sub(MAX_FILES) as u64;
        listed.truncate(MAX_FILES);
        let of_source = |source: &Source| {
            let note =
                |note: String| SourceNote { source: source.id.clone(), note: one_line(&note, NOTE), blind: false };
            source.told().into_iter().map(note).collect::<Vec<_>>()
        };
        let mut notes = self.not_loaded();
        notes.extend(self.sources().iter().flat_map(of_source));
        notes.truncate(MAX_NOTES);
        Files { listed, more, notes, snapshot: Some(self.snapshot()) }
    }

    fn not_loaded(&self) -> Vec<SourceNote> {
        let about = |source: &str, note: String| SourceNote {
            source: one_line(source, NOTE),
            note: one_line(&note, NOTE),
            blind: true,
        };
        let what = |one: &Skipped| {
            let extent = if one.in_part { "loaded in part" } else { "not loaded" };
            format!("{extent}: {}", one.reason)
        };
        // An empty file has no record that could be missed.
        let skipped: Vec<&Skipped> = self.skipped().iter().filter(|one| one.reason != "empty").collect();
        let mut notes: Vec<SourceNote> = skipped.iter().take(LEFT_OUT).map(|one| about(&one.file, what(one))).collect();
        let gone = |place: i64| {
            let (source, inner) = self.inner(place).ok()?;
            let error = self.place(&inner.evidence).err()?;
            Some(about(&source.file, format!("what was read is gone: {error}")))
        };
        notes.extend((0..self.sources().len()).filter_map(|place| gone(i64::try_from(place).ok()?)).take(LEFT_OUT / 2));
        let more = skipped.len().saturating_sub(LEFT_OUT);
        if more > 0 {
            notes.push(about("evidence", format!("{more} more files are not loaded")));
        }
        notes
    }

    /// The text of the `nth` record that starts on `line` of `file`: whole, or of its first `bytes` bytes.
    ///
    /// Errors: No record starts there; or the file has changed or cannot be read.
    pub fn text_of(&self, file: &str, line: u64, nth: u32, bytes: Option<u64>) -> Result<String, ReadError> {
        let entry = self.find(file, line, nth)?;
        let read = self.bytes(&entry, 0, bytes.unwrap_or(u64::MAX))?;
        Ok(String::from_utf8_lossy(&read).into_owned())
    }
}

/// Reads the file in `folder` again, without an index.
///
/// Errors: The file is not there or cannot be read.
pub fn compare(folder: &Path, known: &FileHash) -> io::Result<Kept> {
    let name = Path::new(&known.file);
    if !name.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "its path leads out of the evidence folder"));
    }
    let path = folder.join(name);
    let size = std::fs::metadata(&path)?.len();
    let same = size >= known.bytes && hash_of(&path, known.bytes)? == known.sha256;
    Ok(match same {
        true if size > known.bytes => Kept::Grown,
        true => Kept::Same,
        false => Kept::Changed,
    })
}

#[cfg(test)]
mod tests {
    use casebook_protocol::hash::sha256_hex;

    use super::*;

    #[test]
    fn file_is_the_same_grown_changed_or_missing() {
        let folder = tempfile::tempdir().unwrap();
        let known = |file: &str| FileHash { file: file.into(), bytes: 3, sha256: sha256_hex(b"one") };
        let after = |text: &str| {
            std::fs::write(folder.path().join("a.log"), text).unwrap();
            compare(folder.path(), &known("a.log")).unwrap()
        };
        assert_eq!([after("one"), after("one\ntwo")], [Kept::Same, Kept::Grown]);
        assert_eq!([after("two"), after("on"), after("")], [Kept::Changed; 3]);
        assert_eq!(compare(folder.path(), &known("b.log")).unwrap_err().kind(), io::ErrorKind::NotFound);
        for outside in ["../a.log", "/etc/passwd"] {
            let error = compare(folder.path(), &known(outside)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{outside}");
        }
    }
}
