//! A small disk of its own for a test, which can be full.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;

/// A file system in memory. It is taken away on drop.
pub struct Disk(tempfile::TempDir);

impl Disk {
    /// `None`, with a printed reason, if this user may not mount one.
    pub fn new(kib: u64) -> Option<Self> {
        let folder = tempfile::tempdir().ok()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={kib}k,mode=0700"), "tmpfs"]).arg(folder.path());
        let mounted = mount.output().map_err(|e| e.to_string());
        match mounted {
            Ok(output) if output.status.success() => return Some(Self(folder)),
            Ok(output) => eprintln!("skipped: cannot mount a disk: {}", String::from_utf8_lossy(&output.stderr).trim()),
            Err(error) => eprintln!("skipped: cannot mount a disk: {error}"),
        }
        None
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Makes the disk larger.
    pub fn grow(&self, kib: u64) -> Result<()> {
        let mut mount = Command::new("mount");
        mount.args(["-o", &format!("remount,size={kib}k")]).arg(self.path());
        if mount.status()?.success() { Ok(()) } else { Err("cannot make the disk larger".into()) }
    }

    /// Writes a file until no block is left. Removing it makes room.
    pub fn fill(&self) -> Result<PathBuf> {
        let path = self.path().join("filler");
        let mut file = std::fs::File::create(&path)?;
        while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
        Ok(path)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A process that still has a file open would keep a usual unmount from happening.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
