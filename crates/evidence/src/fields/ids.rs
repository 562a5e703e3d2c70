//! Alerts of Snort and Suricata in short form, alone or in syslog: `[**] [1:648:18] SHELLCODE x86 NOOP [**]
//! [Classification: …] [Priority: 1] {TCP} 10.6.6.254:80 -> 10.6.6.103:60884`.

use std::sync::LazyLock;

use regex::Regex;

type Fields = Vec<(String, String)>;

#[allow(clippy::expect_used, reason = "the pattern is a constant that the tests compile")]
static ALERT: LazyLock<Regex> = LazyLock::new(|| {
    let text = r"^(?:\[\*\*\] )?\[(\d+):(\d+):\d+\] (.+?) (?:\[\*\*\] )?(?:\[Classification: ([^\]]*)\] )?\[Priority: (\d+)\]:? \{([\w-]+)\} ([0-9A-Fa-f.:]+) -> ([0-9A-Fa-f.:]+)$";
    Regex::new(text).expect("the form of an alert is a regular expression")
});

/// Names the fields as the JSON of Suricata does.
pub(crate) fn alert(text: &str) -> Option<Fields> {
    let found = ALERT.captures(text)?;
    let part = |number: usize| found.get(number).map(|m| m.as_str());
    let mut fields = vec![("event_type".to_owned(), "alert".to_owned())];
    let mut add = |name: &str, value: Option<&str>| {
        fields.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    };
    add("alert.gid", part(1));
    add("alert.signature_id", part(2));
    add("alert.signature", part(3).map(|text| text.trim_matches('"')));
    add("alert.category", part(4));
    add("alert.severity", part(5));
    add("proto", part(6));
    for (side, number) in [("src", 7), ("dest", 8)] {
        let (ip, port) = end(part(number)?);
        add(&format!("{side}_ip"), Some(ip));
        add(&format!("{side}_port"), port);
    }
    Some(fields)
}

/// Splits address and port. After a complete IPv6 address, the ninth part is the port.
pub(super) fn end(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((ip, port)) if matches!(text.matches(':').count(), 1 | 8) => (ip, Some(port)),
        _ => (text, None),
    }
}
