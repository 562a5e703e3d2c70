use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::{LoadError, Skipped};

/// Deeper folders are listed as skipped.
const DEPTH_MAX: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Relative to the folder, with `/`. For the member of an archive, `archive.zip!/member`.
    pub(crate) file: String,
    /// The file of the folder; for a member, the archive. Path, size and time are of this file.
    pub(crate) outer: String,
    pub(crate) path: PathBuf,
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) mtime: i64,
    /// The numbers of its device and its place there, which it keeps when it is renamed.
    pub(crate) inode: (u64, u64),
}

/// All regular files below `root` in order of path, and what else was found. Symbolic links are not followed: a
/// target inside the folder is found anyway, and a target outside does not belong to the evidence.
pub(crate) fn walk(root: &Path, own: &Path) -> Result<(Vec<Found>, Vec<Skipped>), LoadError> {
    match fs::metadata(root) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(LoadError::NoFolder(root.to_path_buf()));
        }
        Err(source) => return Err(LoadError::Read { path: root.to_path_buf(), source }),
        Ok(meta) if !meta.is_dir() => return Err(LoadError::NotAFolder(root.to_path_buf())),
        Ok(_) => {}
    }
    let mut found = Vec::new();
    let mut skipped = Vec::new();
    let mut folders = VecDeque::from([(root.to_path_buf(), 0)]);
    while let Some((folder, depth)) = folders.pop_front() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(source) if depth == 0 => {
                return Err(LoadError::Read { path: folder, source });
            }
            Err(e) => {
                skipped.push(skip(root, &folder, format!("folder cannot be read: {e}")));
                continue;
            }
        };
        for entry in entries.flatten() {
            let path = entry.path();
            match look(root, &path, own) {
                Ok(Entry::File(file)) => found.push(file),
                Ok(Entry::Folder) if depth < DEPTH_MAX => folders.push_back((path, depth + 1)),
                Ok(Entry::Folder) => skipped.push(skip(root, &path, "nested too deep".into())),
                Ok(Entry::Own) => {}
                Err(why) => skipped.push(skip(root, &path, why)),
            }
        }
    }
    found.sort_by(|a, b| a.file.cmp(&b.file));
    skipped.sort_by(|a, b| a.file.cmp(&b.file));
    Ok((found, skipped))
}

enum Entry {
    File(Found),
    Folder,
    Own,
}

fn look(root: &Path, path: &Path, own: &Path) -> Result<Entry, String> {
    let name = own.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let ours =
        path.parent() == own.parent() && path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&name));
    if ours {
        return Ok(Entry::Own);
    }
    let meta = fs::symlink_metadata(path).map_err(|e| format!("cannot be read: {e}"))?;
    if meta.is_symlink() {
        return Err("symbolic link: not followed".into());
    }
    if meta.is_dir() {
        return Ok(Entry::Folder);
    }
    if !meta.is_file() {
        return Err("not a regular file".into());
    }
    let mtime = meta
        .modified()
        .ok()
        .and_then(|t| t.duration_since(UNIX_EPOCH).ok())
        .and_then(|d| i64::try_from(d.as_nanos()).ok())
        .unwrap_or(0);
    let file = relative(root, path);
    Ok(Entry::File(Found {
        outer: file.clone(),
        file,
        path: path.to_path_buf(),
        size: meta.len(),
        mtime,
        inode: inode(&meta),
    }))
}

pub(crate) fn inode(meta: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (meta.dev(), meta.ino())
}

fn skip(root: &Path, path: &Path, reason: String) -> Skipped {
    Skipped::new(&relative(root, path), reason)
}

fn relative(root: &Path, path: &Path) -> String {
    let inner = path.strip_prefix(root).unwrap_or(path);
    inner.components().map(|c| c.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// The path without extensions, or with them if two files would have the same id.
pub(crate) fn ids(files: &[String]) -> Vec<String> {
    let short: Vec<String> = files.iter().map(|f| stem(f)).collect();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    short.iter().for_each(|id| *seen.entry(id).or_default() += 1);
    let unique = |id: &String| seen.get(id.as_str()) == Some(&1);
    short.iter().zip(files).map(|(id, file)| if unique(id) { id.clone() } else { file.clone() }).collect()
}

fn stem(file: &str) -> String {
    const KNOWN: [&str; 18] = [
        "zst", "gz", "gzip", "json", "ndjson", "jsonl", "log", "csv", "tsv", "txt", "xml", "yaml", "yml", "cef",
        "evtx", "parquet", "conf", "eve",
    ];
    let mut rest = file;
    while let Some((before, extension)) = rest.rsplit_once('.') {
        let known = KNOWN.contains(&extension.to_ascii_lowercase().as_str());
        if !known || before.is_empty() || before.ends_with('/') {
            break;
        }
        rest = before;
    }
    rest.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_and_unique() {
        let files = ["a.json", "a.ndjson.gz", "auth.log.1", "logs/x.log", "policy.v1.yaml", ".log"];
        let files: Vec<String> = files.iter().map(|f| (*f).to_owned()).collect();
        assert_eq!(ids(&files), ["a.json", "a.ndjson.gz", "auth.log.1", "logs/x", "policy.v1", ".log"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_listed_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("sub/b.log"), "x").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("out")).unwrap();
        let (found, skipped) = walk(dir.path(), Path::new("/elsewhere")).unwrap();
        assert_eq!(found.iter().map(|f| f.file.as_str()).collect::<Vec<_>>(), ["sub/b.log"]);
        assert_eq!(skipped[0].file, "out");
    }
}
