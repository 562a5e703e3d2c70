//! How bytes lie in the file: deflated, since they are JSON and much alike. What they have in common
//! with all others of their sort stands in a list of words that is part of the form, so that even a
//! row of some hundred bytes becomes a third.
//!
//! A form that was ever written is read for ever: the lists of words are never changed, a new one gets
//! a new form.

use std::cell::RefCell;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// The bytes as they are. Whatever version 1 of the tables held has this form.
pub(super) const WHOLE: i64 = 0;
/// Deflated after the words of rows.
const ROW: i64 = 1;
/// Deflated after the words of views.
const VIEW: i64 = 2;

const ROW_WORDS: &[u8] = include_bytes!("words/rows-1.txt");
const VIEW_WORDS: &[u8] = include_bytes!("words/views-1.txt");

/// Fewer bytes are kept whole.
const SHORTEST: usize = 64;
/// From so many bytes on it is taken for a view.
const LONG: usize = 4096;
/// The longest that is unpacked, in bytes: what is written is far shorter.
const LONGEST: usize = 1 << 30;
/// Hardly slower than the fastest, and a fifth smaller.
const LEVEL: u32 = 3;

/// Bytes with their form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) form: i64,
    pub(super) bytes: Vec<u8>,
}

thread_local! {
    static PACKING: RefCell<Compress> = RefCell::new(Compress::new(Compression::new(LEVEL), true));
}

fn words(form: i64) -> Option<&'static [u8]> {
    match form {
        ROW => Some(ROW_WORDS),
        VIEW => Some(VIEW_WORDS),
        _ => None,
    }
}

/// `bytes` as they are stored: packed, where that makes them shorter. The first four bytes of what is
/// packed are its length before.
pub(super) fn pack(bytes: &[u8]) -> Packed {
    let form = if bytes.len() < LONG { ROW } else { VIEW };
    let short = if bytes.len() < SHORTEST || bytes.len() > LONGEST { None } else { deflated(bytes, form) };
    match short {
        Some(short) if short.len() < bytes.len() => Packed { form, bytes: short },
        _ => Packed { form: WHOLE, bytes: bytes.to_vec() },
    }
}

fn deflated(bytes: &[u8], form: i64) -> Option<Vec<u8>> {
    PACKING.with_borrow_mut(|packing| {
        packing.reset();
        packing.set_dictionary(words(form)?).ok()?;
        let mut out = Vec::with_capacity(bytes.len() + 64);
        out.extend_from_slice(&u32::try_from(bytes.len()).ok()?.to_le_bytes());
        let status = packing.compress_vec(bytes, &mut out, FlushCompress::Finish).ok()?;
        // What does not fit in the room of the original is not shorter.
        (status == Status::StreamEnd).then_some(out)
    })
}

/// The bytes that were packed.
///
/// # Errors
/// Why they cannot be unpacked.
pub(super) fn unpack(form: i64, bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    if form == WHOLE {
        return Ok(bytes);
    }
    let words = words(form).ok_or_else(|| format!("it has form {form}: use a newer casebook"))?;
    let damaged = || "its bytes are damaged".to_owned();
    let (length, packed) = bytes.split_first_chunk::<4>().ok_or_else(damaged)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| damaged())?;
    if length > LONGEST || length / 2000 > packed.len() {
        // Nothing is deflated to less than a thousandth.
        return Err(damaged());
    }
    let mut out = Vec::with_capacity(length);
    let mut unpacking = Decompress::new(true);
    // It stops where it wants the words.
    let asked = unpacking.decompress_vec(packed, &mut out, FlushDecompress::Finish);
    let status = match asked {
        Err(error) if error.needs_dictionary().is_some() => {
            unpacking.set_dictionary(words).map_err(|_| damaged())?;
            let read = usize::try_from(unpacking.total_in()).map_err(|_| damaged())?;
            let rest = packed.get(read..).ok_or_else(damaged)?;
            unpacking.decompress_vec(rest, &mut out, FlushDecompress::Finish).map_err(|_| damaged())?
        }
        _ => return Err(damaged()),
    };
    if status == Status::StreamEnd && out.len() == length { Ok(out) } else { Err(damaged()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = r#"{"v":1,"body":{"id":"r3.investigate.network.t1.2","domain":"network","tool":"search","arguments":"{\"limit\":0,\"terms\":[\"absent-637b13b7c4a8\"]}","status":"answered","result":"66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925","bytes":115,"started":"2026-11-22T06:32:03.808728087Z","ended":"2026-11-22T06:32:03.908728087Z"}}"#;

    #[test]
    fn what_is_packed_comes_back_and_alike_rows_become_short() {
        let long = CALL.repeat(100);
        let noise: Vec<u8> = (0..5000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for bytes in [b"", CALL.as_bytes(), long.as_bytes(), &noise, &noise[..70], &[0; 100_000]] {
            let packed = pack(bytes);
            assert!(packed.bytes.len() <= bytes.len());
            assert_eq!(unpack(packed.form, packed.bytes).unwrap(), bytes);
        }
        let packed = pack(CALL.as_bytes());
        assert!(packed.form == ROW && packed.bytes.len() < CALL.len() / 2, "{} bytes", packed.bytes.len());
    }

    /// Written once and never changed: what lies in files of this form has to be read for ever.
    #[test]
    fn each_form_is_read_as_it_was_written() {
        let row = include_bytes!("words/row-form-1.bin");
        assert_eq!(unpack(ROW, row.to_vec()).unwrap(), CALL.as_bytes());
        let view = include_bytes!("words/view-form-2.bin");
        assert_eq!(unpack(VIEW, view.to_vec()).unwrap(), CALL.repeat(100).as_bytes());
    }

    #[test]
    fn damage_and_forms_of_the_future_are_errors() {
        let packed = pack(CALL.as_bytes());
        for at in 0..packed.bytes.len() {
            let mut damaged = packed.bytes.clone();
            damaged[at] ^= 0x55;
            assert_ne!(unpack(packed.form, damaged).as_deref(), Ok(CALL.as_bytes()), "byte {at}");
            assert!(unpack(packed.form, packed.bytes[..at].to_vec()).is_err(), "{at} bytes");
        }
        assert!(unpack(9, packed.bytes).unwrap_err().contains("form 9"));
    }
}
