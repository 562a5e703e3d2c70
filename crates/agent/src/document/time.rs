//! Times as people write them.

use std::time::Duration;

/// A time such as `60s`, `500ms`, `2m` or `1h`.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(at)?;
    let number: u64 = number.parse().ok()?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.checked_mul(millis)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        let check = |text: &str, millis: Option<u64>| {
            assert_eq!(duration(text), millis.map(Duration::from_millis), "{text}");
        };
        check("500ms", Some(500));
        check("60s", Some(60_000));
        check("2m", Some(120_000));
        check("1h", Some(3_600_000));
        check("60", None);
        check("s", None);
        check("1.5s", None);
        check("-1s", None);
        check("99999999999999999999s", None);
        check("18446744073709551615h", None);
        check("5 s", None);
    }
}
