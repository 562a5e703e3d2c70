//! Parquet files, written here by the library that reads them, through the process that reads them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::process::ExitCode;
use std::sync::Arc;

use casebook_evidence::{Catalog, EvidenceTools, Format};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
    Int96, Int96Type,
};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use serde_json::{Value, json};

fn main() -> ExitCode {
    if let Some(done) = casebook_evidence::serve_reader() {
        return done;
    }
    let tests: [(&str, fn()); 8] = [
        ("each_row_is_a_record_with_its_number", each_row_is_a_record_with_its_number),
        ("values_have_the_meaning_of_their_column", values_have_the_meaning_of_their_column),
        ("lists_maps_and_groups_are_those_of_json", lists_maps_and_groups_are_those_of_json),
        ("each_compression_and_encoding_is_read", each_compression_and_encoding_is_read),
        ("damaged_row_group_is_noted_and_the_others_are_read", damaged_row_group_is_noted_and_the_others_are_read),
        ("file_that_is_no_parquet_is_refused", file_that_is_no_parquet_is_refused),
        ("bomb_is_cut_where_room_ends", bomb_is_cut_where_room_ends),
        ("any_change_loads_or_is_refused", any_change_loads_or_is_refused),
    ];
    for (name, test) in tests {
        let start = std::time::Instant::now();
        test();
        println!("test {name} ... ok ({:.1} s)", start.elapsed().as_secs_f32());
    }
    ExitCode::SUCCESS
}

/// A folder with these files and a log, so that a refused file is not the only one.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(folder.evidence()).unwrap();
        folder.write("other.log", b"2026-01-02T03:04:05Z started\n");
        files.iter().for_each(|(name, bytes)| folder.write(name, bytes));
        folder
    }

    fn evidence(&self) -> std::path::PathBuf {
        self.0.path().join("evidence")
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.evidence().join(name), bytes).unwrap();
    }

    fn open(&self) -> Catalog {
        let index = self.0.path().join("index").join("index.sqlite");
        let _ = std::fs::remove_dir_all(index.parent().unwrap());
        Catalog::open(&self.evidence(), &index, &mut |_| {}).unwrap()
    }
}

/// Why the file is not loaded.
fn refused(catalog: &Catalog, file: &str) -> Option<String> {
    catalog.skipped().iter().find(|skipped| skipped.file == file).map(|skipped| skipped.reason.clone())
}

fn rows(catalog: &Catalog, file: &str) -> Vec<(u64, Value)> {
    let Some(source) = catalog.sources().iter().find(|source| source.file == file) else { return Vec::new() };
    let lines = 1..=source.lines;
    let found = lines.filter_map(|line| Some((line, catalog.record(file, line).ok()?)));
    found.map(|(line, record)| (line, serde_json::from_slice(&record.bytes).unwrap())).collect()
}

/// One row group after the other.
type Group<'g> = &'g dyn Fn(&mut SerializedRowGroupWriter<'_, &mut Vec<u8>>);

fn file(schema: &str, properties: WriterProperties, groups: &[Group<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).unwrap();
    for group in groups {
        let mut next = writer.next_row_group().unwrap();
        group(&mut next);
        next.close().unwrap();
    }
    writer.close().unwrap();
    bytes
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    values: &[T::T],
    levels: Option<&[i16]>,
    repeated: Option<&[i16]>,
) {
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<T>().write_batch(values, levels, repeated).unwrap();
    column.close().unwrap();
}

fn texts(texts: &[&str]) -> Vec<ByteArray> {
    texts.iter().map(|text| ByteArray::from(*text)).collect()
}

const EVENTS: &str = "message events {
    required int64 time (TIMESTAMP(MILLIS, true));
    required int64 local (TIMESTAMP(NANOS, false));
    required int32 day (DATE);
    required int32 price (DECIMAL(9, 2));
    optional binary user (STRING);
    required boolean ok;
    required double ratio;
    required fixed_len_byte_array(2) raw;
    required int64 code (INTEGER(64, false));
}";
/// 2026-01-02T03:04:05Z in milliseconds.
const AT: i64 = 1_767_323_045_000;

