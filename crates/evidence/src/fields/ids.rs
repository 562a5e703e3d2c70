//! Alerts of Snort and Suricata in the short form: `[**] [1:648:18] SHELLCODE x86 NOOP [**] [Classification: …]
//! [Priority: 1] {TCP} 10.6.6.254:80 -> 10.6.6.103:60884`, alone or as a message of syslog.

use std::sync::LazyLock;

use regex::Regex;

type Fields = Vec<(String, String)>;

#[allow(clippy::expect_used, reason = "the pattern is a constant that the tests compile")]
static ALERT: LazyLock<Regex> = LazyLock::new(|| {
    let text = r"^(?:\[\*\*\] )?\[(\d+):(\d+):\d+\] (.+?) (?:\[\*\*\] )?(?:\[Classification: ([^\]]*)\] )?\[Priority: (\d+)\]:? \{([\w-]+)\} ([0-9A-Fa-f.:]+) -> ([0-9A-Fa-f.:]+)$";
    Regex::new(text).expect("the form of an alert is a regular expression")
});

/// The fields of an alert, under the names that Suricata's own JSON has for them.
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

/// Address and port. Of an IPv6 address with all its parts the port is the ninth.
pub(super) fn end(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((ip, port)) if matches!(text.matches(':').count(), 1 | 8) => (ip, Some(port)),
        _ => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let got = alert(text).map(|fields| fields.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>());
        assert_eq!(got.map(|all| all.join(" | ")).unwrap_or_default(), expect, "{text}");
    }

    #[test]
    fn of_either_make_with_and_without_what_may_be_missing() {
        check(
            "[**] [1:648:18] \"INDICATOR-SHELLCODE x86 NOOP\" [**] [Classification: Executable code was detected] [Priority: 1] {TCP} 10.6.6.254:80 -> 10.6.6.103:60884",
            "event_type=alert | alert.gid=1 | alert.signature_id=648 | alert.signature=INDICATOR-SHELLCODE x86 NOOP | alert.category=Executable code was detected | alert.severity=1 | proto=TCP | src_ip=10.6.6.254 | src_port=80 | dest_ip=10.6.6.103 | dest_port=60884",
        );
        check(
            "[1:366:11] PING [Priority: 3]: {ICMP} 2001:df1:c200:c:0:0:0:35 -> 2001:4860:4860:0:0:0:0:8888:80",
            "event_type=alert | alert.gid=1 | alert.signature_id=366 | alert.signature=PING | alert.severity=3 | proto=ICMP | src_ip=2001:df1:c200:c:0:0:0:35 | dest_ip=2001:4860:4860:0:0:0:0:8888 | dest_port=80",
        );
        check("[1:366:11] PING [Priority: 3] {ICMP} here -> there", "");
    }
}
