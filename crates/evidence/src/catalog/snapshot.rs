//! Snapshots of a folder that grows. Each has its own index.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use casebook_protocol::hash::sha256_hex;
use casebook_protocol::{FileHash, Snapshot};

use super::file::{fingerprint, hash_of, unchanged};
use super::{Catalog, Hint};
use crate::declared::Declared;
use crate::index::cache_folder;
use crate::index::{self, Looked, Manifest, Meta};
use crate::load::build;
use crate::walk::{Found, walk};
use crate::{LoadError, Progress, Skipped, private};

/// What an index must fit.
#[derive(Debug, Default)]
pub(super) struct Wish<'w> {
    pub(super) hint: Option<&'w Hint>,
    /// None: an index with any configuration fits.
    pub(super) declared: Option<&'w Declared>,
    /// The files as they were in a snapshot. None for the folder as it is.
    pub(super) files: Option<&'w [FileHash]>,
}

impl Wish<'_> {
    fn is_met(&self, manifest: &[Manifest]) -> bool {
        let has = |file: &FileHash| {
            manifest.iter().any(|m| (&m.file, m.size, &m.sha256) == (&file.file, file.bytes, &file.sha256))
        };
        self.files.is_none_or(|files| files.iter().all(has))
    }
}

/// Investigations whose snapshot is remembered.
const CASES_MAX: usize = 1_000;
/// How long the files of an investigation are noted for other processes.
const CASE_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// Further snapshots that are kept open. Each has an index on disk.
const OPEN_MAX: usize = 4;

/// The snapshots of investigations. None is the catalog itself.
#[derive(Debug, Default)]
pub(super) struct Cases {
    newest: Option<Arc<Catalog>>,
    open: VecDeque<(String, Option<Arc<Catalog>>)>,
}

impl Cases {
    /// Forgets the oldest. Later tasks of such an investigation name the files that were read for it.
    fn limit(&mut self) {
        let snapshots = |open: &VecDeque<(String, Option<Arc<Catalog>>)>| {
            open.iter().filter_map(|(_, catalog)| catalog.as_ref().map(Arc::as_ptr)).collect::<BTreeSet<_>>().len()
        };
        while self.open.len() > CASES_MAX || snapshots(&self.open) > OPEN_MAX {
            self.open.pop_front();
        }
    }
}

type Walked = (Vec<Found>, Vec<Skipped>);

impl Catalog {
    /// The index at this path, if it fits.
    pub(super) fn there(
        evidence: &Path,
        index: &Path,
        found: &[Found],
        wish: &Wish<'_>,
        looked: &mut Vec<Looked>,
    ) -> Option<Self> {
        let with_records = |meta: &mut Meta| {
            if wish.files.is_some() {
                meta.manifest.retain(|m| !m.sha256.is_empty());
            }
        };
        let mut meta = index::meta(index)?;
        with_records(&mut meta);
        if !unchanged(&meta, found, index) || !wish.is_met(&meta.manifest) {
            return None;
        }
        let there = Self::new(evidence, index, meta.clone());
        let files: Vec<&str> = there.sources.iter().map(|s| s.file.as_str()).collect();
        let same = wish.declared.is_none_or(|declared| {
            declared.rule_set.as_ref().is_none_or(|rules| meta.rules == rules.hash())
                && meta.reading == declared.reading()
        });
        if same && meta.guessed.holds(wish.hint, &files, |file, line| there.find(file, line, 1).ok()?.time) {
            return Some(there);
        }
        if looked.is_empty() {
            *looked = meta.guessed.told;
        }
        None
    }

