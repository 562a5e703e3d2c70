//! Puts the columns of a Parquet file together into rows.

use std::fs::File;
use std::io::Write;

use parquet::basic::{Compression, ConvertedType, Repetition};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::{ColumnDescriptor, Type};
use serde_json::{Map, Value};

use super::Decoded;
use super::value::{Kind, of_bytes, of_int32, of_int64, of_int96};

/// Rows that are put together at once.
const BATCH: usize = 256;
const COLUMNS_MAX: usize = 4_096;
const DEPTH_MAX: usize = 40;
/// Row groups that are named.
const NAMED: usize = 10;

/// A part of the path to a column.
#[derive(Debug, Clone)]
struct Step {
    name: String,
    repetition: Repetition,
}

/// The values of a column in some rows, with their levels.
#[derive(Debug, Default)]
struct Batch {
    rows: usize,
    values: Vec<Value>,
    /// Empty if all values are there.
    definitions: Vec<i16>,
    /// Empty if each row has one value.
    repetitions: Vec<i16>,
}

struct Column {
    steps: Vec<Step>,
    most: i16,
    kind: Kind,
    reader: ColumnReader,
}

pub(super) fn write(file: File, out: &mut dyn Write) -> Decoded {
    let mut decoded = Decoded::default();
    match SerializedFileReader::new(file) {
        Ok(reader) => {
            let read = all(&reader, out, &mut decoded);
            decoded.failed = read.err();
        }
        Err(error) => decoded.failed = Some(words(&error)),
    }
    decoded
}

/// What the library says, on one line.
fn words(error: &ParquetError) -> String {
    let text = error.to_string();
    let text = text.split_once(": ").map_or(text.as_str(), |(_, what)| what);
    casebook_protocol::one_line(text, 200)
}

fn all(reader: &dyn FileReader, out: &mut dyn Write, decoded: &mut Decoded) -> Result<(), String> {
    let meta = reader.metadata();
    let columns = meta.file_metadata().schema_descr();
    if columns.num_columns() > COLUMNS_MAX {
        return Err(format!("it has more than {COLUMNS_MAX} columns"));
    }
    if columns.columns().iter().any(|column| column.path().parts().len() > DEPTH_MAX) {
        return Err(format!("its columns are nested more than {DEPTH_MAX} deep"));
    }
    if let Some(codec) =
        meta.row_groups().iter().flat_map(|group| group.columns()).find_map(|one| unread(one.compression()))
    {
        return Err(format!("its pages are compressed by {codec}, which is not read: write it again with zstd"));
    }
    let mut first = 1u64;
    let (mut ranges, mut any) = (Vec::new(), false);
    for (number, group) in meta.row_groups().iter().enumerate() {
        let rows = u64::try_from(group.num_rows()).map_err(|_| format!("row group {number} has less than no rows"))?;
        let end = first.checked_add(rows).filter(|end| i64::try_from(*end).is_ok()).ok_or("it states too many rows")?;
        if rows > 0 {
            ranges.push(format!("row group {number} is {first} to {}", end - 1));
        }
        let mut next = first;
        let read = reader.get_row_group(number).map_err(|error| words(&error));
        let read = read.and_then(|group| of_group(&*group, &mut next, end, out, &mut decoded.cut));
        any |= next > first;
        if decoded.cut {
            break;
        }
        if let Err(why) = read {
            let from = if next == first { String::new() } else { format!(" after row {}", next - 1) };
            decoded.notes.push(format!("row group {number} is damaged{from} and not loaded from there: {why}"));
        }
        first = end;
    }
    if any && ranges.len() > 1 {
        let more = if ranges.len() > NAMED { " and so on" } else { "" };
        ranges.truncate(NAMED);
        decoded.notes.insert(0, format!("line numbers are numbers of rows: {}{more}", ranges.join(", ")));
    }
    Ok(())
}

const fn unread(codec: Compression) -> Option<&'static str> {
    match codec {
        Compression::LZ4 | Compression::LZ4_RAW => Some("LZ4"),
        Compression::BROTLI(_) => Some("Brotli"),
        Compression::LZO => Some("LZO"),
        Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::GZIP(_) | Compression::ZSTD(_) => None,
    }
}

