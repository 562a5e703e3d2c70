//! Whether what was recorded succeeded.

use std::collections::BTreeMap;

use super::last;

/// What the audit of Windows says of the outcome of its own record: this goes before any number in
/// it, since a status may be that of something else.
pub(super) fn audited(fields: &BTreeMap<String, String>) -> Option<&'static str> {
    let told = |path: &String| matches!(last(path, 1).as_str(), "keywords" | "eventtype");
    fields.iter().filter(|(path, _)| told(path)).find_map(|(_, value)| {
        let value = value.to_ascii_lowercase().replace('_', " ");
        // The two keywords of the Security log: as words, as bits, and as a number of these bits, signed or not.
        let is = |written: [&str; 3]| written.contains(&value.as_str());
        if value.contains("audit success") || is(["0x8020000000000000", "-9214364837600034816", "9232379236109516800"])
        {
            Some("success")
        } else if value.contains("audit failure")
            || is(["0x8010000000000000", "-9218868437227405312", "9227875636482146304"])
        {
            Some("failure")
        } else {
            None
        }
    })
}

pub(super) fn failed(outcome: &str) -> bool {
    let outcome = outcome.to_ascii_lowercase();
    let good = matches!(
        outcome.as_str(),
        "success"
            | "succeeded"
            | "true"
            | "yes"
            | "ok"
            | "allow"
            | "allowed"
            | "accepted"
            | "granted"
            | "permitted"
            | "none"
            | "audit_success"
    );
    // Windows writes status codes in hexadecimal; nothing but zeros is success in either notation.
    let digits = outcome.strip_prefix("0x").unwrap_or(&outcome);
    let zero = !digits.is_empty() && digits.bytes().all(|b| b == b'0');
    let number = outcome.parse::<u32>().ok();
    !(good
        || zero
        || number.is_some_and(|n| (200..400).contains(&n))
        || outcome.starts_with("success")
        || outcome.starts_with("audit success")
        || outcome.starts_with("pass"))
}