    pub(super) fn made(
        evidence: &Path,
        index: &Path,
        found: Walked,
        wish: &Wish<'_>,
        looked: &[Looked],
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Self, LoadError> {
        let none = Declared::default();
        let declared = wish.declared.unwrap_or(&none);
        let meta = build(evidence, index, found, wish.hint, looked, declared, progress)?;
        Ok(Self::new(evidence, index, meta))
    }

    /// One process builds an index while the others wait. Processes that use an older one keep it.
    pub(super) fn in_folder(
        evidence_dir: &Path,
        folder: &Path,
        wish: &Wish<'_>,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Self, LoadError> {
        let evidence = evidence_dir.canonicalize().map_err(|_| LoadError::NoFolder(evidence_dir.to_path_buf()))?;
        private::folder(folder)?;
        let base = folder.join(name_of(&evidence));
        let lock = base.with_extension("lock");
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| LoadError::Write { path, source }
        };
        let held = private::file(&lock).map_err(failed(&lock))?;
        held.lock().map_err(failed(&lock))?;
        let (mut found, mut skipped) = walk(&evidence, &base)?;
        if let Some(files) = wish.files {
            bound(files, &mut found, &mut skipped);
        }
        let mut looked = Vec::new();
        for index in snapshots(&base).into_iter().rev() {
            let Ok(used) = claim(&index) else { continue };
            if let Some(mut there) = Self::there(&evidence, &index, &found, wish, &mut looked) {
                there.keep(folder, used, wish);
                return Ok(there);
            }
        }
        loop {
            let index = fresh(&base);
            let used = claim(&index).map_err(failed(&index))?;
            let walked = (found.clone(), skipped.clone());
            let mut made = Self::made(&evidence, &index, walked, wish, &looked, progress)?;
            let before = found.len();
            found.retain(|file| {
                let is_of = |hash: &FileHash| hash.file == file.file;
                let read = made.manifest.iter().find(|m| m.file == file.file);
                let same = wish
                    .files
                    .unwrap_or_default()
                    .iter()
                    .find(|hash| is_of(hash))
                    .is_none_or(|hash| read.is_some_and(|read| read.sha256 == hash.sha256));
                if !same {
                    skipped.push(Skipped::new(&file.file, "it was changed after it was read for this investigation"));
                }
                same
            });
            if found.len() == before {
                made.keep(folder, used, wish);
                tidy(&base, &index);
                return Ok(made);
            }
        }
    }

    fn keep(&mut self, folder: &Path, used: File, wish: &Wish<'_>) {
        self.folder = Some(folder.to_path_buf());
        self.used = Some(used);
        self.hint = wish.hint.cloned();
    }

    /// The catalog for an investigation, the same each time: as of `files`, or of the folder as it is at the first call
    /// if nothing was read for the investigation yet.
    ///
    /// Errors: Those of [`Catalog::open_in`].
    pub fn for_case(self: &Arc<Self>, case: &str, files: &[FileHash]) -> Result<Arc<Self>, LoadError> {
        let cases = || self.cases.lock().unwrap_or_else(PoisonError::into_inner);
        let known = || {
            let found = cases().open.iter().find(|(known, _)| known == case).map(|(_, open)| open.clone())?;
            Some(found.unwrap_or_else(|| Arc::clone(self)))
        };
        if let Some(known) = known() {
            return Ok(known);
        }
        // One loads; calls of investigations whose snapshot is open do not wait for it.
        let _loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known() {
            return Ok(known);
        }
        let newest = cases().newest.clone().unwrap_or_else(|| Arc::clone(self));
        // A process may have ended between the first call and the first outcome of the investigation.
        let begun = self.begun(case).filter(|_| files.is_empty());
        let found = match begun.as_deref() {
            Some(begun) => newest.as_of(begun)?,
            None if files.is_empty() => newest.renewed()?,
            None => newest.as_of(files)?,
        };
        if begun.is_none() && files.is_empty() {
            found.begin(case);
        }
        // With a reference to itself, the catalog would never be dropped.
        let other = Some(&found).filter(|found| !Arc::ptr_eq(found, self)).cloned();
        let mut cases = cases();
        if files.is_empty() && begun.is_none() {
            cases.newest.clone_from(&other);
        }
        cases.open.push_back((case.to_owned(), other));
        cases.limit();
        drop(cases);
        Ok(found)
    }

    fn case_file(&self, case: &str) -> Option<PathBuf> {
        let base = self.folder.as_ref()?.join(name_of(&self.root));
        let case = sha256_hex(case.as_bytes());
        Some(with(&base, &format!("-{}.case", case.get(..16)?)))
    }

    /// The files that a process read first for an investigation, if it used the same folder of indexes.
    fn begun(&self, case: &str) -> Option<Vec<FileHash>> {
        let text = fs::read_to_string(self.case_file(case)?).ok()?;
        serde_json::from_str(&text).ok().filter(|files: &Vec<FileHash>| !files.is_empty())
    }

    /// Notes the files for other processes. Without the note, they read the folder as it is.
    fn begin(&self, case: &str) {
        let Some(path) = self.case_file(case) else { return };
        let files = self.files();
        let text = serde_json::to_vec(&files.listed).unwrap_or_default();
        let written = || {
            let new = with(&path, ".new");
            private::file(&new)?.write_all(&text)?;
            fs::rename(new, &path)
        };
        if files.more == 0 {
            let _ = written();
        }
    }

    /// Whether the folder had this file when it was read.
    pub fn has_file(&self, file: &str) -> bool {
        self.manifest.binary_search_by(|known| known.file.as_str().cmp(file)).is_ok()
    }

    /// The files as they were read, and when.
    pub fn snapshot(&self) -> Snapshot {
        let with_records: Vec<Manifest> = self.manifest.iter().filter(|m| !m.sha256.is_empty()).cloned().collect();
        Snapshot { id: fingerprint(&with_records), read: self.read }
    }

