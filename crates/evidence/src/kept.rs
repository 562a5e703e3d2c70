//! Compares evidence files with the hashes in a report.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path};

use casebook_protocol::FileHash;

use super::text::Hashing;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Same,
    /// The part that was read is the same, and more was written after it.
    Grown,
    Changed,
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
    let same = size >= known.bytes && Hashing::new(File::open(&path)?.take(known.bytes)).finish()? == known.sha256;
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
