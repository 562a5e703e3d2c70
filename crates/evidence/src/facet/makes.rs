//! Peculiarities of single products.

use std::collections::BTreeMap;

use super::last;

/// The IPv4 address in an IPv4-mapped IPv6 address. Domain controllers write clients this way.
pub(super) fn mapped(address: &str) -> Option<String> {
    let rest = address.strip_prefix("::ffff:").or_else(|| address.strip_prefix("::FFFF:"))?;
    rest.parse::<std::net::Ipv4Addr>().ok().map(|plain| plain.to_string())
}

/// True for records of a honeypot, where all activity is suspicious.
pub fn of_honeypot(fields: &BTreeMap<String, String>) -> bool {
    fields.get("eventid").is_some_and(|id| id.starts_with("cowrie."))
}

/// The input of an attacker in a honeypot.
pub(super) fn typed(fields: &BTreeMap<String, String>) -> Option<&str> {
    let command = fields.get("eventid").is_some_and(|id| id.starts_with("cowrie.command."));
    fields.get("input").filter(|_| command).map(|text| text.trim())
}

/// The severity of a Suricata or Snort alert. Their highest grade includes much that is only unwanted.
pub(super) fn graded(path: &str, number: &str) -> Option<&'static str> {
    let word = match number {
        "1" => "medium",
        "2" => "low",
        _ => return None,
    };
    (last(path, 2) == "alert.severity").then_some(word)
}

/// Removes the port from an IPv4 address, as Microsoft 365 writes clients.
pub(super) fn ported(text: &str) -> Option<String> {
    text.parse::<std::net::SocketAddrV4>().ok().map(|socket| socket.ip().to_string())
}
