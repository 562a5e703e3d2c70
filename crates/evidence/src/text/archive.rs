//! The members of an archive, one after the other.

use std::fs::File;
use std::io::Read;

use super::kind::Kind;
use super::room::NAME_MAX;
use super::{tar, zip};
use crate::LoadError;

pub(super) struct Member<'m> {
    pub(super) name: String,
    pub(super) what: What<'m>,
    /// In nanoseconds since 1970.
    pub(super) changed: Option<i64>,
}

pub(super) enum What<'m> {
    Folder,
    File(&'m mut dyn Read),
    /// Not read, with the reason.
    Refused(String),
}

/// Takes a member. False ends the archive.
pub(super) type Take<'t> = dyn FnMut(Member<'_>) -> Result<bool, LoadError> + 't;

/// Gives each member to `take`. Returns a note if the archive is damaged or has more than its members.
pub(super) fn members(kind: &Kind, file: File, take: &mut Take<'_>) -> Result<Option<String>, LoadError> {
    match kind {
        Kind::Zip => zip::members(file, take),
        _ => tar::members(file, take),
    }
}

/// Why a member cannot have this name.
pub(super) fn fault(name: &str) -> Option<String> {
    let mut parts = name.split(['/', '\\']);
    let drive = name.as_bytes().get(1) == Some(&b':') && name.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
    if name.is_empty() {
        Some("it has no name".into())
    } else if name.len() > NAME_MAX {
        Some(format!("its name is longer than {NAME_MAX} bytes"))
    } else if name.starts_with(['/', '\\']) || drive {
        Some("its path is absolute".into())
    } else if parts.any(|part| part == "..") {
        Some("its path leads out of the archive".into())
    } else if name.chars().any(char::is_control) {
        Some("its name has control characters".into())
    } else {
        None
    }
}
