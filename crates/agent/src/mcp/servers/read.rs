//! One server: what is written of it, checked and filled in.

use std::collections::BTreeMap;
use std::path::PathBuf;

use secrecy::SecretString;

use super::Way;
use super::fill::fill;
use super::raw::{Scalar, Server};
use crate::document::Document;
use crate::fault::ConfigFault;

type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Where in which file a server stands.
pub(super) struct Place<'a> {
    pub(super) document: &'a Document,
    pub(super) path: Vec<&'a str>,
}

impl Place<'_> {
    pub(super) fn fault(&self, key: &[&str], what: impl std::fmt::Display) -> ConfigFault {
        self.document.fault(&[&self.path[..], key].concat(), what)
    }
}

/// How the server at `at` is reached.
pub(super) fn way(at: &Place<'_>, server: &Server, variable: Variable<'_>) -> Result<Way, Vec<ConfigFault>> {
    let mut faults = said(at, server);
    let mut filler = Filler { at, variable, faults: &mut faults };
    let urls = [("url", &server.url), ("serverUrl", &server.server_url), ("httpUrl", &server.http_url)];
    let urls: Vec<_> = urls.into_iter().filter_map(|(key, url)| url.as_ref().map(|url| (key, url))).collect();
    let way = match (&server.command, &urls[..]) {
        (Some(command), []) => child(&mut filler, server, command),
        (None, [(key, url)]) => http(&mut filler, server, key, url),
        (None, []) => {
            filler.fault(&[], "says neither command nor url: write \"command\": \"npx\" or \"url\": \"https://…\"");
            None
        }
        (Some(_), [(key, _), ..]) => {
            filler.fault(&[key], "stands beside command: leave one of the two out");
            None
        }
        (None, [_, (key, _), ..]) => {
            filler.fault(&[key], "is a second address: leave one of them out");
            None
        }
    };
    match way {
        Some(way) if faults.is_empty() => Ok(way),
        _ => Err(faults),
    }
}

/// What is wrong with what the server says of how it is reached.
fn said(at: &Place<'_>, server: &Server) -> Vec<ConfigFault> {
    let is_child = server.command.is_some();
    let check = |key: &str, said: &Option<String>| {
        let said = said.as_ref()?;
        let fits = match said.to_lowercase().as_str() {
            "sse" => {
                let what = "the old SSE transport is not supported: write \"http\" and the server's address for \
                     streamable HTTP, which often ends in /mcp instead of /sse";
                return Some(at.fault(&[key], what));
            }
            "stdio" => is_child,
            "http" | "streamable-http" | "streamablehttp" | "streamable_http" => !is_child,
            _ => return Some(at.fault(&[key], "is none of stdio and http: write one of these, or leave it out")),
        };
        let what = if is_child { "a command is reached over stdio" } else { "an address is reached over http" };
        (!fits).then(|| at.fault(&[key], format!("{what}: leave this out")))
    };
    [check("type", &server.r#type), check("transport", &server.transport)].into_iter().flatten().collect()
}

fn child(filler: &mut Filler<'_>, server: &Server, command: &str) -> Option<Way> {
    for (key, there) in [("headers", server.headers.is_some())] {
        if there {
            filler.fault(&[key], "only a server with a url has headers: leave them out");
        }
    }
    let command = filler.text(&["command"], command);
    if command.as_ref().is_some_and(|command| command.trim().is_empty()) {
        filler.fault(&["command"], "is empty: write the name of a program");
    }
    let args = server.args.iter().flatten().enumerate();
    let args: Vec<_> = args.map(|(n, arg)| filler.text(&["args", &n.to_string()], &arg.text())).collect();
    let mut env = BTreeMap::new();
    for (name, value) in server.env.iter().flatten() {
        if name.is_empty() || name.contains(['=', '\0']) {
            filler.fault(&["env", name], "is no name of a variable: rename it");
        }
        // A null takes a variable away, and ours has none to take away.
        if let Some(value) = value.as_ref().and_then(|value| filler.text(&["env", name], &value.text())) {
            env.insert(name.clone(), SecretString::from(value));
        }
    }
    let cwd = server.cwd.as_ref().and_then(|cwd| filler.text(&["cwd"], cwd)).map(PathBuf::from);
    Some(Way::Child { command: command?, args: args.into_iter().collect::<Option<_>>()?, env, cwd })
}

fn http(filler: &mut Filler<'_>, server: &Server, key: &str, url: &str) -> Option<Way> {
    let child = [("args", server.args.is_some()), ("env", server.env.is_some()), ("cwd", server.cwd.is_some())];
    for (key, _) in child.into_iter().filter(|(_, there)| *there) {
        filler.fault(&[key], "only a server with a command has this: leave it out");
    }
    let url = filler.text(&[key], url)?;
    if let Err(what) = address(&url) {
        filler.fault(&[key], what);
    }
    let headers = headers(filler, server.headers.iter().flatten());
    Some(Way::Http { url, headers })
}

fn headers<'a>(
    filler: &mut Filler<'_>,
    written: impl Iterator<Item = (&'a String, &'a Scalar)>,
) -> BTreeMap<String, SecretString> {
    let mut headers = BTreeMap::new();
    for (name, value) in written {
        if !is_header(name) {
            filler.fault(&["headers", name], "is no name of a header: write one such as Authorization");
        }
        let Some(value) = filler.text(&["headers", name], &value.text()) else { continue };
        if value.chars().any(char::is_control) {
            filler.fault(&["headers", name], "its value has a line end or another control character: leave it out");
        }
        headers.insert(name.clone(), SecretString::from(value));
    }
    headers
}

/// `name` is what HTTP takes as the name of a header.
pub(crate) fn is_header(name: &str) -> bool {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(token)
}

/// Whether `url` is an address that a request can be sent to.
fn address(url: &str) -> Result<(), &'static str> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err("is no whole address: write one such as https://host/mcp");
    };
    if !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()) {
        return Err("is no address of a web server: write one that begins with https:// or http://");
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return Err("has a user or password in it: write an Authorization header under headers instead");
    }
    if url.contains(|c: char| c.is_whitespace() || c.is_control()) || reqwest::Url::parse(url).is_err() {
        return Err("is no address: write one such as https://host/mcp");
    }
    Ok(())
}

/// Fills variables in, and keeps what is wrong.
struct Filler<'a> {
    at: &'a Place<'a>,
    variable: Variable<'a>,
    faults: &'a mut Vec<ConfigFault>,
}

impl Filler<'_> {
    fn fault(&mut self, key: &[&str], what: impl std::fmt::Display) {
        self.faults.push(self.at.fault(key, what));
    }

    fn text(&mut self, key: &[&str], text: &str) -> Option<String> {
        match fill(text, self.variable) {
            Ok(text) if text.contains('\0') => self.fault(key, "has a NUL character in it: leave it out"),
            Ok(text) => return Some(text),
            Err(faults) => faults.into_iter().for_each(|what| self.fault(key, what)),
        }
        None
    }
}
