use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use casebook_report::sign::KeyPair;
use casebook_runtime::random::random;

use crate::args::Key;
use crate::failure::{Exit, Failure};
use crate::screen::Screen;

pub(super) fn run(args: &Key, screen: &mut Screen) -> Result<Exit, Failure> {
    let pair = KeyPair::of(random().map_err(|e| Failure::random(&e))?).map_err(Failure::defect)?;
    let mut public = args.file.clone().into_os_string();
    public.push(".pub");
    let public = PathBuf::from(public);
    for path in [&args.file, &public] {
        if path.symlink_metadata().is_ok() {
            return Err(exists(path));
        }
    }
    // The private key last, so that a failure leaves none behind.
    write(&public, 0o644, &pair.public)?;
    write(&args.file, 0o600, &pair.private)?;
    screen.line(format_args!("Private key {}, for `casebook export --sign`", args.file.display()));
    screen.line(format_args!("Public key {}, for `casebook verify --public-key`", public.display()));
    Ok(Exit::Done)
}

/// Writes a new file: a key that is replaced cannot be had back.
fn write(path: &Path, mode: u32, text: &str) -> Result<(), Failure> {
    let created = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut file = created.map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => exists(path),
        _ => Failure::write(path, &e),
    })?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|e| Failure::write(path, &e))
}

fn exists(path: &Path) -> Failure {
    Failure::usage(format!("{} already exists", path.display()), "name a file that does not exist")
}
