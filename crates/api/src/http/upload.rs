//! Uploads of evidence: one request for each file, the bytes as they are.

use std::io::{ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use casebook_runtime::files;
use casebook_runtime::process::blocking;
use futures_util::StreamExt;
use serde_json::json;
use tempfile::TempPath;
use tokio::io::AsyncWriteExt;

use super::api::Call;
use super::{App, answer};
use crate::model::upload;
use crate::problem::{Kind, Problem};

const FILE: u64 = 256 << 20;
const WHOLE: u64 = 2 << 30;
const FILES: u64 = 10_000;
/// Uploads in a data folder.
const UPLOADS: usize = 100;
/// The longest wait for a part of a file.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a compressed file may become: so many bytes, and so many times its size.
const UNPACKED: u64 = 4 << 30;
const RATIO: u64 = 200;
/// Begins the name of what is not an upload: a file that is not whole yet, or an upload that is being removed.
const PART: &str = ".part-";

fn folder(app: &App) -> Result<PathBuf, Problem> {
    let folder = app.team.as_ref().and_then(|team| team.uploads());
    folder.ok_or_else(|| Problem::new(Kind::NoTeam, "uploads are for a server that investigates"))
}

fn failed(error: &std::io::Error) -> Problem {
    Problem::new(Kind::Storage, format!("the file cannot be stored: {}", error.kind()))
}

pub(super) fn begin(app: &App) -> Result<Response, Problem> {
    let there = std::fs::read_dir(folder(app)?).map_or(0, Iterator::count);
    if there >= UPLOADS {
        let why = format!(
            "there are {there} uploads; remove unused ones on the page Launch, or from the folder `uploads` of the data folder"
        );
        return Err(Problem::new(Kind::TooManyUploads, why));
    }
    let name = super::access::secret().map_err(|e| failed(&e))?;
    let name = format!("upload-{}", name.get(..12).unwrap_or_default());
    files::private_folder(&folder(app)?.join(&name)).map_err(|e| failed(&e))?;
    Ok(answer::json(StatusCode::CREATED, &json!({"upload": name})))
}

/// The folder of an upload.
fn place(app: &App, name: &str) -> Result<PathBuf, Problem> {
    let plain = name.starts_with("upload-") && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let place = folder(app)?.join(name);
    if plain && place.is_dir() {
        return Ok(place);
    }
    Err(Problem::new(Kind::NotFound, "this upload does not exist; begin one with POST /api/v1/uploads"))
}

fn unused(app: &App, name: &str) -> Result<(), Problem> {
    if app.team.as_ref().is_some_and(|team| team.looked_at(name)) {
        let why = "an alert was investigated over this upload, so it cannot change; begin another upload";
        return Err(Problem::new(Kind::Used, why));
    }
    Ok(())
}

pub(super) fn shown(app: &App, name: &str) -> Result<Response, Problem> {
    let (files, bytes) = size(&place(app, name)?).map_err(|e| failed(&e))?;
    let used = app.team.as_ref().is_some_and(|team| team.looked_at(name));
    Ok(answer::json(StatusCode::OK, &json!({"upload": name, "files": files, "bytes": bytes, "used": used})))
}

/// Removes an upload that no alert was investigated over.
pub(super) async fn remove(app: &App, name: &str) -> Result<Response, Problem> {
    let _one = app.uploads.lock().await;
    let place = place(app, name)?;
    unused(app, name)?;
    // Under another name no investigation can begin over it. One that began before the renaming is seen after it.
    let gone = folder(app)?.join(format!("{PART}{name}"));
    std::fs::rename(&place, &gone).map_err(|e| failed(&e))?;
    if let Err(used) = unused(app, name) {
        std::fs::rename(&gone, &place).map_err(|e| failed(&e))?;
        return Err(used);
    }
    let removed = blocking(move || std::fs::remove_dir_all(gone)).await;
    removed.map_err(|e| Problem::new(Kind::Storage, e.to_string()))?.map_err(|e| failed(&e))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Files and bytes below a folder.
fn size(folder: &Path) -> std::io::Result<(u64, u64)> {
    let (mut files, mut bytes) = (0, 0);
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.metadata()?;
        let (more, length) = if kind.is_dir() { size(&entry.path())? } else { (1, kind.len()) };
        (files, bytes) = (files + more, bytes + length);
    }
    Ok((files, bytes))
}

pub(super) async fn file(app: &App, call: &Call, body: Body) -> Result<Response, Problem> {
    let path = call.named("path").to_owned();
    let (uploads, place) = (folder(app)?, place(app, call.named("upload"))?);
    unused(app, call.named("upload"))?;
    let parts = upload::parts(&path).map_err(|why| Problem::new(Kind::Invalid, why))?;
    let target = parts.iter().fold(place.clone(), |folder, part| folder.join(part));
    // Beside the upload: a part that came before the connection broke is not evidence, and is removed when it is dropped.
    let part = tempfile::Builder::new().prefix(PART).tempfile_in(uploads).map_err(|e| failed(&e))?;
    let (file, part) = part.into_parts();
    let bytes = write(tokio::fs::File::from_std(file), body).await?;
    let _one = app.uploads.lock().await;
    let kept = blocking(move || keep(part, &place, &target, bytes)).await;
    kept.map_err(|e| Problem::new(Kind::Storage, e.to_string()))??;
    Ok(answer::json(StatusCode::CREATED, &json!({"path": path, "bytes": bytes})))
}

/// Adds a whole file to the upload, if the upload does not become too large.
fn keep(part: TempPath, place: &Path, target: &Path, bytes: u64) -> Result<(), Problem> {
    let (files, before) = size(place).map_err(|e| failed(&e))?;
    if files >= FILES {
        return Err(Problem::new(Kind::TooLarge, format!("an upload has at most {FILES} files")));
    }
    if before.saturating_add(bytes) > WHOLE {
        return Err(Problem::new(Kind::TooLarge, format!("an upload has at most {WHOLE} bytes")));
    }
    if !unpacks(&part, bytes).map_err(|e| failed(&e))? {
        let why = format!("a compressed file may become at most {UNPACKED} bytes and {RATIO} times its size");
        return Err(Problem::new(Kind::TooLarge, why));
    }
    let folder = target.parent().ok_or_else(|| Problem::new(Kind::Invalid, "the path names no file"))?;
    files::private_folder(folder).map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            Problem::new(Kind::Exists, "a part of this path was uploaded as a file")
        }
        _ => failed(&e),
    })?;
    part.persist_noclobber(target).map_err(|e| match e.error.kind() {
        ErrorKind::AlreadyExists => Problem::new(Kind::Exists, "this file was uploaded already"),
        _ => failed(&e.error),
    })
}

