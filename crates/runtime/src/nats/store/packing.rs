//! Results and parts of artifacts are compressed here, since their streams are not. Each message is packed by itself, so
//! that parts from two writers fit together. Logs are not packed, since third parties read them.

use std::io::{Read as _, Write as _};

use async_nats::HeaderMap;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use super::PART;

/// Header: how the bytes of a message are packed. Bytes without it are stored as they are.
pub(in crate::nats) const PACKED: &str = "Casebook-Packed";
const ZLIB: &str = "zlib";
/// Fewer bytes are not packed.
const SHORTEST: usize = 256;

/// The bytes to store, with the header that says how they are packed. `None` if they are stored as they are.
pub(super) fn pack(bytes: &[u8], headers: &mut HeaderMap) -> Option<Vec<u8>> {
    if !(SHORTEST..=PART).contains(&bytes.len()) {
        return None;
    }
    let mut packing = ZlibEncoder::new(Vec::new(), Compression::fast());
    packing.write_all(bytes).ok()?;
    let packed = packing.finish().ok().filter(|packed| packed.len() < bytes.len())?;
    headers.insert(PACKED, ZLIB);
    Some(packed)
}

/// The bytes of a stored message.
///
/// # Errors
/// What is wrong with it, for people. Nothing becomes longer than [`PART`].
pub(super) fn unpack(stored: &[u8], headers: &HeaderMap) -> Result<Vec<u8>, String> {
    match headers.get(PACKED).map(|how| how.as_str()) {
        None => Ok(stored.to_vec()),
        Some(ZLIB) => {
            let mut bytes = Vec::new();
            let most = u64::try_from(PART).unwrap_or(u64::MAX);
            ZlibDecoder::new(stored)
                .take(most + 1)
                .read_to_end(&mut bytes)
                .map_err(|e| format!("it cannot be unpacked: {e}"))?;
            if bytes.len() > PART { Err(format!("it has more than {PART} bytes")) } else { Ok(bytes) }
        }
        Some(other) => Err(format!("it is packed as {other:?}; use a newer casebook")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back_and_a_bomb_does_not() {
        for part in [&b"short"[..], &b"{\"tool\":\"search\"}".repeat(100), &[0; PART]] {
            let mut headers = HeaderMap::new();
            let stored = pack(part, &mut headers).unwrap_or_else(|| part.to_vec());
            assert!(stored.len() <= part.len());
            assert_eq!(unpack(&stored, &headers).unwrap(), part);
        }
        let mut headers = HeaderMap::new();
        assert_eq!(pack(&vec![0; PART + 1], &mut headers), None);
        let mut packing = ZlibEncoder::new(Vec::new(), Compression::fast());
        packing.write_all(&vec![0; 50 * PART]).unwrap();
        let bomb = packing.finish().unwrap();
        headers.insert(PACKED, ZLIB);
        assert!(unpack(&bomb, &headers).unwrap_err().contains("more than"));
        assert!(unpack(&bomb[..bomb.len() / 2], &headers).is_err());
        assert!(unpack(b"not zlib", &headers).unwrap_err().contains("cannot be unpacked"));
        headers.insert(PACKED, "later");
        assert!(unpack(b"x", &headers).unwrap_err().contains("newer casebook"));
    }

    #[test]
    fn noise_is_stored_as_it_is() {
        let next = |last: &u64| Some(last.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        let noise: Vec<u8> = std::iter::successors(Some(1), next).take(5_000).map(|n| (n >> 56) as u8).collect();
        let mut headers = HeaderMap::new();
        assert_eq!(pack(&noise, &mut headers), None);
        assert!(headers.get(PACKED).is_none());
    }
}
