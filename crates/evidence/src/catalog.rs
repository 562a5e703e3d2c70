use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use casebook_protocol::{Acts, Timestamp};
use rusqlite::Connection;

use super::answers::Answers;
use super::declared::{Declared, Origin, counted};
use super::fields::Shape;
use super::fields::auditd::event;
use super::hint::Hint;
use super::index::cache_folder;
use super::index::{self, Entry, Manifest, Meta, Stored, blocks};
use super::rules::Rule;
use super::rules::pass::Evaluator;
use super::walk::walk;
use super::{Format, LoadError, Progress, ReadError, Record, Skipped, Source};

mod file;
mod snapshot;

use file::{Checked, fingerprint};
pub(crate) use file::{changed, hash_of, kept, read_at, read_part};
use snapshot::{Cases, Wish};

/// Idle connections to the index.
const IDLE_MAX: usize = 4;

/// A loaded folder of evidence, for use by many threads.
#[derive(Debug)]
pub struct Catalog {
    root: PathBuf,
    index: PathBuf,
    /// The folder of indexes; none if the index was opened by its path.
    folder: Option<PathBuf>,
    /// Held while the catalog lives, so that no process removes the index.
    used: Option<File>,
    hint: Option<Hint>,
    cases: Mutex<Cases>,
    loading: Mutex<()>,
    manifest: Vec<Manifest>,
    sources: Vec<Source>,
    /// The sensor that each source counts as.
    counted: Vec<String>,
    declared: Declared,
    inner: Vec<Inner>,
    skipped: Vec<Skipped>,
    fingerprint: String,
    read: Timestamp,
    rules: String,
    /// By source, what finds the rules that a record meets. None if no rule can match.
    evaluators: Mutex<HashMap<i64, Option<Evaluator>>>,
    idle: Mutex<Vec<Connection>>,
    pub(crate) answers: Answers,
    /// Files that changed and still hold the bytes that were indexed.
    checked: Mutex<HashMap<String, Checked>>,
    /// The acts of each alert by its text, which all Experts over these files ask for.
    pub(crate) listed: Mutex<HashMap<String, Arc<Mutex<Option<Acts>>>>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) shape: Arc<Shape>,
    pub(crate) names: Vec<String>,
    /// As recognised during loading, when the rules were chosen.
    sensor: String,
    /// The decoded text; none if it is the evidence file itself.
    cached: Option<PathBuf>,
    pub(crate) evidence: Manifest,
}