fn events(count: i64) -> impl Fn(&mut SerializedRowGroupWriter<'_, &mut Vec<u8>>) {
    move |group| {
        let all: Vec<i64> = (0..count).collect();
        let small: Vec<i32> = (0..i32::try_from(count).unwrap()).collect();
        column::<Int64Type>(group, &all.iter().map(|n| AT + n).collect::<Vec<_>>(), None, None);
        column::<Int64Type>(group, &all.iter().map(|n| AT * 1_000_000 + n).collect::<Vec<_>>(), None, None);
        column::<Int32Type>(group, &small.iter().map(|n| 20_455 + n % 2).collect::<Vec<_>>(), None, None);
        column::<Int32Type>(group, &small, None, None);
        // Every second user is known.
        let levels: Vec<i16> = all.iter().map(|n| i16::from(n % 2 == 0)).collect();
        let users: Vec<String> = all.iter().filter(|n| *n % 2 == 0).map(|n| format!("user-{}", n % 6)).collect();
        let users = texts(&users.iter().map(String::as_str).collect::<Vec<_>>());
        column::<ByteArrayType>(group, &users, Some(&levels), None);
        column::<BoolType>(group, &all.iter().map(|n| n % 3 == 0).collect::<Vec<_>>(), None, None);
        column::<DoubleType>(group, &vec![0.1; small.len()], None, None);
        column::<FixedLenByteArrayType>(group, &vec![ByteArray::from(vec![0xff, 0]).into(); small.len()], None, None);
        column::<Int64Type>(group, &vec![-1; small.len()], None, None);
    }
}

