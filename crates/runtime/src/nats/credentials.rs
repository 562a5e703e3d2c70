//! Files with credentials. They are read for each connection, so that a changed file takes effect without a restart.

use std::path::Path;

use async_nats::Auth;
use nkeys::KeyPair;

use super::NatsError;

const JWT: &str = "BEGIN NATS USER JWT";
const SEED: &str = "BEGIN USER NKEY SEED";

fn file(path: &Path, reason: impl ToString) -> NatsError {
    NatsError::File { path: path.display().to_string(), reason: reason.to_string() }
}

fn read(path: &Path) -> Result<String, NatsError> {
    let text = std::fs::read_to_string(path);
    text.map(|text| text.trim().to_owned()).map_err(|e| file(path, e))
}

/// The user in a file of the form `user:password`.
pub(super) fn user(path: &Path) -> Result<Option<String>, NatsError> {
    let text = read(path)?;
    Ok(text.split_once(':').filter(|_| !text.contains(JWT)).map(|(user, _)| user.to_owned()))
}

/// What a client sends to a server that asks with `nonce`.
pub(super) fn auth(path: &Path, nonce: &[u8]) -> Result<Auth, NatsError> {
    let text = read(path)?;
    let mut auth = Auth::new();
    let signed = |seed: &str| {
        let pair = KeyPair::from_seed(seed).map_err(|e| file(path, e))?;
        let signature = pair.sign(nonce).map_err(|e| file(path, e))?;
        Ok((pair.public_key(), signature))
    };
    if text.contains(JWT) {
        // The line below a heading.
        let below = |heading: &str| text.lines().skip_while(|line| !line.contains(heading)).nth(1).map(str::trim);
        let (Some(jwt), Some(seed)) = (below(JWT), below(SEED)) else {
            return Err(file(path, "expected a .creds file with a JWT and the seed of an nkey"));
        };
        auth.jwt = Some(jwt.to_owned());
        auth.signature = Some(signed(seed)?.1);
    } else if let Some((user, password)) = text.split_once(':') {
        auth.username = Some(user.to_owned());
        auth.password = Some(password.to_owned());
    } else if text.starts_with("SU") {
        let (key, signature) = signed(&text)?;
        (auth.nkey, auth.signature) = (Some(key), Some(signature));
    } else {
        return Err(file(path, "expected `user:password`, the seed of an nkey or a .creds file"));
    }
    Ok(auth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_credentials_is_read_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hub");
        let of = |text: &str| {
            std::fs::write(&path, text).unwrap();
            auth(&path, b"nonce")
        };
        let error = of("nothing").map(drop).unwrap_err().to_string();
        assert!(error.contains("hub: expected `user:password`"), "{error}");
        let found = of("hub:one:two\n").unwrap();
        assert_eq!((found.username.as_deref(), found.password.as_deref()), (Some("hub"), Some("one:two")));
        assert_eq!(user(&path).unwrap().as_deref(), Some("hub"));
        let pair = KeyPair::new_user();
        let seed = pair.seed().unwrap();
        let found = of(&seed).unwrap();
        assert_eq!(found.nkey, Some(pair.public_key()));
        pair.verify(b"nonce", &found.signature.unwrap()).unwrap();
        let creds = format!(
            "-----BEGIN NATS USER JWT-----\nabc.def\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        let found = of(&creds).unwrap();
        assert_eq!((found.jwt.as_deref(), found.nkey), (Some("abc.def"), None));
        pair.verify(b"nonce", &found.signature.unwrap()).unwrap();
        assert_eq!(user(&path).unwrap(), None);
        assert!(of("-----BEGIN NATS USER JWT-----\nabc").is_err());
    }
}
