//! What single makes of records write in a way of their own.

use std::collections::BTreeMap;

use super::last;

/// The IPv4 address that is written as an IPv6 one, as domain controllers write those of their clients.
pub(super) fn mapped(address: &str) -> Option<String> {
    let rest = address.strip_prefix("::ffff:").or_else(|| address.strip_prefix("::FFFF:"))?;
    rest.parse::<std::net::Ipv4Addr>().ok().map(|plain| plain.to_string())
}

/// Whether it was recorded in a honeypot, where nothing has an honest reason.
pub(crate) fn of_honeypot(fields: &BTreeMap<String, String>) -> bool {
    fields.get("eventid").is_some_and(|id| id.starts_with("cowrie."))
}

/// What somebody typed into a honeypot.
pub(super) fn typed(fields: &BTreeMap<String, String>) -> Option<&str> {
    let command = fields.get("eventid").is_some_and(|id| id.starts_with("cowrie.command."));
    fields.get("input").filter(|_| command).map(|text| text.trim())
}

/// The severity of an alert of Suricata or Snort in words. Their first grade is given to much that is merely unwanted.
pub(super) fn graded(path: &str, number: &str) -> Option<&'static str> {
    let word = match number {
        "1" => "medium",
        "2" => "low",
        _ => return None,
    };
    (last(path, 2) == "alert.severity").then_some(word)
}

/// The address of an IPv4 address with a port behind it, as Microsoft 365 writes clients.
pub(super) fn ported(text: &str) -> Option<String> {
    text.parse::<std::net::SocketAddrV4>().ok().map(|socket| socket.ip().to_string())
}