impl Catalog {
    /// Loads `evidence_dir` with the index `index_path`. The index is built again if the evidence has changed.
    /// `<index_path>.cache` holds decompressed text.
    ///
    /// Errors: The folder is missing, unreadable or without usable files; the index cannot be written.
    pub fn open(
        evidence_dir: &Path,
        index_path: &Path,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Self, LoadError> {
        let wish = Wish::default();
        let found = walk(evidence_dir, index_path)?;
        let mut looked = Vec::new();
        match Self::there(evidence_dir, index_path, &found.0, &wish, &mut looked) {
            Some(catalog) => Ok(catalog),
            None => Self::made(evidence_dir, index_path, found, &wish, &looked, progress),
        }
    }

    /// Like [`Catalog::open`], with the index in `folder`, which several processes may share: one builds it
    /// while the others wait. `hint` gives years and zones that the evidence does not. Without it, an existing
    /// index is used as it is.
    ///
    pub fn open_in(
        evidence_dir: &Path,
        folder: &Path,
        hint: Option<&Hint>,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Self, LoadError> {
        Self::in_folder(evidence_dir, folder, &Wish { hint, ..Wish::default() }, progress)
    }

    /// Like [`Catalog::open_in`], with what the configuration states about the sources.
    ///
    /// Errors: Those of [`Catalog::open_in`] and [`Catalog::declare`].
    pub fn declared_in(
        evidence_dir: &Path,
        folder: &Path,
        hint: Option<&Hint>,
        declared: &Declared,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Self, LoadError> {
        let mut catalog =
            Self::in_folder(evidence_dir, folder, &Wish { hint, declared: Some(declared), files: None }, progress)?;
        catalog.declare(declared)?;
        Ok(catalog)
    }

    fn new(root: &Path, index: &Path, meta: Meta) -> Self {
        let fingerprint = fingerprint(&meta.manifest);
        let mut sources = Vec::new();
        let mut inner = Vec::new();
        let known: HashMap<&str, &Manifest> = meta.manifest.iter().map(|m| (m.file.as_str(), m)).collect();
        for Stored { source, shape, names, cache, outer } in meta.sources {
            let cached = cache.map(|name| cache_folder(index).join(name));
            let evidence = known.get(outer.as_str()).map(|m| Manifest::clone(m));
            let evidence = evidence.unwrap_or(Manifest {
                file: String::new(),
                size: 0,
                mtime: 0,
                sha256: String::new(),
                inode: (0, 0),
            });
            inner.push(Inner { shape: Arc::new(shape), names, sensor: source.sensor.clone(), cached, evidence });
            sources.push(source);
        }
        Self {
            root: root.to_path_buf(),
            index: index.to_path_buf(),
            folder: None,
            used: None,
            hint: None,
            cases: Mutex::default(),
            loading: Mutex::default(),
            counted: counted(sources.iter().map(origin)),
            declared: Declared::default(),
            sources,
            inner,
            manifest: meta.manifest,
            skipped: meta.skipped,
            fingerprint,
            read: meta.read,
            rules: meta.rules,
            evaluators: Mutex::new(HashMap::new()),
            idle: Mutex::new(Vec::new()),
            answers: Answers::default(),
            checked: Mutex::new(HashMap::new()),
            listed: Mutex::new(HashMap::new()),
        }
    }

    /// Sets what the configuration states about the sources. The index keeps what was detected.
    ///
    /// Errors: The configuration is inside the evidence.
    pub fn declare(&mut self, declared: &Declared) -> Result<(), LoadError> {
        let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let folder = whole(&self.root);
        let rules = declared.rule_set.iter().flat_map(|set| set.files_of_users());
        if let Some(file) = declared
            .file
            .iter()
            .chain(&declared.formats_file)
            .map(PathBuf::as_path)
            .chain(rules)
            .map(whole)
            .find(|f| f.starts_with(&folder))
        {
            return Err(LoadError::Inside { file, folder });
        }
        self.sources.iter_mut().for_each(|source| declared.apply(source));
        self.counted = counted(self.sources.iter().map(origin));
        self.declared = declared.clone();
        Ok(())
    }

    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Each source with the sensor that it counts as. Sources of one sensor are not independent.
    pub fn with_sensors(&self) -> impl Iterator<Item = (&Source, &str)> {
        self.sources.iter().zip(self.counted.iter().map(String::as_str))
    }

    /// The addresses of the trusted package sources, each a prefix of the addresses that it holds.
    pub(crate) fn trusted(&self) -> Vec<String> {
        self.declared.package_sources.clone()
    }

    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// SHA-256 over path, size and content of every file.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The record that starts on `line` of `file`; the first one if there are several.
    ///
    /// Errors: No record starts there; or the file has changed or cannot be read.
    pub fn record(&self, file: &str, line: u64) -> Result<Record, ReadError> {
        self.record_nth(file, line, 1)
    }

    /// The `nth` record (from 1) that starts on `line` of `file`.
    ///
    pub fn record_nth(&self, file: &str, line: u64, nth: u32) -> Result<Record, ReadError> {
        let entry = self.find(file, line, nth)?;
        let bytes = self.bytes(&entry, 0, kept(&entry))?;
        Ok(self.record_of(&entry, bytes))
    }

    /// All bytes of the first record that starts on `line` of `file`, without the line end.
    ///
    pub fn raw(&self, file: &str, line: u64) -> Result<Vec<u8>, ReadError> {
        let entry = self.find(file, line, 1)?;
        self.bytes(&entry, 0, u64::try_from(entry.length).unwrap_or(0))
    }

    /// Reads every loaded file and compares its hash.
    ///
    /// Errors: The first file that has changed or cannot be read.
    pub fn verify(&self) -> Result<(), ReadError> {
        self.inner.iter().try_for_each(|inner| self.same_bytes(inner))
    }

    /// The rules that a record meets, of those that were evaluated during loading.
    pub(crate) fn rules_met(&self, source: i64, record: &Record) -> Vec<Rule> {
        let (Some(rules), Ok((known, inner))) = (&self.declared.rule_set, self.inner(source)) else {
            return Vec::new();
        };
        let mut all = self.evaluators.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Evaluator::new(rules, &inner.sensor, &known.file, known.format);
        let evaluator = all.entry(source).or_insert_with(made);
        evaluator.as_mut().map(|one| one.met(&record.fields(), &record.bytes)).unwrap_or_default()
    }

    pub(crate) fn find(&self, file: &str, line: u64, nth: u32) -> Result<Entry, ReadError> {
        let missing = |hint: String| ReadError::NoRecord { file: file.to_owned(), line, hint };
        let Some(source) = self.source_of(file) else {
            let known: Vec<&str> = self.sources.iter().take(20).map(|s| s.file.as_str()).collect();
            return Err(missing(format!(": no such file is loaded; there are {}", known.join(", "))));
        };
        let wanted = i64::try_from(line).unwrap_or(i64::MAX);
        let place = i64::try_from(source).unwrap_or(i64::MAX);
        let found = self.with_index(|db| Ok(blocks::at_line(db, place, wanted, i64::from(nth))?))?;
        let lines = self.sources.get(source).map_or(0, |s| s.lines);
        found.ok_or_else(|| {
            let of_events = self.sources.get(source).is_some_and(|s| s.format == Format::Evtx);
            missing(if of_events {
                format!(": the event log has no record with this number; the last is {lines}")
            } else if line > lines || line == 0 {
                format!(": the file has lines 1 to {lines}")
            } else if nth > 1 {
                format!(", number {nth} on that line")
            } else {
                ": the line is blank, a header, or inside a record that starts before it".to_owned()
            })
        })
    }

    /// Accepts a file name with a leading `evidence/` or `./`.
    pub(crate) fn source_of(&self, file: &str) -> Option<usize> {
        let place = |name: &str| self.sources.iter().position(|s| s.file == name);
        let folder = self.root.file_name().map(|n| n.to_string_lossy().into_owned());
        place(file).or_else(|| {
            let rest = file.strip_prefix("./").unwrap_or(file);
            let inner = folder.and_then(|f| rest.strip_prefix(&f)?.strip_prefix('/'));
            place(inner.unwrap_or(rest))
        })
    }

    pub(crate) fn inner(&self, source: i64) -> Result<(&Source, &Inner), ReadError> {
        let place = usize::try_from(source).ok();
        place
            .and_then(|p| Some((self.sources.get(p)?, self.inner.get(p)?)))
            .ok_or_else(|| ReadError::Query("the index names a source that does not exist".into()))
    }

    /// The hash of the rules that were evaluated during loading.
    pub fn evaluated(&self) -> Option<&str> {
        Some(self.rules.as_str()).filter(|hash| !hash.is_empty())
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    #[cfg(test)]
    pub(crate) fn index_path(&self) -> &Path {
        &self.index
    }

    pub(crate) fn with_index<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let db = match idle {
            Some(db) => db,
            None => index::open(&self.index)?,
        };
        let answer = query(&db);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(db);
        }
        drop(idle);
        answer
    }

    /// The text of a source, after a check that it is unchanged.
    pub(crate) fn text(&self, source: i64) -> Result<File, ReadError> {
        let (_, inner) = self.inner(source)?;
        let place = self.place(&inner.evidence)?;
        let path = inner.cached.as_ref().unwrap_or(&place);
        File::open(path).map_err(|e| ReadError::Read { file: inner.evidence.file.clone(), source: e })
    }

    pub(crate) fn bytes(&self, entry: &Entry, offset: u64, length: u64) -> Result<Vec<u8>, ReadError> {
        let (source, _) = self.inner(entry.source)?;
        let mut file = self.text(entry.source)?;
        read_part(&mut file, entry, offset, length)
            .map_err(|e| ReadError::Read { file: source.file.clone(), source: e })
    }

    /// The other lines of the event that a record is a line of.
    fn others(&self, entry: &Entry) -> Vec<Vec<u8>> {
        if entry.oversize || self.inner(entry.source).map_or(true, |(source, _)| source.format != Format::Auditd) {
            return Vec::new();
        }
        let read = || {
            let reach = i64::try_from(event::reach()).unwrap_or(0) + 1;
            let from = (entry.offset - reach).max(0);
            let (own, length) = (usize::try_from(entry.offset - from).ok()?, usize::try_from(entry.length).ok()?);
            let mut file = self.text(entry.source).ok()?;
            file.seek(SeekFrom::Start(u64::try_from(from).ok()?)).ok()?;
            let most = u64::try_from(entry.offset - from + entry.length + reach).ok()?;
            let mut text = Vec::new();
            file.take(most).read_to_end(&mut text).ok()?;
            Some(event::others(&text, own..own + length).into_iter().map(<[u8]>::to_vec).collect())
        };
        read().unwrap_or_default()
    }

    pub(crate) fn record_of(&self, entry: &Entry, bytes: Vec<u8>) -> Record {
        let known = self.inner(entry.source).ok();
        let stamp = |ns: Option<i64>| ns.and_then(|ns| Timestamp::from_nanosecond(ns.into()).ok());
        let field = entry.field.and_then(|f| usize::try_from(f).ok());
        Record {
            id: u64::try_from(entry.id).unwrap_or(0),
            source: known.map(|(s, _)| s.id.clone()).unwrap_or_default(),
            file: known.map(|(s, _)| s.file.clone()).unwrap_or_default(),
            line: u64::try_from(entry.line).unwrap_or(0),
            nth: u32::try_from(entry.nth).unwrap_or(1),
            time: stamp(entry.time),
            time_basis: entry.basis,
            time_field: field.and_then(|f| known.and_then(|(_, i)| i.names.get(f).cloned())),
            precision: entry.time.map(|_| entry.precision),
            ingested: stamp(entry.ingested),
            malformed: entry.malformed,
            oversize: entry.oversize,
            length: u64::try_from(entry.length).unwrap_or(0),
            bytes,
            others: self.others(entry),
            shape: known.map_or_else(|| Arc::new(Shape::of(Format::Plain)), |(_, i)| Arc::clone(&i.shape)),
        }
    }
}

fn origin(source: &Source) -> Origin<'_> {
    Origin { sensor: &source.sensor, confirmed: source.confirmed, hosts: &source.hosts }
}
