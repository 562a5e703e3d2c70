//! Compresses rows with Zstandard. A dictionary of common text is part of each form, so that even a row of some
//! hundred bytes shrinks to a third.
//!
//! Old forms must stay readable: a dictionary never changes, and a new one gets a new form.

use std::cell::RefCell;
use std::sync::LazyLock;

use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::get_frame_content_size;

pub(super) const WHOLE: i64 = 0;
/// A Zstandard frame with the dictionary of rows.
const ROW: i64 = 1;
/// A Zstandard frame with the dictionary of views.
const VIEW: i64 = 2;

const ROW_WORDS: &[u8] = include_bytes!("words/rows-1.txt");
const VIEW_WORDS: &[u8] = include_bytes!("words/views-1.txt");

/// Fewer bytes are not compressed.
const SHORTEST: usize = 64;
/// Rows of at least this length use the dictionary of views.
const LONG: usize = 4096;
/// Maximum number of bytes to unpack; what we write is far shorter.
const LONGEST: usize = 1 << 30;
/// Level 3 takes a third longer and saves 2 %.
const LEVEL: i32 = 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) form: i64,
    pub(super) bytes: Vec<u8>,
}

static ROWS: LazyLock<EncoderDictionary<'static>> = LazyLock::new(|| EncoderDictionary::copy(ROW_WORDS, LEVEL));
static VIEWS: LazyLock<EncoderDictionary<'static>> = LazyLock::new(|| EncoderDictionary::copy(VIEW_WORDS, LEVEL));
static READ_ROWS: LazyLock<DecoderDictionary<'static>> = LazyLock::new(|| DecoderDictionary::copy(ROW_WORDS));
static READ_VIEWS: LazyLock<DecoderDictionary<'static>> = LazyLock::new(|| DecoderDictionary::copy(VIEW_WORDS));

thread_local! {
    static PACKING: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static UNPACKING: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Compresses `bytes` if that makes them shorter.
pub(super) fn pack(bytes: &[u8]) -> Packed {
    let (form, words) = if bytes.len() < LONG { (ROW, &ROWS) } else { (VIEW, &VIEWS) };
    let short = if bytes.len() < SHORTEST || bytes.len() > LONGEST { None } else { packed(bytes, words) };
    match short {
        Some(short) if short.len() < bytes.len() => Packed { form, bytes: short },
        _ => Packed { form: WHOLE, bytes: bytes.to_vec() },
    }
}

/// `None` if compression fails; then the bytes are stored as they are.
fn packed(bytes: &[u8], words: &'static EncoderDictionary<'static>) -> Option<Vec<u8>> {
    PACKING.with_borrow_mut(|kept| {
        let packing = match kept {
            Some(packing) => packing,
            None => {
                let mut fresh = Compressor::new(LEVEL).ok()?;
                fresh.include_checksum(true).ok()?;
                kept.insert(fresh)
            }
        };
        packing.set_prepared_dictionary(words).ok()?;
        packing.compress(bytes).ok()
    })
}

pub(super) fn unpack(form: i64, bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    match form {
        WHOLE => Ok(bytes),
        ROW => unpacked(&bytes, &READ_ROWS),
        VIEW => unpacked(&bytes, &READ_VIEWS),
        _ => Err(format!("it has form {form}; use a newer casebook")),
    }
}

fn damaged() -> String {
    "its bytes are damaged".to_owned()
}

fn unpacked(bytes: &[u8], words: &'static DecoderDictionary<'static>) -> Result<Vec<u8>, String> {
    let length = get_frame_content_size(bytes).ok().flatten().and_then(|length| usize::try_from(length).ok());
    // A block has at most 128 KiB and takes at least four bytes.
    let length = length.filter(|length| *length <= LONGEST && length / 32_768 <= bytes.len()).ok_or_else(damaged)?;
    UNPACKING.with_borrow_mut(|kept| {
        let unpacking = match kept {
            Some(unpacking) => unpacking,
            None => kept.insert(Decompressor::new().map_err(|e| e.to_string())?),
        };
        unpacking.set_prepared_dictionary(words).map_err(|e| e.to_string())?;
        unpacking.decompress(bytes, length).ok().filter(|out| out.len() == length).ok_or_else(damaged)
    })
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

    /// Never change these: files in this form must stay readable.
    #[test]
    fn each_form_is_read_as_it_was_written() {
        let long = CALL.repeat(100);
        let written: [(i64, &[u8], &str); 2] = [
            (ROW, include_bytes!("words/row-form-1.bin"), CALL),
            (VIEW, include_bytes!("words/view-form-2.bin"), &long),
        ];
        for (form, bytes, text) in written {
            assert_eq!(unpack(form, bytes.to_vec()).unwrap(), text.as_bytes(), "form {form}");
        }
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
