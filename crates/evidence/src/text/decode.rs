//! Decodes one file into another: gzip, zstd, UTF-16.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};

use flate2::read::MultiGzDecoder;

use super::kind::Kind;
use super::room::Sink;

/// The largest window of a zstd stream, as a power of two. It is held in memory.
pub(super) const WINDOW_LOG_MAX: u32 = 27;

/// Writes what can be decompressed. Returns a note if that is not all.
pub(super) fn decompress(kind: &Kind, file: File, out: &mut Sink<'_>) -> Option<String> {
    let (name, copied) = match kind {
        Kind::Zstd => ("zstd", unzstd(file).and_then(|mut stream| copy(&mut stream, out))),
        _ => ("gzip", copy(&mut MultiGzDecoder::new(BufReader::new(file)), out)),
    };
    let written = out.written;
    copied.err().map(|error| match out.full() {
        Some(why) => format!("{why}: only the first {written} bytes are loaded"),
        None if written == 0 => format!("the {name} stream is damaged ({error})"),
        None => {
            format!("the {name} stream is damaged after {written} bytes of text ({error}): what comes before is loaded")
        }
    })
}

pub(super) fn unzstd<R: Read>(reader: R) -> io::Result<zstd::stream::read::Decoder<'static, BufReader<R>>> {
    let mut stream = zstd::stream::read::Decoder::new(reader)?;
    stream.window_log_max(WINDOW_LOG_MAX)?;
    Ok(stream)
}

pub(super) fn copy(from: &mut dyn Read, out: &mut Sink<'_>) -> io::Result<()> {
    let mut chunk = vec![0u8; 128 << 10];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(read) => out.write_all(chunk.get(..read).unwrap_or_default())?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Writes the text as UTF-8. Errors are those of `file` and `out`.
pub(super) fn utf16(mut file: File, out: &mut Sink<'_>) -> io::Result<()> {
    let (mut chunk, mut held) = (vec![0u8; 128 << 10], Vec::new());
    let mut big = None;
    loop {
        let read = file.read(&mut chunk)?;
        held.extend_from_slice(chunk.get(..read).unwrap_or_default());
        let big = *big.get_or_insert_with(|| held.first() == Some(&0xfe));
        // A chunk may end inside a surrogate pair, so keep the last unit for the next chunk.
        let keep = if read == 0 { 0 } else { 2 + held.len() % 2 };
        let ready = held.len().saturating_sub(keep);
        let units = held.get(..ready).unwrap_or_default().chunks(2).map(|pair| match pair {
            [a, b] if big => u16::from_be_bytes([*a, *b]),
            [a, b] => u16::from_le_bytes([*a, *b]),
            _ => 0xfffd,
        });
        let text: String = char::decode_utf16(units)
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .filter(|c| *c != '\u{feff}')
            .collect();
        out.write_all(text.as_bytes())?;
        held.drain(..ready);
        if read == 0 {
            return Ok(());
        }
    }
}
