//! Writes reports: regular files atomically, others as they are.

use std::io::Write;
use std::path::{Path, PathBuf};

use casebook_protocol::Report;
use casebook_trust::Backing;

use crate::Form;

#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    /// The report cannot be written as JSON, which is a bug.
    #[error("cannot write the report as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// The most symbolic links on the way to a file.
const LINKS: usize = 40;

/// Replaces the file at `path`: writes a temporary file beside it and renames that. Follows symbolic links. Writes
/// through a pipe or a device.
///
/// Errors: The folder or the file cannot be written; an existing regular file is unchanged.
pub fn whole(path: &Path, text: &str) -> Result<(), SaveError> {
    let failed = |source: std::io::Error| SaveError::Write { path: path.to_path_buf(), source };
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let mut through = std::fs::OpenOptions::new().write(true).open(path).map_err(failed)?;
        return through.write_all(text.as_bytes()).map_err(failed);
    }
    let target = target(path).map_err(failed)?;
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut file =
        tempfile::Builder::new().prefix(".casebook-").permissions(mode(&target)).tempfile_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    file.persist(&target).map_err(|e| failed(e.error))?;
    Ok(())
}

/// Where the symbolic links at `path` lead, also if nothing is there yet.
fn target(path: &Path) -> std::io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    for _ in 0..LINKS {
        if !target.is_symlink() {
            return Ok(target);
        }
        let link = std::fs::read_link(&target)?;
        target = target.parent().unwrap_or(Path::new("")).join(link);
    }
    Err(std::io::Error::other(format!("more than {LINKS} symbolic links")))
}

/// A file keeps its mode. Other users may read a new report, but the library makes temporary files private. The umask
/// still applies.
fn mode(target: &Path) -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(target).map_or_else(|_| std::fs::Permissions::from_mode(0o666), |there| there.permissions())
}

/// Writes all forms of the report into `folder`, which is created if needed.
pub fn report(folder: &Path, report: &Report, backing: &Backing) -> Result<(), SaveError> {
    std::fs::create_dir_all(folder).map_err(|source| SaveError::Write { path: folder.to_path_buf(), source })?;
    for form in Form::ALL {
        let text = form.render(report, backing)?;
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
    fn a_symbolic_link_stays_and_its_target_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("sub")).unwrap();
        std::fs::write(at("sub/old.md"), "old").unwrap();
        for (link, to, target) in
            [("a", "sub/old.md", "sub/old.md"), ("b", "sub/new.md", "sub/new.md"), ("c", "b", "sub/new.md")]
        {
            std::os::unix::fs::symlink(to, at(link)).unwrap();
            whole(&at(link), link).unwrap();
            assert_eq!(std::fs::read_link(at(link)).unwrap(), Path::new(to));
            assert_eq!(std::fs::read_to_string(at(target)).unwrap(), link);
            assert!(!at(target).is_symlink());
        }
        std::os::unix::fs::symlink("loop", at("loop")).unwrap();
        let error = whole(&at("loop"), "x").unwrap_err().to_string();
        assert!(error.contains("symbolic links"), "{error}");
    }

    #[test]
    fn a_device_is_written_and_not_replaced() {
        use std::os::unix::fs::FileTypeExt;
        whole(Path::new("/dev/null"), "x").unwrap();
        assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let error = whole(Path::new("/proc/nowhere/x.md"), "x").unwrap_err();
        assert!(error.to_string().contains("/proc/nowhere/x.md"), "{error}");
    }
}