/// Writes the rows from `next` up to `end`.
fn of_group(
    group: &dyn RowGroupReader,
    next: &mut u64,
    end: u64,
    out: &mut dyn Write,
    cut: &mut bool,
) -> Result<(), String> {
    let descr = group.metadata().schema_descr_ptr();
    let mut columns = Vec::new();
    for number in 0..group.num_columns() {
        let column = descr.column(number);
        let reader = group.get_column_reader(number).map_err(|error| words(&error))?;
        let steps = steps(descr.root_schema(), &column);
        let steps = steps.ok_or_else(|| "its schema does not fit its columns".to_owned())?;
        columns.push(Column { steps, most: column.max_def_level(), kind: Kind::of(&column), reader });
    }
    let mut text = String::new();
    while *next < end {
        let most = usize::try_from(end - *next).unwrap_or(BATCH).min(BATCH);
        let mut rows: Vec<Value> = Vec::new();
        rows.resize_with(most, || Value::Object(Map::new()));
        for column in &mut columns {
            let batch = column.read(most).map_err(|error| words(&error))?;
            if batch.rows != most {
                return Err(format!("column {:?} ends too early", name(&column.steps)));
            }
            column.fill(batch, &mut rows)?;
        }
        text.clear();
        for row in rows {
            let row = plain(descr.root_schema(), row);
            text.push_str(&format!("{next}\t{row}\n"));
            *next += 1;
        }
        if out.write_all(text.as_bytes()).is_err() {
            *cut = true;
            return Ok(());
        }
    }
    Ok(())
}

fn name(steps: &[Step]) -> String {
    let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
    casebook_protocol::one_line(&names.join("."), 80)
}

fn steps(root: &Type, column: &ColumnDescriptor) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut at = root;
    for part in column.path().parts() {
        at = at.is_group().then(|| at.get_fields().iter().find(|field| field.name() == part)).flatten()?;
        let basic = at.get_basic_info();
        let repetition = if basic.has_repetition() { basic.repetition() } else { Repetition::REQUIRED };
        steps.push(Step { name: part.clone(), repetition });
    }
    Some(steps)
}

impl Column {
    fn read(&mut self, most: usize) -> Result<Batch, ParquetError> {
        let kind = self.kind;
        match &mut self.reader {
            ColumnReader::BoolColumnReader(reader) => read(reader, most, |value| Value::Bool(*value)),
            ColumnReader::Int32ColumnReader(reader) => read(reader, most, |value| of_int32(kind, *value)),
            ColumnReader::Int64ColumnReader(reader) => read(reader, most, |value| of_int64(kind, *value)),
            ColumnReader::Int96ColumnReader(reader) => read(reader, most, of_int96),
            // The shortest text of the number is its value in JSON.
            ColumnReader::FloatColumnReader(reader) => read(reader, most, |value| number(value.to_string())),
            ColumnReader::DoubleColumnReader(reader) => read(reader, most, |value| number(value.to_string())),
            ColumnReader::ByteArrayColumnReader(reader) => read(reader, most, |value| of_bytes(kind, value.data())),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                read(reader, most, |value| of_bytes(kind, value.data()))
            }
        }
    }

    /// Puts the values into their rows.
    fn fill(&self, batch: Batch, rows: &mut [Value]) -> Result<(), String> {
        let levels = batch.definitions.len().max(batch.repetitions.len()).max(batch.values.len());
        let mut values = batch.values.into_iter();
        let mut places = vec![0usize; self.steps.len()];
        let mut row = None;
        for level in 0..levels {
            let defined = batch.definitions.get(level).copied().unwrap_or(self.most);
            let repeated = batch.repetitions.get(level).copied().unwrap_or(0);
            let value = if defined == self.most { values.next() } else { None };
            match usize::try_from(repeated).unwrap_or(0).checked_sub(1) {
                None => {
                    row = Some(row.map_or(0, |row| row + 1));
                    places.fill(0);
                }
                Some(list) => {
                    places.iter_mut().skip(list + 1).for_each(|place| *place = 0);
                    if let Some(place) = places.get_mut(list) {
                        *place += 1;
                    }
                }
            }
            let target = row.and_then(|row: usize| rows.get_mut(row)).ok_or("its levels do not fit its rows")?;
            put(target, &self.steps, defined, &places, value);
        }
        Ok(())
    }
}

