//! A report made by hand in which every text of others is hostile.

use casebook_protocol::{Alert, ArtifactId, Report};
use casebook_trust::Backing;
use serde_json::{Value, json};

/// Script, link, image, escape sequence, right-to-left override, zero width, tag character.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script> [x](javascript:alert(2)) ![i](https://evil.example/i) \u{1b}[31mred\u{7} \u{202e}gpj.exe \u{200b}\u{e0041}@admin \"'>";

/// The report in `report.json`, with the hostile text in each place that says `HOSTILE`.
pub(crate) fn report() -> Report {
    let hostile = serde_json::to_string(HOSTILE).unwrap();
    let hostile = hostile.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap();
    let mut report: Value = serde_json::from_str(&include_str!("report.json").replace("HOSTILE", hostile)).unwrap();
    let alert = Alert::parse(report["alert"].to_string().as_bytes()).unwrap();
    report["alert"] = serde_json::to_value(alert).unwrap();
    let mut report: Report = serde_json::from_value(report).unwrap();
    for (call, result) in report.calls.iter_mut().zip(results()) {
        call.result = ArtifactId::of(result.as_bytes());
    }
    report
}

/// What the calls returned, in their order.
fn results() -> [String; 3] {
    let process = json!({"UtcTime": "2026-03-01 02:14:07.120", "Image": "/usr/sbin/modprobe",
        "CommandLine": "modprobe --show-depends overlay", "ParentImage": "/usr/bin/dpkg", HOSTILE: HOSTILE});
    let session = format!("Mar  1 02:13:59 web-03 sshd[811]: Accepted publickey for deploy from 10.0.4.17 {HOSTILE}");
    let result = |file: &str, line: u64, raw: &str| {
        let record = json!({"source": file, "file": file, "line": line, "raw": raw, "text": raw, "bytes": 5_000});
        json!({"total": 1, "returned": 1, "searched": [file], "records": [record]}).to_string()
    };
    let nothing = json!({"total": 0, "returned": 0, "searched": ["a", HOSTILE], "by_term": {}, "records": []});
    [
        result("endpoint_process.ndjson", 4812, &process.to_string()),
        nothing.to_string(),
        result("auth.log", 231, &session),
    ]
}

/// The cited records and the searches, hostile too.
pub(crate) fn backing() -> Backing {
    let report = report();
    let mut backing = Backing::of(&report);
    report.calls.iter().zip(results()).for_each(|(call, result)| backing.add(call, result.as_bytes()));
    backing
}
