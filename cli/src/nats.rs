//! The options for a connection to a NATS server.

use std::path::PathBuf;

use casebook_runtime::nats::{self, Connection};
use casebook_runtime::service::common::servers;
use clap::Args;

use crate::failure::Failure;

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "NATS (use a team of processes instead of the data folder)")]
pub struct Nats {
    /// The server, such as nats://127.0.0.1:4222; separate several servers of a cluster by commas
    #[arg(long, value_name = "URL", env = "CASEBOOK_NATS", hide_env_values = true)]
    pub nats: Option<String>,
    /// The file with our credentials: user:password, a seed, or a .creds file
    #[arg(long, value_name = "FILE", env = "CASEBOOK_NATS_CREDENTIALS")]
    pub credentials: Option<PathBuf>,
    /// The certificate of the authority that signed the server's certificate
    #[arg(long, value_name = "FILE", env = "CASEBOOK_NATS_CA")]
    pub ca: Option<PathBuf>,
    /// Our certificate, if the server requires one
    #[arg(long, value_name = "FILE", env = "CASEBOOK_NATS_CERT", requires = "key")]
    pub cert: Option<PathBuf>,
    /// The key of our certificate
    #[arg(long, value_name = "FILE", env = "CASEBOOK_NATS_KEY", requires = "cert")]
    pub key: Option<PathBuf>,
    /// The key that signs what Hubs write; with it, what no Hub wrote is skipped and reported
    #[arg(long, value_name = "FILE", env = "CASEBOOK_MAC_KEY_FILE")]
    pub mac_key_file: Option<PathBuf>,
}

impl Nats {
    /// Connects as `user`, unless the credentials name another user.
    pub async fn connect(&self, user: &str) -> Result<Connection, Failure> {
        let Some(url) = &self.nats else {
            return Err(Failure::usage("no NATS server given", "name it with --nats URL or CASEBOOK_NATS"));
        };
        // The address is repeated in hints and errors, so it must not contain a password.
        let advice =
            "write --nats nats://HOST:PORT or tls://HOST:PORT; put user and password into a file: --credentials FILE";
        servers(url).map_err(|what| Failure::usage(what, advice))?;
        let options = nats::Options {
            url: url.clone(),
            credentials: self.credentials.clone(),
            ca: self.ca.clone(),
            cert: self.cert.clone(),
            key: self.key.clone(),
            user: user.to_owned(),
            mac_key: self.mac_key_file.clone(),
        };
        Ok(nats::connect(&options).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    #[tokio::test]
    async fn a_password_in_the_address_of_a_server_is_refused_and_not_repeated() {
        for url in ["nats://reader:hunter2@127.0.0.1:1", "nats://a:4222,reader:hunter2@b"] {
            let named = Nats { nats: Some(url.into()), ..Nats::default() };
            let failure = named.connect("reader").await.map(drop).unwrap_err();
            let said = format!("{} {}", failure.what, failure.advice);
            assert!(failure.exit == Exit::Usage && said.contains("--credentials FILE"), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
}
