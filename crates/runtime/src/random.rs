//! Random bytes for secrets.

use std::fs::File;
use std::io::{self, Read};

const SOURCE: &str = "/dev/urandom";

/// Errors: The system has no random numbers.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let read = File::open(SOURCE).and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|e| io::Error::new(e.kind(), format!("cannot read {SOURCE}, which secrets are made from: {e}")))?;
    Ok(bytes)
}
