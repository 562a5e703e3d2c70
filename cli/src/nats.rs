//! The options that name a NATS server, and the connection to it.

use std::path::PathBuf;

use casebook_runtime::nats::{self, Connection};
use casebook_runtime::service::common::servers;
use clap::Args;

use crate::failure::Failure;

/// Where the NATS server is, and who we are to it.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "NATS (a team of processes in place of the data folder)")]
pub struct Nats {
    /// The server, such as nats://127.0.0.1:4222; several of a cluster parted by commas
    #[arg(long, value_name = "URL", env = "CASEBOOK_NATS", hide_env_values = true)]
    pub nats: Option<String>,
    /// The file that says who we are: user:password, a seed, or a .creds file
    #[arg(long, value_name = "FILE", env = "CASEBOOK_NATS_CREDENTIALS")]
    pub credentials: Option<PathBuf>,
    /// The certificate of the authority that signed the server's
    #[arg(long, value_name = "FILE", env = "CASEBOOK_NATS_CA")]
    pub ca: Option<PathBuf>,
    /// Our certificate, where the server asks for one
    #[arg(long, value_name = "FILE", env = "CASEBOOK_NATS_CERT", requires = "key")]
    pub cert: Option<PathBuf>,
    /// The key of our certificate
    #[arg(long, value_name = "FILE", env = "CASEBOOK_NATS_KEY", requires = "cert")]
    pub key: Option<PathBuf>,
}

impl Nats {
    /// Connects as `user` unless the credentials name another.
    ///
    /// # Errors
    /// No server was named, or more than its address, or it cannot be worked with.
    pub async fn connect(&self, user: &str) -> Result<Connection, Failure> {
        let Some(url) = &self.nats else {
            return Err(Failure::usage("no NATS server is named", "name it with --nats URL or CASEBOOK_NATS"));
        };
        // Hints and errors name the server as it is given here.
        let advice = "write --nats nats://HOST:PORT, or tls://; a user and password go into a file: --credentials FILE";
        servers(url).map_err(|what| Failure::usage(what, advice))?;
        let options = nats::Options {
            url: url.clone(),
            credentials: self.credentials.clone(),
            ca: self.ca.clone(),
            cert: self.cert.clone(),
            key: self.key.clone(),
            user: user.to_owned(),
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
