//! Keys of models: read once at the start, and never printed.

use std::path::Path;

use secrecy::{ExposeSecret, SecretString};

use crate::model::config::{KeySource, Profile};

/// The largest accepted key file. A wrong path may lead to a large file.
const MAX_KEY_BYTES: u64 = 16 * 1024;

const REDACTED: &str = "[key]";

/// A missing key. The fault names its place, never its content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("model {model:?}: {fault}")]
pub struct NoKey {
    pub model: String,
    pub fault: String,
}

/// The key of `profile`; none for a keyless server. `env` looks up an environment variable.
pub fn key(profile: &Profile, env: impl Fn(&str) -> Option<String>) -> Result<Option<SecretString>, NoKey> {
    let none = |fault: String| NoKey { model: profile.name.clone(), fault };
    let (text, place) = match &profile.key {
        KeySource::Keyless => return Ok(None),
        KeySource::Env(name) => {
            let text = env(name).ok_or_else(|| {
                none(format!(
                    "expected its key in the environment variable {name}, which is not set; set it, or change key_env"
                ))
            })?;
            (text, format!("the environment variable {name}"))
        }
        KeySource::File(path) => {
            let text = read(Path::new(path)).map_err(|why| {
                none(format!("expected its key in the file {path}, {why}; put the key there, or change key_file"))
            })?;
            (text, format!("the file {path}"))
        }
    };
    let key = text.trim();
    if key.is_empty() {
        return Err(none(format!("{place} is empty; put the key there")));
    }
    if !key.chars().all(|c| c.is_ascii_graphic()) {
        return Err(none(format!("{place} does not contain a key; a key is one word of ASCII characters")));
    }
    Ok(Some(SecretString::from(key.to_owned())))
}

fn read(path: &Path) -> Result<String, String> {
    let size = std::fs::metadata(path).map_err(|error| format!("which cannot be read ({error})"))?.len();
    if size > MAX_KEY_BYTES {
        return Err(format!("which has {size} bytes, too many for a key"));
    }
    std::fs::read_to_string(path).map_err(|error| format!("which cannot be read ({error})"))
}

pub fn redact(text: &str, key: Option<&SecretString>) -> String {
    match key {
        Some(key) => text.replace(key.expose_secret(), REDACTED),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::config::Config;

    fn profile(key: &str) -> Profile {
        let text = format!("[models.m]\nprovider = \"openai\"\nmodel = \"x\"\nwindow = 4096\n{key}\n");
        Config::parse("f", &text).unwrap().model("m").unwrap().clone()
    }

    #[test]
    fn a_key_comes_from_the_environment_or_a_file_without_its_line_end() {
        let env = key(&profile("key_env = \"K\""), |name| (name == "K").then(|| "hunter2".to_owned()));
        assert_eq!(env.unwrap().unwrap().expose_secret(), "hunter2");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hunter3\n").unwrap();
        let from = profile(&format!("key_file = {:?}", file.path()));
        assert_eq!(key(&from, |_| None).unwrap().unwrap().expose_secret(), "hunter3");
    }

    #[test]
    fn what_is_missing_is_named_and_what_is_there_is_not() {
        let check = |got: Result<Option<SecretString>, NoKey>, wants: &[&str]| {
            let got = got.expect_err("there is no key").to_string();
            for want in wants {
                assert!(got.contains(want), "{want:?} is not in {got:?}");
            }
            assert!(!got.contains("hunter2"), "{got}");
        };
        let env = profile("key_env = \"MY_KEY\"");
        check(key(&env, |_| None), &["\"m\"", "MY_KEY", "not set"]);
        check(key(&env, |_| Some("  ".into())), &["MY_KEY is empty"]);
        check(key(&env, |_| Some("hunter2 hunter2".into())), &["MY_KEY", "does not contain a key"]);
        check(key(&profile("key_file = \"/no/such/file\""), |_| None), &["\"m\"", "/no/such/file", "cannot be read"]);
    }

    #[test]
    fn a_key_is_not_printed() {
        let env = key(&profile("key_env = \"K\""), |_| Some("hunter2".into())).unwrap();
        assert!(!format!("{env:?}").contains("hunter2"));
        assert_eq!(redact("Incorrect key: hunter2.", env.as_ref()), "Incorrect key: [key].");
    }
}
