//! Random bytes for secrets.

use std::fs::File;
use std::io::Read;

use crate::failure::Failure;

pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|e| Failure::failed(format!("cannot read /dev/urandom: {e}"), "secrets are made from it"))?;
    Ok(bytes)
}
