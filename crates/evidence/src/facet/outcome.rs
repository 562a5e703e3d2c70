//! Whether the recorded action succeeded.

use std::collections::BTreeMap;

use super::last;

/// The outcome that Windows audit gives for the event. It goes before status numbers, which may be those of
/// something else.
pub(super) fn audited(fields: &BTreeMap<String, String>) -> Option<&'static str> {
    let is_outcome = |path: &String| matches!(last(path, 1).as_str(), "keywords" | "eventtype");
    fields.iter().filter(|(path, _)| is_outcome(path)).find_map(|(_, value)| {
        let value = value.to_ascii_lowercase().replace('_', " ");
        // The two keywords of the Security log: as words, as bits, and as a signed or unsigned number.
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

/// The outcome in the field with this name, if it is one. A state such as `New` or `S0` is not.
pub(super) fn stated(name: &str, outcome: &str) -> Option<&'static str> {
    const GOOD: &[&str] = &["true", "yes", "ok", "allow", "allowed", "accepted", "granted", "permitted", "none"];
    const GOOD_START: &[&str] =
        &["success", "succeeded", "audit success", "audit_success", "pass", "no error", "noerror", "unlock", "unblock"];
    const BAD: &[&str] = &[
        "fail",
        "denied",
        "deny",
        "error",
        "exception",
        "invalid",
        "refus",
        "reject",
        "unauthori",
        "forbid",
        "block",
        "abort",
        "not allowed",
        "not in sudoers",
        "incorrect",
        "required",
        "timed out",
        "timeout",
        "expired",
        "locked",
        "false",
    ];
    let outcome = outcome.to_ascii_lowercase();
    // Windows status codes may be hexadecimal. Zero means success.
    let digits = outcome.strip_prefix("0x").unwrap_or(&outcome);
    let zero = !digits.is_empty() && digits.bytes().all(|b| b == b'0');
    let good = GOOD.contains(&outcome.as_str()) || GOOD_START.iter().any(|word| outcome.starts_with(word));
    // Only failures have an error code.
    let code = name == "errorcode" || outcome.starts_with("0x");
    match outcome.parse::<u32>() {
        _ if good || zero => Some("success"),
        Ok(200..400) => Some("success"),
        Ok(_) => Some("failure"),
        Err(_) if code || BAD.iter().any(|word| outcome.contains(word)) => Some("failure"),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_what_says_how_something_ended() {
        let check = |name: &str, outcome: &str, expect: Option<&str>| {
            assert_eq!(stated(name, outcome), expect, "{name} {outcome}");
        };
        for good in ["Success", "0", "0x0", "Accepted", "200", "AUDIT_SUCCESS", "true", "passed", "NOERROR", "unlocked"]
        {
            check("status", good, Some("success"));
        }
        for bad in ["Failed", "Invalid", "AccessDenied", "403", "50126", "0xC000006D", "user NOT in sudoers", "false"] {
            check("status", bad, Some("failure"));
        }
        for state in ["New", "InProgress", "Resolved", "S0", "established", "Created"] {
            check("status", state, None);
        }
        check("errorcode", "TrailNotFound", Some("failure"));
        check("errorcode", "None", Some("success"));
    }
}