    /// The folder as it is now: this catalog if no file was added, removed or changed.
    ///
    /// Errors: Those of [`Catalog::open_in`].
    pub fn renewed(self: &Arc<Self>) -> Result<Arc<Self>, LoadError> {
        let Some(folder) = &self.folder else { return Ok(Arc::clone(self)) };
        let (found, _) = walk(&self.root, &folder.join(name_of(&self.root)))?;
        let same = |(known, now): (&Manifest, &Found)| {
            (&known.file, known.size, known.mtime) == (&now.file, now.size, now.mtime)
        };
        if found.len() == self.manifest.len() && self.manifest.iter().zip(&found).all(same) {
            return Ok(Arc::clone(self));
        }
        self.again(folder, None)
    }

    /// The folder as it was when these files were read. A file that no longer holds what was read is skipped.
    ///
    /// Errors: Those of [`Catalog::open_in`].
    pub fn as_of(self: &Arc<Self>, files: &[FileHash]) -> Result<Arc<Self>, LoadError> {
        let wish = Wish { files: Some(files), ..Wish::default() };
        let with_records = self.manifest.iter().filter(|m| !m.sha256.is_empty()).count();
        match &self.folder {
            Some(folder) if with_records != files.len() || !wish.is_met(&self.manifest) => {
                self.again(folder, Some(files))
            }
            _ => Ok(Arc::clone(self)),
        }
    }

    fn again(&self, folder: &Path, files: Option<&[FileHash]>) -> Result<Arc<Self>, LoadError> {
        let wish = Wish { hint: self.hint.as_ref(), declared: Some(&self.declared), files };
        let mut catalog = Self::in_folder(&self.root, folder, &wish, &mut |_| {})?;
        catalog.declare(&self.declared)?;
        Ok(Arc::new(catalog))
    }
}

/// Named after the whole path, so that folders do not share an index.
fn name_of(evidence: &Path) -> String {
    let name = sha256_hex(evidence.as_os_str().as_encoded_bytes());
    name.get(..16).unwrap_or(&name).to_owned()
}

/// The indexes of the folder, the oldest first.
fn snapshots(base: &Path) -> Vec<PathBuf> {
    named(base, ".sqlite")
}

fn named(base: &Path, end: &str) -> Vec<PathBuf> {
    let name = base.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let entries = base.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let is_one = |path: &PathBuf| {
        let file = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        file.strip_prefix(&name).is_some_and(|rest| rest.ends_with(end))
    };
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_one).collect();
    all.sort();
    all
}

fn fresh(base: &Path) -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    with(base, &format!("-{now:020}.sqlite"))
}

fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// While the lock is held, no process removes the index.
fn claim(index: &Path) -> std::io::Result<File> {
    let used = private::file(&with(index, ".used"))?;
    used.lock_shared()?;
    Ok(used)
}

/// Removes the indexes that no process uses, and old notes on investigations. What cannot be removed now is removed
/// later.
fn tidy(base: &Path, keep: &Path) {
    for case in named(base, ".case") {
        let changed = fs::metadata(&case).and_then(|meta| meta.modified());
        if changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > CASE_KEPT)) {
            let _ = fs::remove_file(case);
        }
    }
    for index in snapshots(base).into_iter().filter(|index| index != keep) {
        let used = with(&index, ".used");
        if private::file(&used).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(cache_folder(&index));
            let _ = fs::remove_file(&index);
            let _ = fs::remove_file(used);
        }
    }
}

/// Keeps the part of each file that belongs to the snapshot.
fn bound(files: &[FileHash], found: &mut Vec<Found>, skipped: &mut Vec<Skipped>) {
    let all = std::mem::take(found);
    skipped.clear();
    for file in files {
        let own = all.iter().find(|f| f.file == file.file && f.size >= file.bytes);
        // A rotation renames a file within its folder.
        let folder = |name: &str| name.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        let holds = |f: &&Found| {
            f.size >= file.bytes
                && folder(&f.file) == folder(&file.file)
                && hash_of(&f.path, file.bytes).is_ok_and(|hash| hash == file.sha256)
        };
        let own = own.filter(|own| own.size == file.bytes || holds(own));
        match own.or_else(|| all.iter().find(holds)) {
            Some(one) => {
                let (name, outer) = (file.file.clone(), file.file.clone());
                found.push(Found { file: name, outer, size: file.bytes, ..one.clone() });
            }
            None => skipped.push(Skipped::new(&file.file, "what was read of it for this investigation is gone")),
        }
    }
    found.sort_by(|a, b| a.file.cmp(&b.file));
}