fn put(mut at: &mut Value, steps: &[Step], defined: i16, places: &[usize], value: Option<Value>) {
    let (mut level, mut lists) = (0, places.iter());
    for (nth, step) in steps.iter().enumerate() {
        // A group that is there may be empty.
        let empty = || if nth + 1 == steps.len() { Value::Null } else { Value::Object(Map::new()) };
        if step.repetition != Repetition::REQUIRED {
            level += 1;
            if defined < level {
                return;
            }
        }
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Some(object) = at.as_object_mut() else { return };
        at = object.entry(step.name.as_str()).or_insert_with(empty);
        if step.repetition == Repetition::REPEATED {
            let place = lists.next().copied().unwrap_or(0);
            if !at.is_array() {
                *at = Value::Array(Vec::new());
            }
            let Some(list) = at.as_array_mut() else { return };
            while list.len() <= place {
                list.push(empty());
            }
            let Some(element) = list.get_mut(place) else { return };
            at = element;
        }
    }
    if let Some(value) = value {
        *at = value;
    }
}

fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    most: usize,
    convert: impl Fn(&T::T) -> Value,
) -> Result<Batch, ParquetError> {
    let mut batch = Batch::default();
    let mut values = Vec::new();
    while batch.rows < most {
        let (definitions, repetitions) = (Some(&mut batch.definitions), Some(&mut batch.repetitions));
        let (rows, _, levels) = reader.read_records(most - batch.rows, definitions, repetitions, &mut values)?;
        batch.rows += rows;
        if rows == 0 && levels == 0 {
            break;
        }
    }
    batch.values = values.iter().map(convert).collect();
    Ok(batch)
}

fn number(text: String) -> Value {
    text.parse().map_or(Value::String(text), Value::Number)
}

/// Takes away the groups that Parquet puts around lists and maps.
fn plain(of: &Type, value: Value) -> Value {
    let (true, Value::Object(mut object)) = (of.is_group(), value) else { return Value::Null };
    let fields = of.get_fields();
    let repeated = |field: &Type| {
        field.get_basic_info().has_repetition() && field.get_basic_info().repetition() == Repetition::REPEATED
    };
    let inside = match fields {
        [one] if repeated(one) => Some(one),
        _ => None,
    };
    match (of.get_basic_info().converted_type(), inside) {
        (ConvertedType::LIST, Some(one)) => {
            let wraps = one.is_group()
                && one.get_fields().len() == 1
                && one.name() != "array"
                && !one.name().ends_with("_tuple");
            let element = if wraps { one.get_fields().first() } else { None };
            let unwrap = |value: Value| match (element, value) {
                (Some(element), Value::Object(mut object)) => member(element, object.remove(element.name())),
                (Some(_), _) => Value::Null,
                (None, value) => element_of(one, value),
            };
            Value::Array(elements(object.remove(one.name())).into_iter().map(unwrap).collect())
        }
        (ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE, Some(one)) if one.is_group() => {
            let mut map = Map::new();
            for pair in elements(object.remove(one.name())) {
                let (Value::Object(mut pair), [key, rest @ ..]) = (pair, one.get_fields()) else { continue };
                let key = match pair.remove(key.name()) {
                    Some(Value::String(text)) => text,
                    other => other.unwrap_or_default().to_string(),
                };
                let value = rest.first().map(|value| member(value, pair.remove(value.name())));
                map.insert(key, value.unwrap_or_default());
            }
            Value::Object(map)
        }
        _ => {
            for field in fields {
                if let Some(value) = object.get_mut(field.name()) {
                    *value = member(field, Some(value.take()));
                }
            }
            Value::Object(object)
        }
    }
}

fn elements(list: Option<Value>) -> Vec<Value> {
    match list {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// The value of a field, which may be a list.
fn member(of: &Type, value: Option<Value>) -> Value {
    match value {
        Some(Value::Array(list)) => Value::Array(list.into_iter().map(|value| element_of(of, value)).collect()),
        Some(value) => element_of(of, value),
        None => Value::Null,
    }
}

fn element_of(of: &Type, value: Value) -> Value {
    if of.is_group() && value.is_object() { plain(of, value) } else { value }
}