fn each_row_is_a_record_with_its_number() {
    let bytes = file(EVENTS, WriterProperties::new(), &[&events(1_000), &events(3)]);
    let folder = Folder::new(&[("events.parquet", &bytes)]);
    let catalog = folder.open();
    let source = catalog.sources().iter().find(|source| source.file == "events.parquet").unwrap();
    assert_eq!(
        (source.id.as_str(), source.format, source.records, source.lines),
        ("events", Format::Parquet, 1_003, 1_003)
    );
    assert_eq!((source.malformed, source.untimed, source.time_field.as_deref()), (0, 0, Some("time")));
    let note = "line numbers are numbers of rows: row group 0 is 1 to 1000, row group 1 is 1001 to 1003";
    assert!(source.notes.iter().any(|known| known == note), "{:?}", source.notes);
    let record = catalog.record("events.parquet", 1_003).unwrap();
    let expected = r#"{"time":"2026-01-02T03:04:05.002Z","local":"2026-01-02T03:04:05.000000002","day":"2026-01-02","price":"0.02","user":"user-2","ok":false,"ratio":0.1,"raw":"ff00","code":18446744073709551615}"#;
    assert_eq!(String::from_utf8(record.bytes.clone()).unwrap(), expected);
    assert_eq!(record.time.unwrap().to_string(), "2026-01-02T03:04:05.002Z");
    assert!(catalog.record("events.parquet", 1_004).unwrap_err().to_string().contains("lines 1 to 1003"));
    let tools = EvidenceTools::new(Arc::new(folder.open()), &["events".to_owned()]);
    let answer = tools.call("count_by", r#"{"field":"user"}"#).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((&answer["missing"], &answer["groups"][0]["value"]), (&json!(501), &json!("user-0")), "{answer}");
}

fn values_have_the_meaning_of_their_column() {
    let schema = "message values {
        required int64 micros (TIMESTAMP(MICROS, true));
        required int64 nanos (TIMESTAMP(NANOS, true));
        required int64 far (TIMESTAMP(MILLIS, true));
        required int64 old (TIMESTAMP_MILLIS);
        required int96 oldest;
        required int32 date (DATE);
        required int32 clock (TIME(MILLIS, true));
        required int64 finer (TIME(MICROS, true));
        required int64 price (DECIMAL(18, 3));
        required binary sum (DECIMAL(30, 2));
        required fixed_len_byte_array(17) large (DECIMAL(40, 1));
        required int32 small (INTEGER(32, false));
        required fixed_len_byte_array(16) id (UUID);
        required binary text (STRING);
        required binary bytes;
        required float ratio;
        required double none;
    }";
    let group = |group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>| {
        let day = |day: u32| {
            let mut at = Int96::new();
            at.set_data(1_000_000_000, 0, day);
            at
        };
        let bytes = |bytes: &[u8]| ByteArray::from(bytes.to_vec());
        column::<Int64Type>(group, &[AT * 1000 + 123_456, -1], None, None);
        column::<Int64Type>(group, &[AT * 1_000_000 + 1, 0], None, None);
        column::<Int64Type>(group, &[i64::MAX, i64::MIN], None, None);
        column::<Int64Type>(group, &[AT, 0], None, None);
        column::<Int96Type>(group, &[day(2_440_589), day(u32::MAX)], None, None);
        column::<Int32Type>(group, &[20_455, i32::MIN], None, None);
        column::<Int32Type>(group, &[1_500, -1], None, None);
        column::<Int64Type>(group, &[86_399_999_999, 86_400_000_000], None, None);
        column::<Int64Type>(group, &[-12_345, 5], None, None);
        column::<ByteArrayType>(group, &[bytes(&[0xff, 0xfe]), bytes(&[1, 0])], None, None);
        column::<FixedLenByteArrayType>(group, &[bytes(&[1; 17]).into(), bytes(&[0; 17]).into()], None, None);
        column::<Int32Type>(group, &[-1, 1], None, None);
        column::<FixedLenByteArrayType>(group, &[bytes(&[0xab; 16]).into(), bytes(&[0; 16]).into()], None, None);
        column::<ByteArrayType>(group, &[bytes(b"a\tb"), bytes(b"a\xff")], None, None);
        column::<ByteArrayType>(group, &[bytes(b"text"), bytes(b"\xff\x00")], None, None);
        column::<FloatType>(group, &[0.1, f32::INFINITY], None, None);
        column::<DoubleType>(group, &[-1e300, f64::NAN], None, None);
    };
    let bytes = file(schema, WriterProperties::new(), &[&group]);
    let found = rows(&Folder::new(&[("a.parquet", &bytes)]).open(), "a.parquet");
    let expected = [
        json!({
            "micros": "2026-01-02T03:04:05.123456Z", "nanos": "2026-01-02T03:04:05.000000001Z", "far": i64::MAX,
            "old": "2026-01-02T03:04:05Z", "oldest": "1970-01-02T00:00:01Z", "date": "2026-01-02", "clock": "00:00:01.5",
            "finer": "23:59:59.999999", "price": "-12.345", "sum": "-0.02", "large": "01".repeat(17),
            "small": 4_294_967_295_u32, "id": "abababab-abab-abab-abab-abababababab", "text": "a\tb", "bytes": "text",
            "ratio": 0.1, "none": -1e300,
        }),
        json!({
            "micros": "1969-12-31T23:59:59.999999Z", "nanos": "1970-01-01T00:00:00Z", "far": i64::MIN,
            "old": "1970-01-01T00:00:00Z", "oldest": null, "date": i32::MIN, "clock": -1, "finer": 86_400_000_000_i64,
            "price": "0.005", "sum": "2.56", "large": "00".repeat(17), "small": 1,
            "id": "00000000-0000-0000-0000-000000000000", "text": "a\u{fffd}", "bytes": "ff00", "ratio": "inf", "none": "NaN",
        }),
    ];
    assert_eq!(found.into_iter().map(|(_, row)| row).collect::<Vec<_>>(), expected);
}