/// True if the file is not compressed, or not beyond the limits when it is read.
fn unpacks(part: &Path, bytes: u64) -> std::io::Result<bool> {
    let most = UNPACKED.min(bytes.saturating_mul(RATIO));
    let mut file = std::fs::File::open(part)?;
    let mut magic = [0; 2];
    if file.read(&mut magic)? < 2 || magic != [0x1f, 0x8b] {
        return Ok(true);
    }
    file.rewind()?;
    let mut unpacked = flate2::read::MultiGzDecoder::new(file).take(most + 1);
    // The loader says what is wrong with a damaged file.
    Ok(std::io::copy(&mut unpacked, &mut std::io::sink()).is_ok_and(|bytes| bytes <= most) || unpacked.limit() > 0)
}

async fn write(mut file: tokio::fs::File, body: Body) -> Result<u64, Problem> {
    let mut bytes = 0_u64;
    let mut chunks = body.into_data_stream();
    let late = || Problem::new(Kind::Slow, format!("nothing came for {} s", PATIENCE.as_secs()));
    while let Some(chunk) = tokio::time::timeout(PATIENCE, chunks.next()).await.map_err(|_| late())? {
        let chunk = chunk.map_err(|_| Problem::new(Kind::Unreadable, "the body ended early"))?;
        bytes = bytes.saturating_add(chunk.len() as u64);
        if bytes > FILE {
            return Err(Problem::new(Kind::TooLarge, format!("a file has at most {FILE} bytes")));
        }
        file.write_all(&chunk).await.map_err(|e| failed(&e))?;
    }
    file.flush().await.map_err(|e| failed(&e))?;
    Ok(bytes)
}
