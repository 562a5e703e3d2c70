//! Archives as folders, and hostile ones, written here byte by byte.

use std::io::Write;

use casebook_table::expect_file;

use super::evtx::Log;
use super::*;

const LOG: &[u8] = b"{\"a\":\"one\"}\n{\"a\":\"two\"}\n";

/// A member of a zip archive, with what its headers state.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    name: Vec<u8>,
    method: u16,
    flags: u16,
    mode: u32,
    size: u32,
    crc: u32,
    data: Vec<u8>,
}

pub(super) fn stored(name: &str, text: &[u8]) -> Entry {
    let mut crc = flate2::Crc::new();
    crc.update(text);
    let size = u32::try_from(text.len()).unwrap();
    Entry { name: name.into(), method: 0, flags: 0, mode: 0o100_644, size, crc: crc.sum(), data: text.to_vec() }
}

pub(super) fn deflated(name: &str, text: &[u8]) -> Entry {
    let mut out = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(text).unwrap();
    Entry { method: 8, data: out.finish().unwrap(), ..stored(name, text) }
}

fn header(entry: &Entry, out: &mut Vec<u8>) {
    out.extend(20u16.to_le_bytes());
    out.extend(entry.flags.to_le_bytes());
    out.extend(entry.method.to_le_bytes());
    out.extend([0, 0, 0x21, 0x58]);
    out.extend(entry.crc.to_le_bytes());
    out.extend(u32::try_from(entry.data.len()).unwrap().to_le_bytes());
    out.extend(entry.size.to_le_bytes());
    out.extend(u16::try_from(entry.name.len()).unwrap().to_le_bytes());
    out.extend([0, 0]);
}

