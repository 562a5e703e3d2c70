//! What the first bytes of a file say about it.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Utf16,
    Gzip,
    Zstd,
    Zip,
    Tar,
    Evtx,
    Parquet,
    /// Not read, with the reason and what to do.
    Other(&'static str),
}

const PCAP: &str = "packet capture: run Zeek or Suricata on it and add their logs; both are read";

const PARQUET: &str =
    "Parquet: use a Casebook that was built with `--features parquet`, or export it as JSON, for example with duckdb";

const MAGIC: [(&[u8], &str); 23] = [
    (b"\xd4\xc3\xb2\xa1", PCAP),
    (b"\xa1\xb2\xc3\xd4", PCAP),
    (b"\x4d\x3c\xb2\xa1", PCAP),
    (b"\xa1\xb2\x3c\x4d", PCAP),
    (b"\x0a\x0d\x0d\x0a", PCAP),
    (b"PK\x07\x08", "part of a split zip archive: join the parts and unpack them"),
    (b"\xfd7zXZ\0", "xz: decompress it first, for example with `xz -dk`"),
    (b"7z\xbc\xaf\x27\x1c", "7z archive: unpack it first, for example with `7z x`"),
    (b"Rar!\x1a\x07", "rar archive: unpack it first, for example with `unrar x`"),
    (b"MSCF\0\0\0\0", "cabinet archive: unpack it first, for example with `cabextract`"),
    (b"\x04\x22\x4d\x18", "lz4: decompress it first, for example with `lz4 -dk`"),
    (b"LZIP\x01", "lzip: decompress it first, for example with `lzip -dk`"),
    (b"\x1f\x9d", "compress (.Z): decompress it first, for example with `gzip -d`"),
    (b"SQLite format 3\0", "SQLite database: export its tables as CSV"),
    (b"PARE", "encrypted Parquet: export it as JSON with its keys"),
    (b"regf", "registry hive: export it as CSV, for example with RECmd"),
    (b"MAM\x04", "prefetch file: export it as CSV, for example with PECmd"),
    (b"FILE0\0", "table of files (MFT): export it as CSV, for example with MFTECmd"),
    (b"L\0\0\0\x01\x14\x02\0", "shortcut: export it as CSV, for example with LECmd"),
    (b"ElfChnk\0", "part of a Windows event log"),
    (b"\0asm", "executable"),
    (b"\x7fELF", "executable"),
    (b"MZ\x90\0", "executable"),
];

pub(super) fn kind(head: &[u8]) -> Kind {
    match head {
        [0x1f, 0x8b, ..] => return Kind::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => return Kind::Zstd,
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return Kind::Utf16,
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => return Kind::Zip,
        _ => {}
    }
    if head.starts_with(b"ElfFile\0") {
        return Kind::Evtx;
    }
    if head.starts_with(b"PAR1") {
        return if cfg!(feature = "parquet") { Kind::Parquet } else { Kind::Other(PARQUET) };
    }
    if let Some((_, what)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Kind::Other(what);
    }
    if head.starts_with(b"BZh") && head.get(4..10) == Some(b"1AY&SY") {
        return Kind::Other("bzip2: decompress it first, for example with `bzip2 -dk`");
    }
    if is_tar(head) {
        return Kind::Tar;
    }
    let odd = head.iter().filter(|b| **b == 0 || (**b < 0x20 && !matches!(b, 8..=13 | 0x1b | 0x1d))).count();
    if odd * 50 > head.len() { Kind::Other("binary file") } else { Kind::Text }
}

/// The sum of the header must be right, since a line of a log may contain the mark.
fn is_tar(head: &[u8]) -> bool {
    let Some(block) = head.get(..512) else { return false };
    let header = ::tar::Header::from_byte_slice(block);
    let sum = block.iter().enumerate().map(|(at, b)| if (148..156).contains(&at) { 32 } else { u32::from(*b) });
    block.get(257..262) == Some(b"ustar") && header.cksum().is_ok_and(|stated| stated == sum.sum::<u32>())
}
