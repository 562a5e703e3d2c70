use casebook_protocol::Precision;

use super::text::Moment;

const NANOS: i64 = 1_000_000_000;

/// Seconds, milli-, micro- or nanoseconds since 1970, or 100 ns or microseconds since 1601. The size decides:
/// each unit covers 2001 to 2039.
pub(crate) fn epoch(text: &str) -> Option<Moment> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !(9..=19).contains(&whole.len())
        || !whole.bytes().all(|b| b.is_ascii_digit())
        || !fraction.bytes().all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let n: i64 = whole.parse().ok()?;
    let full = |ns, precision| Some(Moment { ns, precision, zoned: true, dated: true });
    match n {
        978_307_200..=2_177_452_800 => {
            full(n.checked_mul(NANOS)?.checked_add(fraction_ns(fraction))?, of_digits(fraction.len()))
        }
        978_307_200_000..=2_177_452_800_000 => {
            let extra = fraction_ns(fraction) / 1_000;
            let precision = if fraction.is_empty() { Precision::Millisecond } else { Precision::Microsecond };
            full(n.checked_mul(1_000_000)?.checked_add(extra)?, precision)
        }
        978_307_200_000_000..=2_177_452_800_000_000 => full(n.checked_mul(1_000)?, Precision::Microsecond),
        978_307_200_000_000_000..=2_177_452_800_000_000_000 => full(n, Precision::Nanosecond),
        // FILETIME: 1601 is 11 644 473 600 s before 1970.
        126_227_808_000_000_000..=138_219_264_000_000_000 => {
            full(n.checked_sub(116_444_736_000_000_000)?.checked_mul(100)?, Precision::Nanosecond)
        }
        12_622_780_800_000_000..=13_821_926_400_000_000 => {
            full(n.checked_sub(11_644_473_600_000_000)?.checked_mul(1_000)?, Precision::Microsecond)
        }
        _ => None,
    }
}

pub(super) fn fraction_ns(digits: &str) -> i64 {
    let mut ns = 0;
    for i in 0..9 {
        ns = ns * 10 + digits.as_bytes().get(i).map_or(0, |b| i64::from(b.wrapping_sub(b'0')));
    }
    ns
}

pub(super) const fn of_digits(digits: usize) -> Precision {
    match digits {
        0 => Precision::Second,
        1..=3 => Precision::Millisecond,
        4..=6 => Precision::Microsecond,
        _ => Precision::Nanosecond,
    }
}
