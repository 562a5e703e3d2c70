//! Opens each evidence file, and archives as folders.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use super::archive::{self, Member, What};
use super::kind::{Kind, kind};
use super::room::{DEPTH_MAX, NAME_MAX, Room, Sink};
use super::{Events, HEAD, Text, decode, evtx, head};
use crate::catalog::{changed, hash_of};
use crate::profile;
use crate::walk::Found;
use crate::{LoadError, Skipped};

/// Skipped members of one archive that are named. The others are counted by reason.
const NAMED: usize = 50;

/// The texts of one evidence file.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    pub(crate) texts: Vec<(Found, Text)>,
    pub(crate) skipped: Vec<Skipped>,
}

/// Opens the files of a folder one after the other.
#[derive(Debug)]
pub(crate) struct Opener {
    cache: PathBuf,
    made: usize,
    room: Room,
    names: HashSet<String>,
}

/// A file, a member of an archive, or what one of them was decompressed to.
struct Item {
    name: String,
    path: PathBuf,
    size: u64,
    changed: Option<i64>,
    /// It is in the cache folder.
    cached: bool,
    decompressed: bool,
    depth: usize,
    notes: Vec<String>,
}

impl Opener {
    /// `found` are all files of the folder.
    pub(crate) fn new(cache: &Path, found: &[Found]) -> Self {
        let names = found.iter().map(|f| f.file.clone()).collect();
        Self { cache: cache.to_path_buf(), made: 0, room: Room::new(), names }
    }

    /// Errors: The cache folder cannot be written.
    pub(crate) fn open(&mut self, found: &Found) -> Result<Opened, LoadError> {
        self.room.begin(found.size);
        let mut opened = Opened::default();
        let item = Item {
            name: found.file.clone(),
            path: found.path.clone(),
            size: found.size,
            changed: None,
            cached: false,
            decompressed: false,
            depth: 0,
            notes: Vec::new(),
        };
        self.item(item, found, &mut opened)?;
        if opened.texts.iter().any(|(_, text)| text.cached) {
            same(found, &mut opened)?;
        }
        let any = !opened.texts.is_empty();
        summed(found, &mut opened.skipped, any);
        Ok(opened)
    }

    fn item(&mut self, mut item: Item, found: &Found, opened: &mut Opened) -> Result<(), LoadError> {
        let skip = |item: &Item, reason: String| Skipped::new(&item.name, reason);
        if item.size == 0 {
            let why = item
                .notes
                .pop()
                .unwrap_or_else(|| if item.decompressed { "empty when decompressed".into() } else { "empty".into() });
            opened.skipped.push(skip(&item, why));
            return Ok(());
        }
        let head = match head(&item.path, HEAD) {
            Ok(head) => head,
            Err(e) => {
                opened.skipped.push(skip(&item, format!("cannot be read: {e}")));
                return Ok(());
            }
        };
        let kind = kind(&head);
        match kind {
            Kind::Text => {
                let text = Text {
                    path: item.path,
                    size: item.size,
                    sha256: None,
                    cached: item.cached,
                    events: None,
                    changed: item.changed,
                    notes: item.notes,
                };
                let found = Found { file: item.name, ..found.clone() };
                opened.texts.push((found, text));
                return Ok(());
            }
            Kind::Other(why) => opened.skipped.push(skip(&item, why.into())),
            Kind::Gzip | Kind::Zstd if item.decompressed => {
                opened.skipped.push(skip(&item, "compressed more than once: decompress it first".into()));
            }
            Kind::Zip | Kind::Tar if item.depth >= DEPTH_MAX => {
                let why = format!("archives are nested more than {DEPTH_MAX} deep: unpack it first");
                opened.skipped.push(skip(&item, why));
            }
            Kind::Gzip | Kind::Zstd => self.decompress(&kind, &item, found, opened)?,
            Kind::Utf16 | Kind::Evtx | Kind::Parquet => self.decode(&kind, &item, found, opened)?,
            Kind::Zip | Kind::Tar => self.members(&kind, &item, found, opened)?,
        }
        if item.cached {
            // What was made of it stays. A file that is left over only takes space.
            let _ = std::fs::remove_file(&item.path);
        }
        Ok(())
    }

