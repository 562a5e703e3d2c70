//! What may be set: each key once, with its name in the file, its environment variable and its flag,
//! and what a value of it must be.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use hyper::Uri;

/// A key that a process understands.
#[derive(Debug)]
pub struct Key {
    /// Its name in a settings file; the flag is the same with `-` for `_`.
    pub name: &'static str,
    /// Its environment variable.
    pub env: &'static str,
    /// What a value must be.
    pub kind: Kind,
    /// The value where nothing is set; none where it is not set then.
    pub usual: Option<&'static str>,
    /// What stands for the value in the help.
    pub value: &'static str,
    /// What it is for: one line of help.
    pub help: &'static str,
}

impl Key {
    /// Its flag, without the dashes in front.
    #[must_use]
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }
}

/// What a value must be.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Addresses of NATS servers, parted by commas; nothing secret in them.
    Servers,
    /// The address of an HTTP server; nothing secret in it.
    Http,
    /// A file or folder. In a settings file it is relative to that file's folder.
    Path,
    /// Files, in a settings file an array; the flag may be given several times.
    Paths,
    /// A whole number within these.
    Number(u64, u64),
    /// An amount of money such as `2.50`, in millionths.
    Amount,
    /// An address to listen on; a port alone is on the loopback.
    Address,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// A value that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Text, or a word.
    Text(String),
    /// Files and folders: one, or several where the key allows that.
    Paths(Vec<PathBuf>),
    /// A number, or an amount in millionths.
    Number(u64),
    /// An address.
    Address(SocketAddr),
}

impl Kind {
    /// Whether a key of this kind takes several values.
    #[must_use]
    pub const fn several(self) -> bool {
        matches!(self, Self::Paths)
    }

    /// The value that these texts are; a path is relative to `base`.
    ///
    /// # Errors
    /// What must be there instead.
    pub(super) fn value(self, texts: &[String], base: Option<&Path>) -> Result<Value, String> {
        let path = |text: &String| match text.is_empty() {
            true => Err("a path is empty: name a file".to_owned()),
            false => Ok(base.map_or_else(|| PathBuf::from(text), |base| base.join(text))),
        };
        let several = || texts.iter().map(path).collect::<Result<Vec<_>, _>>().map(Value::Paths);
        let ([text], false) = (texts, self.several()) else {
            return if self.several() { several() } else { Err("give one value".to_owned()) };
        };
        match self {
            Self::Paths | Self::Path => several(),
            Self::Servers => servers(text).map(|()| Value::Text(text.clone())),
            Self::Http => http(text).map(|()| Value::Text(text.clone())),
            Self::Number(least, most) => number(text, least, most).map(Value::Number),
            Self::Amount => micros(text).map(Value::Number),
            Self::Address => address(text).map(Value::Address),
            Self::Word(words) if words.contains(&text.as_str()) => Ok(Value::Text(text.clone())),
            Self::Word(words) => Err(format!("{text:?} is none of {}", words.join(", "))),
        }
    }
}

fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|n| (least..=most).contains(n));
    number.ok_or_else(|| format!("{text:?} is no whole number from {least} to {most}"))
}

/// Millionths of an amount such as `2.50`.
///
/// # Errors
/// It is none, or has more than six decimals.
pub fn micros(text: &str) -> Result<u64, String> {
    let expected = || "give an amount such as 2.50".to_owned();
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 6 || !(whole.to_owned() + part).bytes().all(|b| b.is_ascii_digit()) {
        return Err(expected());
    }
    let whole: u64 = whole.parse().map_err(|_| expected())?;
    let part: u64 = format!("{part:0<6}").parse().map_err(|_| expected())?;
    whole.checked_mul(1_000_000).and_then(|w| w.checked_add(part)).ok_or_else(expected)
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let on_loopback = || text.parse().ok().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    let found = text.parse().ok().or_else(on_loopback);
    found.ok_or_else(|| format!("{text:?} is no address: give a port such as 8080, or 127.0.0.1:8080"))
}

/// Whether a text is addresses of NATS servers, parted by commas. A password must not stand where `ps`, logs
/// and the effective settings show it.
///
/// # Errors
/// What is wrong and what to do; a user and password are not repeated.
pub fn servers(text: &str) -> Result<(), String> {
    for server in text.split(',').map(str::trim) {
        let (scheme, rest) = server.split_once("://").unwrap_or(("nats", server));
        if rest.contains('@') {
            return Err("a server's address holds no user and password: put them in a file and name it \
                 with `credentials`"
                .to_owned());
        }
        let uri: Option<Uri> = format!("http://{}", rest.trim_end_matches('/')).parse().ok();
        let place = uri.as_ref().is_some_and(|uri| uri.path() == "/" && uri.query().is_none() && names_a_place(uri));
        if !["nats", "tls"].contains(&scheme) || !place {
            return Err(format!("{server:?} is no address of a NATS server, such as nats://127.0.0.1:4222"));
        }
    }
    Ok(())
}

