//! Writes files atomically.

use std::io::Write;
use std::path::{Path, PathBuf};

use casebook_protocol::Report;

use crate::Form;

#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    /// The report cannot be written as JSON, which is a bug.
    #[error("cannot write the report as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Writes a temporary file beside `path` and renames it.
///
/// Errors: The folder or the file cannot be written; an existing file is unchanged.
pub fn whole(path: &Path, text: &str) -> Result<(), SaveError> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let failed = |source: std::io::Error| SaveError::Write { path: path.to_path_buf(), source };
    let mut file =
        tempfile::Builder::new().prefix(".casebook-").permissions(ordinary()).tempfile_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    file.persist(path).map_err(|e| failed(e.error))?;
    Ok(())
}

/// Other users may read a report, but the library makes temporary files private. The umask still applies.
fn ordinary() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o666)
}

/// Writes all forms of the report into `folder`, which is created if needed.
pub fn report(folder: &Path, report: &Report) -> Result<(), SaveError> {
    std::fs::create_dir_all(folder).map_err(|source| SaveError::Write { path: folder.to_path_buf(), source })?;
    for form in Form::ALL {
        let text = form.render(report)?;
        whole(&folder.join(form.file_name()), &text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.md");
        whole(&path, "old").unwrap();
        whole(&path, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let error = whole(Path::new("/proc/nowhere/x.md"), "x").unwrap_err();
        assert!(error.to_string().contains("/proc/nowhere/x.md"), "{error}");
    }
}