    fn create(&mut self) -> Result<(PathBuf, Sink<'_>), LoadError> {
        let path = self.cache.join(self.made.to_string());
        self.made += 1;
        let sink = Sink::create(&path, &mut self.room)?;
        Ok((path, sink))
    }

    fn read(item: &Item, opened: &mut Opened) -> Option<File> {
        let file = File::open(&item.path);
        file.map_err(|e| opened.skipped.push(Skipped::new(&item.name, format!("cannot be read: {e}")))).ok()
    }

    fn decompress(&mut self, kind: &Kind, item: &Item, found: &Found, opened: &mut Opened) -> Result<(), LoadError> {
        let Some(file) = Self::read(item, opened) else { return Ok(()) };
        let (path, mut sink) = self.create()?;
        let note = decode::decompress(kind, file, &mut sink);
        let size = sink.finish()?;
        let notes = item.notes.iter().cloned().chain(note).collect();
        let inner = Item {
            name: item.name.clone(),
            path,
            size,
            changed: item.changed,
            cached: true,
            decompressed: true,
            depth: item.depth,
            notes,
        };
        self.item(inner, found, opened)
    }

    fn decode(&mut self, kind: &Kind, item: &Item, found: &Found, opened: &mut Opened) -> Result<(), LoadError> {
        let Some(file) = Self::read(item, opened) else { return Ok(()) };
        let (path, mut sink) = self.create()?;
        let mut notes = item.notes.clone();
        let mut events = None;
        let (mut failed, mut cut) = (None, false);
        match kind {
            Kind::Evtx => match evtx::decode(file, &mut sink) {
                Ok(decoded) => {
                    events = Some(if decoded.ordered { Events::Id } else { Events::Place });
                    notes.extend(decoded.notes);
                    cut = decoded.cut;
                }
                Err(error) => failed = Some(format!("Windows event log that cannot be read: {error}")),
            },
            #[cfg(feature = "parquet")]
            Kind::Parquet => {
                let decoded = super::parquet::decode(file, &mut sink);
                events = Some(Events::Row);
                notes.extend(decoded.notes);
                cut = decoded.cut;
                failed = decoded.failed.map(|why| format!("Parquet file that cannot be read: {why}"));
            }
            _ => {
                notes.push("UTF-16: lines and bytes are those of the text in UTF-8".into());
                let error = decode::utf16(file, &mut sink).err();
                cut = error.is_some();
                failed = error.map(|error| format!("cannot be read: {error}"));
            }
        }
        let full = sink.full().filter(|_| cut);
        let size = sink.finish()?;
        notes.extend(full.map(|why| format!("{why}: only the first {size} bytes are loaded")));
        if size == 0 {
            let why = failed.or_else(|| (!notes.is_empty()).then(|| notes.join("; ")));
            let reason = why.unwrap_or_else(|| "it has no records".to_owned());
            opened.skipped.push(Skipped::new(&item.name, reason));
            let _ = std::fs::remove_file(path);
            return Ok(());
        }
        if !cut {
            notes.extend(failed);
        }
        let text = Text { path, size, sha256: None, cached: true, events, changed: item.changed, notes };
        opened.texts.push((Found { file: item.name.clone(), ..found.clone() }, text));
        Ok(())
    }

