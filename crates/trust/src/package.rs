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
    pub fn prefix(&self) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_source_holds_only_what_is_below_it() {
        let sources = ["http://deb.example.org/debian/", "https://pkg.example.org:8443"]
            .map(|url| PackageSource::new(url).unwrap());
        let trusted = |url: &str| sources.iter().any(|source| source.holds(url));
        assert_eq!(
            sources.each_ref().map(PackageSource::prefix),
            ["http://deb.example.org/debian/", "https://pkg.example.org:8443/"]
        );
        for url in [
            "http://deb.example.org/debian/pool/main/k/kmod/kmod_30_amd64.deb",
            "HTTP://DEB.example.org:80/debian/pool/x.deb?arch=amd64",
            "http://deb.example.org/debian/pool/g%2b%2b_12.deb",
            "http://deb.example.org/debian",
            "https://pkg.example.org:8443/any/x.rpm",
        ] {
            assert!(trusted(url), "{url}");
        }
        for url in [
            "http://evil/debian/pool/",
            "http://deb.example.org.evil/debian/",
            "http://deb.example.org@evil/debian/",
            "http://evil@deb.example.org/debian/",
            "http://deb.example.org:80@evil/debian/",
            "http://deb.example.org/debian/../x",
            "http://deb.example.org/debian/%2e%2e/x",
            "http://deb.example.org/debian/%2E./x",
            "http://deb.example.org/debian/..%2fx",
            "http://deb.example.org/debian/%252e%252e/x",
            "http://deb.example.org/debian/..;/x",
            r"http://deb.example.org/debian/..\x",
            r"http://evil\@deb.example.org/debian/",
            "http://deb.example.org//debian/x",
            "http://deb.example.org/debian//x",
            "http://deb.example.org/debian-evil/x",
            "http://deb.example.org/Debian/x",
            "http://deb.example.org/",
            "http://deb.example.org?/debian/x",
            "http://deb.example.org#/debian/x",
            "https://deb.example.org/debian/x",
            "ftp://deb.example.org/debian/x",
            "http://deb.example.org:8080/debian/x",
            "http://deb.example.org:080x/debian/x",
            "http://deb.example.org:/debian/x",
            "http://evil/?u=http://deb.example.org/debian/x",
            "http://deb.example.org/debian/a b",
            "http://deb.example.org/debian/a\nb",
            "http:/deb.example.org/debian/x",
            "//deb.example.org/debian/x",
            "deb.example.org/debian/x",
            "deb.example.org:443",
            "https://pkg.example.org/any/x.rpm",
            "",
        ] {
            assert!(!trusted(url), "{url}");
        }
        for wrong in ["deb.example.org", "http://", "http://a@b/", "http://h/?x", "ftp://h/", "http://h/a/../b"] {
            assert!(PackageSource::new(wrong).is_err(), "{wrong}");
        }
    }
}
