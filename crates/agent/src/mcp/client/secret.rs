//! Secrets of a server, and their removal from texts.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

use super::Reach;
use crate::mcp::servers::host;

impl fmt::Debug for Reach {
    /// Omits what may be secret: arguments, values, and everything in an address except the host.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |all: &[(String, SecretString)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        match self {
            Self::Child { program, args, env, cwd } => f
                .debug_struct("Child")
                .field("program", program)
                .field("args", &args.len())
                .field("env", &names(env))
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, headers } => {
                f.debug_struct("Http").field("host", &host(url)).field("headers", &names(headers)).finish()
            }
        }
    }
}

/// The secrets of a server, which no message may contain. An address may contain a key.
pub(super) fn secrets(reach: &Reach) -> Vec<SecretString> {
    match reach {
        Reach::Child { env, args, .. } => {
            env.iter().map(|(_, value)| value.clone()).chain(secret_arguments(args)).collect()
        }
        Reach::Http { url, headers } => {
            let query = url.split_once('?').map(|(_, query)| SecretString::from(query.to_owned()));
            // Some servers have a key in the path of their address.
            let path = url.split(['/', '?']).skip(3).filter(|part| part.len() >= 16);
            let query = query.into_iter().chain(path.map(|part| SecretString::from(part.to_owned())));
            let values = headers.iter().map(|(_, value)| value.clone());
            // Some servers repeat `Bearer KEY` as KEY.
            let words = headers.iter().filter_map(|(_, value)| value.expose_secret().rsplit_once(' '));
            let words = words.map(|(_, word)| SecretString::from(word.to_owned()));
            values.chain(words).chain(query).collect()
        }
    }
}

fn secret_arguments(args: &[String]) -> impl Iterator<Item = SecretString> + '_ {
    let named = |flag: &str| {
        let flag = flag.to_lowercase();
        flag.starts_with('-')
            && ["key", "token", "secret", "pass", "auth", "cred"].iter().any(|part| flag.contains(part))
    };
    let apart = args.windows(2).filter_map(move |pair| match pair {
        [flag, value] if named(flag) && !flag.contains('=') => Some(value.as_str()),
        _ => None,
    });
    let joined = args.iter().filter_map(move |arg| arg.split_once('=').filter(|(flag, _)| named(flag)).map(|(_, v)| v));
    apart.chain(joined).map(|value| SecretString::from(value.to_owned()))
}

pub(super) fn without(text: &str, secrets: &[SecretString]) -> String {
    let mut clean = text.to_owned();
    for secret in secrets.iter().map(ExposeSecret::expose_secret) {
        // A secret with several lines may be repeated line by line.
        for part in std::iter::once(secret).chain(secret.lines()).filter(|part| part.len() >= 4) {
            clean = clean.replace(part, "…");
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_server_is_reached_is_shown_without_what_is_secret() {
        let value = |name: &str| vec![(name.to_owned(), SecretString::from("hunter2"))];
        let args = ["--key", "hunter2", "--token=hunter2", "hunter2"].map(str::to_owned).to_vec();
        let child = Reach::Child { program: "npx".into(), args, env: value("TOKEN"), cwd: None };
        assert_eq!(format!("{child:?}"), r#"Child { program: "npx", args: 4, env: ["TOKEN"], cwd: None }"#);
        for url in ["https://h:8/hunter2/mcp?key=hunter2#hunter2", "https://h:8?hunter2", "https://u:hunter2@h:8"] {
            let http = Reach::Http { url: url.into(), headers: value("Authorization") };
            assert_eq!(format!("{http:?}"), r#"Http { host: Some("h:8"), headers: ["Authorization"] }"#);
        }
    }
}