/// The archive, with one directory entry for each of `listed`: the number of the member and its name.
fn zip_of(members: &[Entry], listed: &[(usize, &[u8])], stated: u16) -> Vec<u8> {
    let (mut out, mut places, mut directory) = (Vec::new(), Vec::new(), Vec::new());
    for member in members {
        places.push(u32::try_from(out.len()).unwrap());
        out.extend(b"PK\x03\x04");
        header(member, &mut out);
        out.extend(&member.name);
        out.extend(&member.data);
    }
    for (number, name) in listed {
        let member = Entry { name: name.to_vec(), ..members[*number].clone() };
        directory.extend(b"PK\x01\x02");
        directory.extend([20, 3]);
        header(&member, &mut directory);
        directory.extend([0; 6]);
        directory.extend((member.mode << 16).to_le_bytes());
        directory.extend(places[*number].to_le_bytes());
        directory.extend(&member.name);
    }
    let (at, size) = (u32::try_from(out.len()).unwrap(), u32::try_from(directory.len()).unwrap());
    out.extend(directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(stated.to_le_bytes());
    out.extend(stated.to_le_bytes());
    out.extend(size.to_le_bytes());
    out.extend(at.to_le_bytes());
    out.extend([0, 0]);
    out
}

pub(super) fn zip(members: &[Entry]) -> Vec<u8> {
    let listed: Vec<(usize, &[u8])> = members.iter().enumerate().map(|(n, m)| (n, m.name.as_slice())).collect();
    zip_of(members, &listed, u16::try_from(members.len()).unwrap())
}

/// A member of a tar archive. `name` is written as it is.
fn block(name: &[u8], kind: u8, size: u64, data: &[u8]) -> Vec<u8> {
    let mut header = ::tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_entry_type(::tar::EntryType::new(kind));
    header.set_size(size);
    header.set_mode(0o644);
    header.set_mtime(1_709_528_767);
    header.set_cksum();
    let mut out = header.as_bytes().to_vec();
    out.extend(data);
    out.resize(out.len().next_multiple_of(512), 0);
    out
}

fn member(name: &str, data: &[u8]) -> Vec<u8> {
    block(name.as_bytes(), b'0', data.len() as u64, data)
}

fn tar(members: &[Vec<u8>]) -> Vec<u8> {
    let mut out = members.concat();
    out.resize(out.len() + 1024, 0);
    out
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

#[test]
fn archives_are_read_as_folders_down_to_the_record() {
    let utf16: Vec<u8> = "\u{feff}first\r\nsecond\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let security = Log::new().logon(41, 1, "mara").logon(42, 2, "ivo").bytes();
    let inner = zip(&[deflated("logs/auth.json", LOG), stored("empty.txt", b"")]);
    let zstd_member = Entry { method: 93, data: zst(LOG), ..stored("z.json", LOG) };
    let whole = zip(&[
        stored("C/", b""),
        deflated(r"C\Windows\Security.evtx", &security),
        stored("web/access.json.gz", &gz(LOG)),
        stored("inner.tar.zst", &zst(&tar(&[member("./deep.zip", &inner), member("u.txt", &utf16)]))),
        zstd_member,
    ]);
    let folder = Folder::new(&[
        ("case.zip", &whole),
        ("host.tar", &tar(&[member("a.json", LOG)])),
        ("host.tar.gz", &gz(&tar(&[member("a.json", LOG)]))),
        ("plain.json.zst", &zst(LOG)),
    ]);
    let catalog = folder.open();
    let sources: Vec<String> = catalog.sources().iter().map(|s| format!("{} {} {}", s.id, s.file, s.records)).collect();
    assert_eq!(
        sources,
        [
            "case.zip!/C/Windows/Security case.zip!/C/Windows/Security.evtx 2",
            "case.zip!/web/access case.zip!/web/access.json.gz 2",
            "case.zip!/inner.tar.zst!/deep.zip!/logs/auth case.zip!/inner.tar.zst!/deep.zip!/logs/auth.json 2",
            "case.zip!/inner.tar.zst!/u case.zip!/inner.tar.zst!/u.txt 2",
            "case.zip!/z case.zip!/z.json 2",
            "host.tar!/a host.tar!/a.json 2",
            "host.tar.gz!/a host.tar.gz!/a.json 2",
            "plain plain.json.zst 2",
        ]
    );
    let text = |file: &str, line| catalog.record(file, line).unwrap().text();
    assert!(text("case.zip!/C/Windows/Security.evtx", 42).contains("ivo"));
    assert_eq!(text("case.zip!/inner.tar.zst!/deep.zip!/logs/auth.json", 2), r#"{"a":"two"}"#);
    assert_eq!(text("evidence/case.zip!/inner.tar.zst!/u.txt", 2), "second");
    let skipped: Vec<String> = catalog.skipped().iter().map(|s| format!("{}: {}", s.file, s.reason)).collect();
    assert_eq!(skipped, ["case.zip!/inner.tar.zst!/deep.zip!/empty.txt: empty"]);
    assert_eq!(call(&folder.tools(), "search", r#"{"terms":["two"]}"#)["total"], 6);
    let files: Vec<String> = catalog.files().listed.into_iter().map(|f| f.file).collect();
    assert_eq!(files, ["case.zip", "host.tar", "host.tar.gz", "plain.json.zst"], "the archives have the hashes");
    catalog.verify().unwrap();
    folder.write("host.tar", &tar(&[member("a.json", b"{\"a\":\"new\"}\n{\"a\":\"two\"}\n")]));
    assert!(catalog.record("host.tar!/a.json", 1).unwrap_err().to_string().contains("host.tar changed"));
    assert_eq!(folder.open().record("host.tar!/a.json", 1).unwrap().text(), r#"{"a":"new"}"#);
}

#[test]
fn only_texts_stay_in_the_cache() {
    let folder = Folder::new(&[(
        "c.zip",
        &zip(&[stored("a.tar.gz", &gz(&tar(&[member("a.json", LOG), member("b.bin", &[0, 1, 2, 3])])))]),
    )]);
    folder.open();
    let kept = std::fs::read_dir(folder.dir.path().join("data/index.sqlite.cache")).unwrap().flatten();
    let kept: Vec<Vec<u8>> = kept.map(|file| std::fs::read(file.path()).unwrap()).collect();
    assert_eq!(kept, [LOG]);
}

/// The hostile archives, each with a name for the table.
fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let good = || stored("good.json", LOG);
    let with = |entry: Entry| zip(&[entry, good()]);
    let lines = |bytes: usize| b"a line that is the same again\n".repeat(bytes / 30);
    let bomb = lines(5 << 20);
    let tarred = |first: Vec<u8>| tar(&[first, member("good.json", LOG)]);
    let mut all = vec![
        ("a path that leads out.zip", with(stored("../evil.json", LOG))),
        ("a path that leads out inside.zip", with(stored("a/../../evil.json", LOG))),
        ("a path that leads out with backslashes.zip", with(stored(r"a\..\..\evil.json", LOG))),
        ("an absolute path.zip", with(stored("/etc/evil.json", LOG))),
        ("a drive.zip", with(stored(r"C:\evil.json", LOG))),
        ("no name.zip", with(stored("", LOG))),
        ("a long name.zip", with(stored(&"n".repeat(5_000), LOG))),
        ("control characters.zip", with(stored("a\n\u{1b}[2Jb.json", LOG))),
        ("a symbolic link.zip", with(Entry { mode: 0o120_777, ..stored("link", b"/etc/passwd") })),
        ("a device.zip", with(Entry { mode: 0o020_666, ..stored("tty", b"") })),
        ("one name twice.zip", zip(&[good(), stored("good.json", b"{\"a\":\"other\"}\n")])),
        ("encrypted.zip", with(Entry { flags: 1, ..stored("secret.json", LOG) })),
        ("encrypted with AES.zip", with(Entry { method: 99, ..stored("secret.json", LOG) })),
        ("a hidden directory.zip", with(Entry { flags: 1 << 13, ..stored("secret.json", LOG) })),
        ("compressed with bzip2.zip", with(Entry { method: 12, ..stored("b.json", LOG) })),
        ("compressed with LZMA.zip", with(Entry { method: 14, ..stored("l.json", LOG) })),
        ("compressed with Deflate64.zip", with(Entry { method: 9, ..stored("d.json", LOG) })),
        ("an unknown method.zip", with(Entry { method: 77, ..stored("u.json", LOG) })),
        ("a wrong checksum.zip", with(Entry { crc: 7, ..stored("c.json", LOG) })),
        ("a size that is too small.zip", with(Entry { size: 12, ..stored("s.json", LOG) })),
        ("a size that is too large.zip", with(Entry { size: u32::MAX - 1, ..deflated("s.json", LOG) })),
        ("deflate that is damaged.zip", with(Entry { data: vec![0xff; 40], ..deflated("d.json", LOG) })),
        ("no directory.zip", {
            let mut bytes = zip(&[good()]);
            bytes.truncate(60);
            bytes
        }),
        (
            "too few members stated.zip",
            zip_of(&[good(), stored("b.json", LOG)], &[(0, b"good.json"), (1, b"b.json")], 1),
        ),
        ("data past the end.zip", {
            let mut bytes = zip(&[good()]);
            let at = memchr::memmem::find(&bytes, b"PK\x01\x02").unwrap();
            bytes[at + 42..at + 46].copy_from_slice(&0x00ff_ffffu32.to_le_bytes());
            bytes
        }),
        ("one data for many names.zip", zip_of(&[good()], &[(0, b"a.json"), (0, b"b.json"), (0, b"c.json")], 3)),
        ("empty.zip", zip(&[])),
        ("part of a split.zip", b"PK\x07\x08PK\x03\x04rest".to_vec()),
        ("a bomb.zip", zip(&[good(), deflated("bomb.log", &bomb), stored("after.json", LOG)])),
        (
            "five deep.zip",
            (0..5).fold(LOG.to_vec(), |inner, n| {
                zip(&[stored(&format!("{n}.json"), LOG), stored(&format!("{n}.zip"), &inner)])
            }),
        ),
        (
            "other archives.zip",
            zip(&[
                good(),
                stored("a.7z", b"7z\xbc\xaf\x27\x1crest"),
                stored("a.rar", b"Rar!\x1a\x07\0rest"),
                stored("a.xz", b"\xfd7zXZ\0rest"),
                stored("a.bz2", b"BZh91AY&SYrest"),
                stored("a.cab", b"MSCF\0\0\0\0rest"),
                stored("a.pcap", b"\xd4\xc3\xb2\xa1rest"),
                stored("a.pcapng", b"\x0a\x0d\x0d\x0arest"),
                stored("a.exe", b"MZ\x90\0rest"),
            ]),
        ),
        ("a path that leads out.tar", tarred(member("../evil.json", LOG))),
        ("an absolute path.tar", tarred(member("/etc/evil.json", LOG))),
        ("a symbolic link.tar", tarred(block(b"link", b'2', 0, b""))),
        ("a hard link.tar", tarred(block(b"hard", b'1', 0, b""))),
        ("a device and a pipe.tar", tarred([block(b"dev", b'3', 0, b""), block(b"pipe", b'6', 0, b"")].concat())),
        ("an unknown type.tar", tarred(block(b"odd", b'V', 0, b""))),
        ("one name twice.tar", tarred(member("good.json", b"{\"a\":\"other\"}\n"))),
        ("a wrong sum.tar", {
            let mut bytes = tar(&[member("good.json", LOG), member("b.json", LOG)]);
            bytes[1024 + 150] ^= 1;
            bytes
        }),
        ("cut inside a member.tar", {
            let mut bytes = tar(&[member("good.json", LOG), member("b.json", &lines(9_000))]);
            bytes.truncate(4_000);
            bytes
        }),
        ("a size past the end.tar", tarred(block(b"huge.json", b'0', 1 << 40, LOG))),
        ("a name of three megabytes.tar", tarred(block(b"././@LongLink", b'L', 3 << 20, &vec![b'n'; 3 << 20]))),
        ("a hole of a terabyte.tar", {
            let mut header = ::tar::Header::new_gnu();
            header.set_path("sparse.log").unwrap();
            header.set_entry_type(::tar::EntryType::GNUSparse);
            header.set_size(0);
            let gnu = header.as_gnu_mut().unwrap();
            gnu.set_real_size(1 << 40);
            gnu.sparse[0].set_offset(1 << 40);
            gnu.sparse[0].set_length(0);
            gnu.sparse[0].numbytes[10] = b'0';
            header.set_cksum();
            tarred(header.as_bytes().to_vec())
        }),
        ("more after the end.tar", [tar(&[member("good.json", LOG)]), tar(&[member("hidden.json", LOG)])].concat()),
        ("a bomb.gz", gz(&bomb)),
        ("a bomb.zst", zst(&bomb)),
        ("a bomb.tar.gz", gz(&tar(&[member("good.json", LOG), member("bomb.log", &bomb)]))),
        ("twice.gz", gz(&gz(LOG))),
        ("damaged.zst", {
            let mut bytes = zst(&(0..20_000u32)
                .flat_map(|n| format!("{{\"n\":{}}}\n", n.wrapping_mul(2_654_435_761)).into_bytes())
                .collect::<Vec<_>>());
            let middle = bytes.len() / 2;
            bytes[middle..].fill(0xaa);
            bytes
        }),
        ("a window of two gigabytes.zst", b"\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00a".to_vec()),
        ("nothing.gz", gz(b"")),
    ];
    all.push((
        "many members.tar",
        tar(&[
            (0..510u32).map(|n| member(&format!("{n}"), b"")).collect::<Vec<_>>().concat(),
            member("late.json", LOG),
        ]),
    ));
    all
}

#[test]
fn each_hostile_archive_has_its_outcome() {
    let all = hostile();
    assert!(all.len() >= 30);
    let mut table = String::from("Each hostile archive with what is read of it, and what is skipped and why.\n");
    for (name, bytes) in all {
        let folder = Folder::new(&[(name, &bytes), ("other.json", LOG)]);
        let catalog = folder.try_open().unwrap();
        table += &format!("\n=== {name}\n");
        for source in catalog.sources().iter().filter(|s| s.file != "other.json") {
            table += &format!("{}: {} records\n", source.file, source.records);
            source.notes.iter().for_each(|note| table += &format!("    {note}\n"));
        }
        for skipped in catalog.skipped() {
            let file: String = skipped.file.chars().take(80).collect();
            let extent = if skipped.in_part { "in part" } else { "not" };
            table += &format!("{extent} read: {}: {}\n", file.escape_debug(), skipped.reason);
        }
        let cache = folder.dir.path().join("data/index.sqlite.cache");
        let written: u64 =
            std::fs::read_dir(cache).into_iter().flatten().flatten().map(|f| f.metadata().unwrap().len()).sum();
        assert!(written < 4 << 20, "{name} wrote {written} bytes");
        catalog.verify().unwrap();
    }
    expect_file!["archives.txt"].assert_eq(&table);
}

#[test]
fn folder_named_like_an_archive_does_not_replace_a_member() {
    let folder = Folder::new(&[("c.zip", &zip(&[stored("a.json", LOG)])), ("c.zip!/a.json", b"{\"a\":\"planted\"}\n")]);
    let catalog = folder.open();
    let files: Vec<(&str, u64)> = catalog.sources().iter().map(|s| (s.file.as_str(), s.records)).collect();
    assert_eq!(files, [("c.zip!/a.json", 1)]);
    assert_eq!(catalog.skipped()[0].reason, "another file has this name: only the first is loaded");
}

#[test]
fn line_with_the_mark_of_an_archive_stays_a_line() {
    let line = |mark: &str| format!("{:>257}{mark}\n", "").into_bytes().repeat(4);
    let folder = Folder::new(&[("a.log", &line("ustar")), ("b.log", b"BZh is not bzip2\n")]);
    assert_eq!(folder.open().sources().len(), 2);
}

/// Not a fuzzer: a fixed number of changes from a fixed seed.
#[test]
fn any_change_of_an_archive_loads_or_is_refused() {
    let whole = [
        zip(&[deflated("a.json", LOG), stored("b.zip", &zip(&[stored("c.json", LOG)]))]),
        tar(&[member("a.json", LOG), member("b.json", LOG)]),
        gz(&tar(&[member("a.json", LOG)])),
        zst(LOG),
    ];
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    let mut next = |most: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % most as u64).unwrap()
    };
    for round in 0..400 {
        let mut bytes = whole[round % whole.len()].clone();
        for _ in 0..=next(8) {
            let at = next(bytes.len());
            bytes[at] = u8::try_from(next(256)).unwrap();
        }
        bytes.truncate(if next(5) == 0 { next(bytes.len()) } else { bytes.len() });
        let folder = Folder::new(&[("f", &bytes), ("other.json", LOG)]);
        accounted(&folder.try_open().unwrap(), &folder.evidence());
    }
}