/// Whether a text is the address of an HTTP server. What is secret must not stand where `ps`, logs and the
/// effective settings show it.
///
/// # Errors
/// What is wrong and what to do; what may be secret is not repeated.
pub fn http(text: &str) -> Result<(), String> {
    if text.contains(['@', '?', '#']) {
        return Err(
            "an address holds no user, password or query; a collector's key goes into OTEL_EXPORTER_OTLP_HEADERS"
                .to_owned(),
        );
    }
    let web = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && names_a_place(uri);
    match text.parse::<Uri>() {
        Ok(uri) if web(&uri) => Ok(()),
        _ => Err(format!("{text:?} is no address of an HTTP server, such as http://127.0.0.1:4318")),
    }
}

/// It has a host, and a port that is one where it has any.
fn names_a_place(uri: &Uri) -> bool {
    let of = uri.authority().filter(|of| !of.host().is_empty());
    of.is_some_and(|of| of.port_u16().is_some() || of.as_str() == of.host())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(kind: Kind, text: &str) -> String {
        kind.value(&[text.to_owned()], None).unwrap_err()
    }

    #[test]
    fn an_address_that_can_never_be_reached_is_refused() {
        for right in ["nats://a:4222, tls://b", "127.0.0.1:4222", "nats://[::1]:4222", "localhost", "nats://a:4222/"] {
            assert_eq!(servers(right), Ok(()), "{right}");
        }
        for expected in
            ["nats://a:99999", "nats://", "ws://a", "nats://:4222", "nats://a:x", "nats://a/b", "nats://a b", ""]
        {
            assert!(servers(expected).is_err_and(|why| why.contains("no address of a NATS server")), "{expected}");
        }
    }

    #[test]
    fn a_password_in_a_servers_address_is_refused_and_not_repeated() {
        let told = said(Kind::Servers, "nats://director:hunter2@127.0.0.1:4222");
        assert!(told.contains("credentials") && !told.contains("hunter2"), "{told}");
        for secret in ["https://me:hunter2@collector:4318", "http://c:4318/?key=hunter2", "me:hunter2@c"] {
            let told = said(Kind::Http, secret);
            assert!(told.contains("OTEL_EXPORTER_OTLP_HEADERS") && !told.contains("hunter2"), "{told}");
        }
    }

    #[test]
    fn what_is_no_value_is_told_with_what_would_be_one() {
        assert_eq!(
            said(Kind::Servers, "http://x"),
            "\"http://x\" is no address of a NATS server, such as nats://127.0.0.1:4222"
        );
        for bad in
            ["collector:4318", "http://", "http:///v1", "grpc://c:4317", "http://c d", "http://:4318", "http://c:port"]
        {
            assert!(said(Kind::Http, bad).ends_with("is no address of an HTTP server, such as http://127.0.0.1:4318"));
        }
        assert!(Kind::Http.value(&["https://collector.example:4318/otlp".into()], None).is_ok());
        assert_eq!(said(Kind::Number(1, 9), "10"), "\"10\" is no whole number from 1 to 9");
        assert_eq!(
            said(Kind::Address, "localhost"),
            "\"localhost\" is no address: give a port such as 8080, or 127.0.0.1:8080"
        );
        assert_eq!(said(Kind::Word(&["text", "json"]), "xml"), "\"xml\" is none of text, json");
        assert_eq!(said(Kind::Path, ""), "a path is empty: name a file");
    }

    #[test]
    fn a_port_alone_is_on_the_loopback() {
        let value = Kind::Address.value(&["8080".into()], None).unwrap();
        assert_eq!(value, Value::Address("127.0.0.1:8080".parse().unwrap()));
        assert!(Kind::Address.value(&["[::1]:0".into()], None).is_ok());
    }

    #[test]
    fn several_servers_are_parted_by_commas() {
        assert!(Kind::Servers.value(&["nats://a:4222,tls://b:4222,c".into()], None).is_ok());
    }

    #[test]
    fn amounts_are_read_exactly() {
        assert_eq!(micros("2.50"), Ok(2_500_000));
        assert_eq!(micros("0.000001"), Ok(1));
        for bad in ["", "-1", "1.2.3", "1e3", "0.0000001", "99999999999999999999"] {
            assert!(micros(bad).is_err(), "{bad}");
        }
    }
}
