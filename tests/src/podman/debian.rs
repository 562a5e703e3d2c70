//! A root file system of Debian for an image, without a registry: packages come from the sources of this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::said;
use crate::Result;

/// Where Debian's own installers and images write its sources.
const SOURCES: [&str; 2] = ["/etc/apt/sources.list", "/etc/apt/sources.list.d/debian.sources"];
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Makes an archive in `folder` of the Debian that this machine has: required packages and apt.
pub(super) fn root(folder: &Path) -> Result<PathBuf> {
    let (archive, settings) = (folder.join("debian.tar"), folder.join("apt.conf"));
    let release = std::fs::read_to_string("/etc/os-release")?;
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let suite = suite.ok_or("expected Debian, got an /etc/os-release without VERSION_CODENAME")?;
    std::fs::write(&settings, apt_settings()?)?;

    let mut command = Command::new("mmdebstrap");
    command.env("TMPDIR", folder);
    command.args(["--quiet", "--variant=apt", "--dpkgopt=force-unsafe-io"]);
    command.arg(format!("--aptopt={}", settings.display()));
    // A proxy may present certificates of its own authority, which this machine trusts.
    let authorities = "/usr/local/share/ca-certificates";
    command.arg(format!("--setup-hook=mkdir -p \"$1{authorities}\""));
    command.arg(format!("--customize-hook=upload {AUTHORITIES} {authorities}/machine.crt"));
    if Path::new("/etc/pip.conf").exists() {
        command.arg("--customize-hook=copy-in /etc/pip.conf /etc");
    }
    command.arg(suite).arg(&archive).args(SOURCES.iter().filter(|file| Path::new(file).exists()));
    said(&mut command).map_err(|e| format!("{e} (apt-get install mmdebstrap)"))?;
    Ok(archive)
}

/// How apt reaches the sources here: proxies, and what it checks of them.
fn apt_settings() -> Result<String> {
    let all = said(Command::new("apt-config").arg("dump"))?;
    let names = ["Acquire::http", "Acquire::Check", "Acquire::Retries", "Acquire::Languages"];
    let lines = all.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
    Ok(lines.map(|line| format!("{line}\n")).collect())
}

/// Environment variables from which pip knows its index here.
pub(super) fn pip_settings() -> impl Iterator<Item = (String, String)> {
    let names = ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_PROXY"];
    names.into_iter().filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
}
