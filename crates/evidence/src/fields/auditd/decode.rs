//! Values that the audit log has as numbers, with the names that `auditd` gives them in enriched logs.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

const CALLS: &str = include_str!("syscalls.txt");
const UNSET: &str = "4294967295";

type Fields = Vec<(String, String)>;

/// Adds the names that an enriched log has, and `user`: who signed in, or else whose rights the process has.
pub(super) fn add(fields: &mut Fields) {
    let get = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let mut more: Vec<(&str, String)> = Vec::new();
    if let (Some(arch), Some(number)) = (get("arch"), get("syscall"))
        && let Some((arch, call)) = call(arch, number)
    {
        more.extend(
            [("ARCH", arch.to_owned()), ("SYSCALL", call.to_owned())].into_iter().filter(|m| get(m.0).is_none()),
        );
    }
    for (number, name) in [("auid", "AUID"), ("uid", "UID"), ("euid", "EUID")] {
        let account = match get(number) {
            Some("0") => "root",
            Some(UNSET | "-1") => "unset",
            _ => continue,
        };
        if get(name).is_none() {
            more.push((name, account.to_owned()));
        }
    }
    let account = |name: &str, number: &str| {
        let known = more.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
        get(name).or(known).or_else(|| get(number)).filter(|who| *who != "unset").map(str::to_owned)
    };
    // Records of programs name the account that they are about.
    if get("syscall").is_some() && get("acct").is_none() {
        let user = account("AUID", "auid").or_else(|| account("UID", "uid"));
        more.extend(user.map(|user| ("user", user)));
    }
    if let Some(address) = get("saddr").filter(|_| get("saddr_fam").is_none()) {
        more.extend(socket(address).unwrap_or_default());
    }
    fields.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
}

struct Table {
    arch: &'static str,
    name: &'static str,
    calls: Vec<&'static str>,
}

static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| CALLS.split("\n= ").skip(1).filter_map(table).collect());

fn table(text: &'static str) -> Option<Table> {
    let mut parts = text.split_whitespace();
    let (arch, name) = (parts.next()?, parts.next()?);
    let mut calls = Vec::new();
    for call in parts {
        match call.strip_prefix('@').and_then(|n| n.parse().ok()) {
            Some(number) => calls.resize(number, ""),
            None => calls.push(call),
        }
    }
    Some(Table { arch, name, calls })
}

/// The names of an architecture and of a system call.
fn call(arch: &str, number: &str) -> Option<(&'static str, &'static str)> {
    let table = TABLES.iter().find(|table| table.arch == arch)?;
    let call = table.calls.get(number.parse::<usize>().ok()?).filter(|call| !call.is_empty())?;
    Some((table.name, call))
}

/// The socket address of the kernel, in hexadecimal digits.
fn socket(digits: &str) -> Option<Vec<(&'static str, String)>> {
    let bytes: Vec<u8> = (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
        .collect::<Option<_>>()?;
    let family = u16::from_le_bytes([*bytes.first()?, *bytes.get(1)?]);
    let port = || Some(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]).to_string());
    Some(match family {
        1 => {
            let name = bytes.get(2..)?;
            // An abstract name begins with NUL.
            let name = name.strip_prefix(&[0]).unwrap_or(name).split(|b| *b == 0).next()?;
            vec![("saddr_fam", "local".to_owned()), ("path", String::from_utf8_lossy(name).into_owned())]
        }
        2 => {
            let address = Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(4..8)?).ok()?);
            vec![("saddr_fam", "inet".to_owned()), ("laddr", address.to_string()), ("lport", port()?)]
        }
        10 => {
            let address = Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(8..24)?).ok()?);
            vec![("saddr_fam", "inet6".to_owned()), ("laddr", address.to_canonical().to_string()), ("lport", port()?)]
        }
        16 => vec![("saddr_fam", "netlink".to_owned())],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_the_names_of_their_architecture() {
        for (arch, number, name) in [
            ("c000003e", "0", "read"),
            ("c000003e", "42", "connect"),
            ("c000003e", "59", "execve"),
            ("c000003e", "257", "openat"),
            ("c000003e", "334", "rseq"),
            ("c000003e", "435", "clone3"),
            ("40000003", "11", "execve"),
            ("40000003", "102", "socketcall"),
            ("c00000b7", "221", "execve"),
            ("c00000b7", "203", "connect"),
        ] {
            assert_eq!(call(arch, number).map(|c| c.1), Some(name), "{arch} {number}");
        }
        assert_eq!(call("c000003e", "400"), None);
        assert_eq!(call("c0000016", "59"), None);
    }

    #[test]
    fn socket_addresses_of_each_family() {
        for (digits, shown) in [
            ("020001BBC6336407", "inet 198.51.100.7 443"),
            ("0A0001BB0000000020010DB800000000000000000000000100000000", "inet6 2001:db8::1 443"),
            ("01002F6465762F6C6F6700", "local /dev/log"),
            ("100000000000000000000000", "netlink"),
        ] {
            let values: Vec<String> = socket(digits).unwrap().into_iter().map(|(_, value)| value).collect();
            assert_eq!(values.join(" "), shown);
        }
        for broken in ["", "02", "0200", "0200zz", "0A0001BB"] {
            assert_eq!(socket(broken), None, "{broken}");
        }
    }
}