fn lists_maps_and_groups_are_those_of_json() {
    let schema = "message nested {
        optional group actor { required binary name (STRING); optional group session { required int32 id; } }
        optional group tags (LIST) { repeated group list { optional binary element (STRING); } }
        optional group labels (MAP) { repeated group key_value { required binary key (STRING); optional int32 value; } }
        repeated int32 ports;
        repeated group hops { required binary ip; repeated int32 ttl; }
    }";
    let group = |group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>| {
        column::<ByteArrayType>(group, &texts(&["mara", "eve"]), Some(&[1, 0, 1]), None);
        column::<Int32Type>(group, &[7], Some(&[2, 0, 1]), None);
        column::<ByteArrayType>(group, &texts(&["a", "b"]), Some(&[3, 2, 3, 0, 1]), Some(&[0, 1, 1, 0, 0]));
        column::<ByteArrayType>(group, &texts(&["x", "y"]), Some(&[2, 2, 0, 1]), Some(&[0, 1, 0, 0]));
        column::<Int32Type>(group, &[5], Some(&[3, 2, 0, 1]), Some(&[0, 1, 0, 0]));
        column::<Int32Type>(group, &[22, 443], Some(&[1, 1, 0, 0]), Some(&[0, 1, 0, 0]));
        column::<ByteArrayType>(
            group,
            &texts(&["192.0.2.1", "192.0.2.2", "192.0.2.3"]),
            Some(&[1, 1, 0, 1]),
            Some(&[0, 1, 0, 0]),
        );
        column::<Int32Type>(group, &[1, 2, 3], Some(&[2, 2, 1, 0, 2]), Some(&[0, 2, 1, 0, 0]));
    };
    let folder = Folder::new(&[("a.parquet", &file(schema, WriterProperties::new(), &[&group]))]);
    let expected = [
        json!({
            "actor": {"name": "mara", "session": {"id": 7}}, "tags": ["a", null, "b"], "labels": {"x": 5, "y": null},
            "ports": [22, 443], "hops": [{"ip": "192.0.2.1", "ttl": [1, 2]}, {"ip": "192.0.2.2"}],
        }),
        json!({}),
        json!({"actor": {"name": "eve"}, "tags": [], "labels": {}, "hops": [{"ip": "192.0.2.3", "ttl": [3]}]}),
    ];
    let found: Vec<Value> = rows(&folder.open(), "a.parquet").into_iter().map(|(_, row)| row).collect();
    assert_eq!(found, expected);
}

fn each_compression_and_encoding_is_read() {
    let codecs = [Compression::SNAPPY, Compression::GZIP(Default::default()), Compression::ZSTD(ZstdLevel::default())];
    let plain = rows(
        &Folder::new(&[("a.parquet", &file(EVENTS, WriterProperties::new(), &[&events(600)]))]).open(),
        "a.parquet",
    );
    assert_eq!(plain.len(), 600);
    for codec in codecs {
        for (version, dictionary) in [(WriterVersion::PARQUET_1_0, true), (WriterVersion::PARQUET_2_0, false)] {
            let properties = WriterProperties::builder().set_compression(codec).set_writer_version(version);
            let properties = properties.set_dictionary_enabled(dictionary).set_data_page_row_count_limit(100).build();
            let bytes = file(EVENTS, properties, &[&events(600)]);
            assert_eq!(rows(&Folder::new(&[("a.parquet", &bytes)]).open(), "a.parquet"), plain, "{codec} {version:?}");
        }
    }
}

fn damaged_row_group_is_noted_and_the_others_are_read() {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut bytes = file(EVENTS, properties, &[&events(600), &events(3)]);
    // Behind the header of the first page of the first row group.
    bytes[60..400].fill(0xff);
    let folder = Folder::new(&[("a.parquet", &bytes)]);
    let catalog = folder.open();
    let found = rows(&catalog, "a.parquet");
    assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [601, 602, 603]);
    let notes = &catalog.sources().iter().find(|source| source.file == "a.parquet").unwrap().notes;
    assert!(
        notes.iter().any(|note| note.starts_with("row group 0 is damaged and not loaded from there: ")),
        "{notes:?}"
    );
}

