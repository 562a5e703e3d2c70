//! The users of a team's server. Each has a random password, in a file that only the owner of the data folder
//! can read, and the permissions of its role.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use casebook_protocol::hash::hex;
use casebook_protocol::subject::Queue;
use casebook_protocol::{Domain, Role};
use casebook_runtime::nats::permit::{User, accounts};
use casebook_runtime::random::random;
use tempfile::NamedTempFile;

use super::Place;
use crate::failure::Failure;

/// Bytes of a password.
const CHANCE: usize = 24;
/// Bytes of the key of what Hubs write.
const KEY: usize = 32;

pub fn users(domains: &[Domain]) -> Vec<User> {
    let experts: BTreeSet<&Domain> = domains.iter().collect();
    let experts = experts.into_iter().map(|domain| Queue::new(Role::Expert, Some(domain)));
    let queues = [Queue::new(Role::Director, None), Queue::new(Role::Critic, None)].into_iter().chain(experts);
    [User::Hub, User::Publisher, User::Reader, User::Integration].into_iter().chain(queues.map(User::Worker)).collect()
}

/// Writes the server's configuration, creates missing password files and the key of the Hubs, and returns the path of the
/// configuration.
pub fn prepare(place: &Place, domains: &[Domain]) -> Result<PathBuf, Failure> {
    let folder = place.folder.join("users");
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.map_err(|e| Failure::write(&folder, &e))?;
    mac_key(place)?;
    let mut known = Vec::new();
    for user in users(domains) {
        let password = password(place, &user.name())?;
        known.push((user, format!("\"{password}\"")));
    }
    let text = format!(
        "# Written by `casebook cluster` at each start.\njetstream {{ sync_interval: always }}\n{}",
        accounts(&known)
    );
    let path = place.folder.join("nats.conf");
    secret(&path, &text)?;
    Ok(path)
}

/// The password of `user`, created if it is missing.
fn password(place: &Place, user: &str) -> Result<String, Failure> {
    let path = place.user(user);
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some((name, password)) = known.trim().split_once(':')
        && (name, password.len()) == (user, 2 * CHANCE)
        && password.bytes().all(|b| b.is_ascii_hexdigit())
    {
        return Ok(password.to_owned());
    }
    let password = hex(&random::<CHANCE>().map_err(|e| Failure::random(&e))?);
    secret(&path, &format!("{user}:{password}\n"))?;
    Ok(password)
}

/// Creates the key of what Hubs write, if it is missing.
fn mac_key(place: &Place) -> Result<(), Failure> {
    let path = place.mac_key();
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    if known.trim().len() == 2 * KEY {
        return Ok(());
    }
    let key = random::<KEY>().map_err(|e| Failure::random(&e))?;
    secret(&path, &format!("{}\n", hex(&key)))
}

/// Writes a file atomically that only its owner can read.
fn secret(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::write(path, &e);
    // `NamedTempFile` creates files with mode 0600.
    let mut file = NamedTempFile::new_in(path.parent().unwrap_or(path)).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    file.persist(path).map(drop).map_err(|e| failed(e.error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn passwords_are_kept_apart_private_and_over_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::open(folder.path()).unwrap();
        let domains = ["cloud", "network"].map(|d| Domain::new(d).unwrap());
        let config = prepare(&place, &domains).unwrap();
        let first = std::fs::read_to_string(&config).unwrap();
        let mut passwords = BTreeSet::new();
        for user in
            ["hub", "director", "critic", "expert-cloud", "expert-network", "publisher", "reader", "integration"]
        {
            let path = place.user(user);
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            let text = std::fs::read_to_string(&path).unwrap();
            let (name, password) = text.trim().split_once(':').unwrap();
            assert!(name == user && first.contains(password));
            assert!(passwords.insert(password.to_owned()), "no two users share a password");
        }
        assert_eq!(std::fs::metadata(&config).unwrap().permissions().mode() & 0o777, 0o600);
        prepare(&place, &domains).unwrap();
        assert_eq!(std::fs::read_to_string(&config).unwrap(), first);
        std::fs::write(place.user("hub"), "hub:short").unwrap();
        prepare(&place, &domains).unwrap();
        assert_ne!(std::fs::read_to_string(&config).unwrap(), first, "a file that was spoilt is made anew");
    }

    #[test]
    fn two_teams_do_not_share_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let first = Place::open(folder.path()).unwrap();
        let error = Place::open(folder.path()).unwrap_err();
        assert!(error.what.contains("a team already runs in ") && error.advice.contains("--data"), "{error}");
        drop(first);
        assert!(Place::open(folder.path()).is_ok());
    }
}