    fn members(&mut self, kind: &Kind, item: &Item, found: &Found, opened: &mut Opened) -> Result<(), LoadError> {
        let Some(file) = Self::read(item, opened) else { return Ok(()) };
        let of_archive = |reason: String| Skipped::new(&item.name, reason);
        let before = opened.texts.len();
        opened.skipped.extend(item.notes.iter().cloned().map(of_archive));
        let mut any = false;
        let mut take = |member: Member<'_>| {
            any = true;
            if !self.room.member() {
                opened.skipped.push(of_archive(format!("{}: the rest is not loaded", Room::too_many())));
                return Ok(false);
            }
            self.member(member, item, found, opened)?;
            if let Some(why) = self.room.full() {
                opened.skipped.push(of_archive(format!("{why}: the rest is not loaded")));
                return Ok(false);
            }
            Ok(true)
        };
        let note = archive::members(kind, file, &mut take)?;
        let none = (!any).then(|| "an archive without members".to_owned());
        opened.skipped.extend(note.or(none).map(of_archive));
        let in_part = opened.texts.len() > before;
        opened.skipped.iter_mut().filter(|one| one.file == item.name).for_each(|one| one.in_part = in_part);
        Ok(())
    }

    fn member(
        &mut self,
        member: Member<'_>,
        archive: &Item,
        found: &Found,
        opened: &mut Opened,
    ) -> Result<(), LoadError> {
        let name = format!("{}!/{}", archive.name, profile::cut(&member.name, NAME_MAX));
        let fault = match &member.what {
            What::Refused(why) => Some(why.clone()),
            What::File(_) | What::Folder => None,
        };
        let fault = archive::fault(&member.name).or(fault);
        let reader = match (fault, member.what) {
            (None, What::File(reader)) => reader,
            (None, _) => return Ok(()),
            (Some(reason), _) => {
                opened.skipped.push(Skipped::new(&name, reason));
                return Ok(());
            }
        };
        if !self.names.insert(name.clone()) {
            opened.skipped.push(Skipped::new(&name, "another file has this name: only the first is loaded"));
            return Ok(());
        }
        let (path, mut sink) = self.create()?;
        let copied = decode::copy(reader, &mut sink);
        let full = sink.full();
        let size = sink.finish()?;
        let note = copied.err().map(|error| match full {
            Some(why) => format!("{why}: only the first {size} bytes are loaded"),
            None if size == 0 => format!("it is damaged ({error})"),
            None => format!("it is damaged after {size} bytes ({error}): what comes before is loaded"),
        });
        let inner = Item {
            name,
            path: path.clone(),
            size,
            changed: member.changed,
            cached: true,
            decompressed: false,
            depth: archive.depth + 1,
            notes: note.into_iter().collect(),
        };
        if size == 0 {
            let _ = std::fs::remove_file(path);
        }
        self.item(inner, found, opened)
    }
}

/// Adds the hash of the evidence file. If it changed meanwhile, nothing of it is loaded.
fn same(found: &Found, opened: &mut Opened) -> Result<(), LoadError> {
    let read = |source| LoadError::Read { path: found.path.clone(), source };
    let sha256 = hash_of(&found.path, found.size).map_err(read)?;
    let now = std::fs::metadata(&found.path).map_err(read)?;
    if (now.len(), changed(&now)) != (found.size, found.mtime) {
        let reason = "changed while it was being unpacked: load it again when nothing writes to it";
        for (_, text) in opened.texts.drain(..).filter(|(_, text)| text.cached) {
            let _ = std::fs::remove_file(&text.path);
        }
        opened.skipped.push(Skipped::new(&found.file, reason));
    }
    opened.texts.iter_mut().for_each(|(_, text)| text.sha256 = Some(sha256.clone()));
    Ok(())
}

/// Replaces the skipped members after the first [`NAMED`] by their number for each reason.
fn summed(found: &Found, skipped: &mut Vec<Skipped>, in_part: bool) {
    let (mut members, mut kept): (Vec<Skipped>, Vec<Skipped>) = skipped.drain(..).partition(|s| s.file.contains("!/"));
    members.sort_by_key(|member| ["empty", "binary file", "executable"].contains(&member.reason.as_str()));
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for (number, member) in members.into_iter().enumerate() {
        if number < NAMED {
            kept.push(member);
        } else {
            *counts.entry(member.reason).or_default() += 1;
        }
    }
    if !counts.is_empty() {
        let all: u64 = counts.values().sum();
        let reasons: Vec<String> = counts.into_iter().take(NAMED).map(|(why, n)| format!("{n} × {why}")).collect();
        let reason = format!("{all} more members are not loaded: {}", reasons.join(", "));
        kept.push(Skipped { in_part, ..Skipped::new(&found.file, reason) });
    }
    *skipped = kept;
}