fn file_that_is_no_parquet_is_refused() {
    let good = file(EVENTS, WriterProperties::new(), &[&events(3)]);
    let footer = u32::try_from(good.len()).unwrap().to_le_bytes();
    let cases: [(&str, Vec<u8>); 5] = [
        ("Parquet file that cannot be read: ", b"PAR1".to_vec()),
        ("Parquet file that cannot be read: ", [b"PAR1".as_slice(), &[0; 40], b"PAR1"].concat()),
        ("Parquet file that cannot be read: ", [b"PAR1".as_slice(), &[0; 40], &footer, b"PAR1"].concat()),
        ("Parquet file that cannot be read: ", good[..good.len() / 2].to_vec()),
        ("encrypted Parquet", b"PARE and more".to_vec()),
    ];
    for (expected, bytes) in cases {
        let why = refused(&Folder::new(&[("a.parquet", &bytes)]).open(), "a.parquet").unwrap();
        assert!(why.starts_with(expected) && !why.contains('\n') && why.len() < 300, "{why}");
        println!("  {why}");
    }
    let none = file(EVENTS, WriterProperties::new(), &[]);
    assert_eq!(refused(&Folder::new(&[("a.parquet", &none)]).open(), "a.parquet").unwrap(), "it has no records");
}

/// A file of a few kilobytes with a million rows.
fn bomb_is_cut_where_room_ends() {
    let schema = "message bomb { required int64 time (TIMESTAMP(MILLIS, true)); required binary text (STRING); }";
    let long = "x".repeat(300);
    let group = |group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>| {
        column::<Int64Type>(group, &vec![AT; 1_000_000], None, None);
        column::<ByteArrayType>(group, &vec![ByteArray::from(long.as_str()); 1_000_000], None, None);
    };
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let bytes = file(schema, properties, &[&group]);
    assert!(bytes.len() < 16 << 10, "{}", bytes.len());
    let folder = Folder::new(&[("a.parquet", &bytes)]);
    let catalog = folder.open();
    let source = catalog.sources().iter().find(|source| source.file == "a.parquet").unwrap();
    assert!(
        (100_000..300_000).contains(&source.records) && source.bytes < 80 << 20,
        "{} {}",
        source.records,
        source.bytes
    );
    assert!(source.notes.iter().any(|note| note.contains("unpacked, it is larger than")), "{:?}", source.notes);
}

/// Bytes between two changes.
const STEP: usize = 5;

/// The bytes of a small file, one after the other.
fn any_change_loads_or_is_refused() {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let schema = "message small { required int64 time (TIMESTAMP(MILLIS, true)); optional binary user (STRING); repeated int32 ports; }";
    let group = |group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>| {
        column::<Int64Type>(group, &[AT, AT, AT + 1], None, None);
        column::<ByteArrayType>(group, &texts(&["mara", "eve"]), Some(&[1, 0, 1]), None);
        column::<Int32Type>(group, &[22, 443], Some(&[1, 1, 0, 0]), Some(&[0, 1, 0, 0]));
    };
    let good = file(schema, properties, &[&group]);
    let folder = Folder::new(&[]);
    let mut stopped = 0;
    for at in (0..good.len()).step_by(STEP) {
        for change in [0xff, 0x80, 0x01] {
            let mut bytes = good.clone();
            bytes[at] ^= change;
            folder.write("a.parquet", &bytes);
            let catalog = folder.open();
            let why = refused(&catalog, "a.parquet");
            assert!(why.is_some() || !rows(&catalog, "a.parquet").is_empty(), "{at} {change:x}");
            stopped += u32::from(why.is_some_and(|why| why.contains("its reader ended with exit status: 101")));
        }
    }
    // Each would have ended this process.
    println!("  {stopped} of the changes made the library panic");
    assert!(stopped > 0, "no change stops the reader any more: is a process for it still needed?");
}
