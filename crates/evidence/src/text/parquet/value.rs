//! The values of a column as JSON.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp, civil};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit};
use parquet::data_type::Int96;
use parquet::schema::types::ColumnDescriptor;
use serde_json::Value;

/// Bytes of a decimal number that is shown as one.
const DECIMAL_MAX: usize = 16;
/// Digits after the point.
const SCALE_MAX: usize = 38;
const DAY: i128 = 86_400_000_000_000;
/// The Julian day of 1970-01-01.
const EPOCH: i64 = 2_440_588;

/// What the values of a column mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Unsigned,
    Date,
    /// Nanoseconds of a unit, and whether it is in UTC.
    Timestamp(i64, bool),
    Time(i64),
    Decimal(usize),
    Text,
    Uuid,
}

impl Kind {
    pub(super) fn of(column: &ColumnDescriptor) -> Self {
        let decimal = |scale: i32| usize::try_from(scale).ok().filter(|scale| *scale <= SCALE_MAX).map(Self::Decimal);
        let known = match column.logical_type_ref() {
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) => Some(Self::Text),
            Some(LogicalType::Uuid) => Some(Self::Uuid),
            Some(LogicalType::Date) => Some(Self::Date),
            Some(LogicalType::Timestamp(kind)) => Some(Self::Timestamp(unit(&kind.unit), kind.is_adjusted_to_u_t_c)),
            Some(LogicalType::Time(kind)) => Some(Self::Time(unit(&kind.unit))),
            Some(LogicalType::Decimal(kind)) => decimal(kind.scale),
            Some(LogicalType::Integer(kind)) if !kind.is_signed => Some(Self::Unsigned),
            _ => None,
        };
        let converted = || match column.converted_type() {
            ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON => Some(Self::Text),
            ConvertedType::DATE => Some(Self::Date),
            ConvertedType::TIMESTAMP_MILLIS => Some(Self::Timestamp(1_000_000, true)),
            ConvertedType::TIMESTAMP_MICROS => Some(Self::Timestamp(1_000, true)),
            ConvertedType::TIME_MILLIS => Some(Self::Time(1_000_000)),
            ConvertedType::TIME_MICROS => Some(Self::Time(1_000)),
            ConvertedType::DECIMAL => decimal(column.type_scale()),
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64 => {
                Some(Self::Unsigned)
            }
            _ => None,
        };
        known.or_else(converted).unwrap_or(Self::Plain)
    }
}

const fn unit(unit: &TimeUnit) -> i64 {
    match unit {
        TimeUnit::MILLIS => 1_000_000,
        TimeUnit::MICROS => 1_000,
        TimeUnit::NANOS => 1,
    }
}

pub(super) fn of_int32(kind: Kind, value: i32) -> Value {
    match kind {
        Kind::Unsigned => value.cast_unsigned().into(),
        _ => of_int64(kind, value.into()),
    }
}

pub(super) fn of_int64(kind: Kind, value: i64) -> Value {
    let text = match kind {
        Kind::Date => date(value),
        Kind::Timestamp(unit, utc) => stamp(i128::from(value) * i128::from(unit), utc),
        Kind::Time(unit) => clock(value, unit),
        Kind::Decimal(scale) => Some(decimal(value.into(), scale)),
        Kind::Unsigned => return value.cast_unsigned().into(),
        Kind::Plain | Kind::Text | Kind::Uuid => None,
    };
    // A time that no calendar has stays a number.
    text.map_or_else(|| value.into(), Value::String)
}

pub(super) fn of_int96(value: &Int96) -> Value {
    let [low, high, day] = value.data() else { return Value::Null };
    let nanos = i128::from(u64::from(*high) << 32 | u64::from(*low));
    let at = i128::from(i64::from(*day) - EPOCH) * DAY + nanos;
    stamp(at, true).map_or(Value::Null, Value::String)
}

pub(super) fn of_bytes(kind: Kind, bytes: &[u8]) -> Value {
    let text = match (kind, bytes) {
        (Kind::Text, _) => String::from_utf8_lossy(bytes).into_owned(),
        (Kind::Decimal(scale), [first, ..]) if bytes.len() <= DECIMAL_MAX => {
            let sign = if *first < 0x80 { 0 } else { -1 };
            decimal(bytes.iter().fold(sign, |number, byte| number << 8 | i128::from(*byte)), scale)
        }
        (Kind::Uuid, _) if bytes.len() == 16 => {
            let mut text = hex(bytes);
            for at in [20, 16, 12, 8] {
                text.insert(at, '-');
            }
            text
        }
        // Some programs do not say that a column is text.
        (Kind::Plain, _) => std::str::from_utf8(bytes).map_or_else(|_| hex(bytes), str::to_owned),
        _ => hex(bytes),
    };
    Value::String(text)
}

fn hex(bytes: &[u8]) -> String {
    casebook_protocol::hash::hex(bytes)
}

fn date(days: i64) -> Option<String> {
    let days = Span::new().try_days(days).ok()?;
    civil::date(1970, 1, 1).checked_add(days).map(|date| date.to_string()).ok()
}

fn stamp(ns: i128, utc: bool) -> Option<String> {
    let at = Timestamp::from_nanosecond(ns).ok()?;
    Some(if utc { at.to_string() } else { TimeZone::UTC.to_datetime(at).to_string() })
}

fn clock(value: i64, unit: i64) -> Option<String> {
    let ns = value.checked_mul(unit).filter(|ns| (0..DAY).contains(&i128::from(*ns)))?;
    civil::Time::midnight().checked_add(SignedDuration::from_nanos(ns)).map(|time| time.to_string()).ok()
}

fn decimal(value: i128, scale: usize) -> String {
    let digits = format!("{:0width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    let sign = if value < 0 { "-" } else { "" };
    if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}
