//! Times in an alert.

use casebook_protocol::Timestamp;

/// Prefers the time of the event to that of the alert.
pub fn time_rank(name: &str) -> u8 {
    match name {
        n if n.contains("created") || n.contains("received") || n.contains("ingest") => 3,
        n if n.contains("event") || n == "time" || n == "ts" || n == "timestamp" => 0,
        n if n.contains("start") || n.contains("first") => 1,
        _ => 2,
    }
}

/// The time of a number of seconds, milliseconds or microseconds since 1970.
pub fn epoch(number: f64) -> Option<Timestamp> {
    let seconds = match number {
        n if (1e8..1e11).contains(&n) => n,
        n if (1e11..1e14).contains(&n) => n / 1e3,
        n if (1e14..1e17).contains(&n) => n / 1e6,
        _ => return None,
    };
    Timestamp::from_nanosecond((seconds * 1e6).round() as i128 * 1000).ok()
}
