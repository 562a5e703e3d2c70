//! A report made by hand in which every text of others is hostile.

use casebook_protocol::{Alert, Report};
use serde_json::Value;

/// Script, link, image, escape sequence, right-to-left override, zero width, tag character.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script> [x](javascript:alert(2)) ![i](https://evil.example/i) \u{1b}[31mred\u{7} \u{202e}gpj.exe \u{200b}\u{e0041}@admin \"'>";

/// The report in `report.json`, with the hostile text in each place that says `HOSTILE`.
pub(crate) fn report() -> Report {
    let hostile = serde_json::to_string(HOSTILE).unwrap();
    let hostile = hostile.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap();
    let mut report: Value = serde_json::from_str(&include_str!("report.json").replace("HOSTILE", hostile)).unwrap();
    let alert = Alert::parse(report["alert"].to_string().as_bytes()).unwrap();
    report["alert"] = serde_json::to_value(alert).unwrap();
    serde_json::from_value(report).unwrap()
}
