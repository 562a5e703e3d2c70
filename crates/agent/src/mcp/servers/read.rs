use std::collections::BTreeMap;
use std::path::PathBuf;

use casebook_runtime::config::Check;
use secrecy::SecretString;

use super::fill::fill;
use super::raw::{Scalar, Server};
use super::{Variable, Way};

pub(super) fn way(server: &Server, variable: Variable<'_>, check: &mut Check) -> Option<Way> {
    check_transport("type", server.r#type.as_deref(), server.command.is_some(), check);
    check_transport("transport", server.transport.as_deref(), server.command.is_some(), check);
    let urls = [("url", &server.url), ("serverUrl", &server.server_url), ("httpUrl", &server.http_url)];
    let urls: Vec<_> = urls.into_iter().filter_map(|(key, url)| url.as_ref().map(|url| (key, url))).collect();
    let mut filler = Filler { variable, check };
    match (&server.command, &urls[..]) {
        (Some(command), []) => return child(&mut filler, server, command),
        (None, [(key, url)]) => return http(&mut filler, server, key, url),
        (None, []) => {
            let what = "expected command or url; write \"command\": \"npx\" or \"url\": \"https://…\"";
            check.wrong(&[], what);
        }
        (Some(_), [(key, _), ..]) => check.wrong(&[key], "is beside command; leave one of the two out"),
        (None, [_, (key, _), ..]) => check.wrong(&[key], "is a second address; leave one of them out"),
    }
    None
}

fn check_transport(key: &str, given: Option<&str>, is_child: bool, check: &mut Check) {
    let fits = match given.map(str::to_lowercase).as_deref() {
        None => return,
        Some("sse") => {
            let what = "the old SSE transport is not supported; write \"http\" and the server's address for \
                        streamable HTTP, which often ends in /mcp instead of /sse";
            return check.wrong(&[key], what);
        }
        Some("stdio") => is_child,
        Some("http" | "streamable-http" | "streamablehttp" | "streamable_http") => !is_child,
        Some(_) => return check.wrong(&[key], "expected stdio or http; write one of these, or leave it out"),
    };
    if !fits {
        let what = if is_child { "a command is reached over stdio" } else { "an address is reached over http" };
        check.wrong(&[key], format!("{what}; leave this out"));
    }
}

fn child(filler: &mut Filler<'_>, server: &Server, command: &str) -> Option<Way> {
    if server.headers.is_some() {
        filler.check.wrong(&["headers"], "only a server with a url has headers; leave them out");
    }
    let command = filler.text(&["command"], command);
    if command.as_ref().is_some_and(|command| command.trim().is_empty()) {
        filler.check.wrong(&["command"], "is empty; write the name of a program");
    }
    let args = server.args.iter().flatten().enumerate();
    let args: Vec<_> = args.map(|(n, Scalar(arg))| filler.text(&["args", &n.to_string()], arg)).collect();
    let mut env = BTreeMap::new();
    for (name, value) in server.env.iter().flatten() {
        if name.is_empty() || name.contains(['=', '\0']) {
            filler.check.wrong(&["env", name], "expected the name of a variable; rename it");
        }
        // A null removes a variable, but a child has none of ours.
        if let Some(value) = value.as_ref().and_then(|Scalar(value)| filler.text(&["env", name], value)) {
            env.insert(name.clone(), SecretString::from(value));
        }
    }
    let cwd = server.cwd.as_ref().and_then(|cwd| filler.text(&["cwd"], cwd)).map(PathBuf::from);
    Some(Way::Child { command: command?, args: args.into_iter().collect::<Option<_>>()?, env, cwd })
}

fn http(filler: &mut Filler<'_>, server: &Server, key: &str, url: &str) -> Option<Way> {
    let child = [("args", server.args.is_some()), ("env", server.env.is_some()), ("cwd", server.cwd.is_some())];
    for (key, _) in child.into_iter().filter(|(_, there)| *there) {
        filler.check.wrong(&[key], "only a server with a command has this; leave it out");
    }
    let url = filler.text(&[key], url)?;
    if let Err(what) = address(&url) {
        filler.check.wrong(&[key], what);
    }
    let mut headers = BTreeMap::new();
    for (name, Scalar(value)) in server.headers.iter().flatten() {
        if !is_header(name) {
            filler.check.wrong(&["headers", name], "expected the name of a header; write one such as Authorization");
        }
        let Some(value) = filler.text(&["headers", name], value) else { continue };
        if value.chars().any(char::is_control) {
            let what = "its value has a line end or another control character; leave it out";
            filler.check.wrong(&["headers", name], what);
        }
        headers.insert(name.clone(), SecretString::from(value));
    }
    Some(Way::Http { url, headers })
}

/// True if HTTP accepts `name` as the name of a header.
pub(crate) fn is_header(name: &str) -> bool {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(token)
}

fn address(url: &str) -> Result<(), &'static str> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err("expected a whole address; write one such as https://host/mcp");
    };
    if !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()) {
        return Err("expected the address of a web server; write one that begins with https:// or http://");
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return Err("has a user or password in it; write an Authorization header under headers instead");
    }
    if url.contains(|c: char| c.is_whitespace() || c.is_control()) || reqwest::Url::parse(url).is_err() {
        return Err("expected an address; write one such as https://host/mcp");
    }
    Ok(())
}

struct Filler<'a> {
    variable: Variable<'a>,
    check: &'a mut Check,
}

impl Filler<'_> {
    fn text(&mut self, key: &[&str], text: &str) -> Option<String> {
        match fill(text, self.variable) {
            Ok(text) if text.contains('\0') => self.check.wrong(key, "has a NUL character in it; leave it out"),
            Ok(text) => return Some(text),
            Err(faults) => faults.into_iter().for_each(|what| self.check.wrong(key, what)),
        }
        None
    }
}
