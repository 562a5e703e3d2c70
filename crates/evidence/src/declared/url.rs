//! Addresses of packages. They come from logs, so a form that programs may read differently is not accepted.

/// The address of a package source. It holds an address with the same scheme, host and port, below its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSource(Address);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Address {
    scheme: String,
    host: String,
    port: u16,
    path: Vec<String>,
}

impl PackageSource {
    /// Errors: What the address must look like.
    pub fn new(url: &str) -> Result<Self, &'static str> {
        let expected = "expected the address of a package source; write one such as http://deb.example.org/debian/";
        if url.contains(['?', '#']) {
            return Err(expected);
        }
        address(url).map(Self).ok_or(expected)
    }

    /// The address with a slash at its end, so that it is a prefix of the addresses that it holds.
    pub(crate) fn prefix(&self) -> String {
        let Self(Address { scheme, host, port, path }) = self;
        let port = if matches!((scheme.as_str(), port), ("http", 80) | ("https", 443)) {
            String::new()
        } else {
            format!(":{port}")
        };
        let path: String = path.iter().map(|step| format!("{step}/")).collect();
        format!("{scheme}://{host}{port}/{path}")
    }

    pub fn holds(&self, url: &str) -> bool {
        let Self(own) = self;
        // A query is not part of the path.
        let path = url.split(['?', '#']).next().unwrap_or_default();
        address(path).is_some_and(|other| {
            (&other.scheme, &other.host, other.port) == (&own.scheme, &own.host, own.port)
                && other.path.starts_with(&own.path)
        })
    }
}

fn address(url: &str) -> Option<Address> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let usual = match scheme.as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (host, port.parse().ok()?),
        Some(_) => return None,
        None => (authority, usual),
    };
    // A host has no user before it, and no brackets or escapes.
    if host.is_empty() || !host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_')) {
        return None;
    }
    let path = path.strip_suffix('/').unwrap_or(path);
    let steps: Vec<String> = if path.is_empty() { Vec::new() } else { path.split('/').map(str::to_owned).collect() };
    steps.iter().all(|step| plain(step)).then(|| Address { scheme, host: host.to_ascii_lowercase(), port, path: steps })
}

/// True if the part of a path is not empty, does not go up, and no reader could find another separator in it.
fn plain(step: &str) -> bool {
    let lower = step.to_ascii_lowercase();
    let escaped = ["%2e", "%2f", "%5c", "%25", "%00"];
    !matches!(step, "" | "." | "..")
        && !step.contains(|c: char| c == '\\' || c == ';' || c.is_whitespace() || c.is_control())
        && !escaped.iter().any(|escape| lower.contains(escape))
}
