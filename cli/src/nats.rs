//! A person at a NATS server: the same commands as on a data folder, and alerts sent to a running team.

use std::path::{Path, PathBuf};

use casebook_protocol::InvestigationId;
use casebook_runtime::nats::{self, Connection, NatsError};
use casebook_runtime::service::key::servers;
use clap::Args;

use crate::commands::investigate::{data_option, quoted};
use crate::failure::{Exit, Failure};
use crate::home::Home;

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
        nats::connect(&options).await.map_err(|e| failure(&e))
    }

    /// What is recorded: on the server where one is named, else in the data folder, which must be there.
    ///
    /// # Errors
    /// It cannot be reached or opened.
    pub async fn home(&self, data: &Path) -> Result<Home, Failure> {
        if self.nats.is_none() {
            return Home::existing(data);
        }
        let connection = self.connect("reader").await?;
        Ok(Home { folder: data.to_path_buf(), store: connection.env().store })
    }

    /// How an investigation that is not finished goes on, for a sentence.
    #[must_use]
    pub fn goes_on(&self, id: &InvestigationId, data: &Path) -> String {
        let Some(url) = &self.nats else {
            return format!("`casebook resume {id}{}` goes on with it", data_option(data));
        };
        let path = |path: &PathBuf| quoted(&path.display().to_string());
        let credentials = self.credentials.as_ref().map(|file| format!(" --credentials {}", path(file)));
        let ca = self.ca.as_ref().map(|file| format!(" --ca {}", path(file)));
        format!(
            "the team at {url} works on it; `casebook watch {id} --nats {url}{}{}` shows how",
            credentials.unwrap_or_default(),
            ca.unwrap_or_default()
        )
    }

    /// Where that is, in words.
    #[must_use]
    pub fn place(&self, data: &Path) -> String {
        self.nats.clone().unwrap_or_else(|| data.display().to_string())
    }
}

/// What a failure at the server is to a person.
#[must_use]
pub fn failure(error: &NatsError) -> Failure {
    let advice = match error {
        NatsError::Connect { .. } => "see that the server runs and lets us in: --nats, --credentials, --ca",
        NatsError::File { .. } => "name a file that holds it",
        NatsError::Failed { .. } => {
            "see that a Hub is there (`casebook cluster`, or casebook-hub), and whose file `--credentials` names"
        }
        NatsError::Old { .. } | NatsError::Unfit { .. } | NatsError::Different(_) => "",
    };
    let exit = if matches!(error, NatsError::File { .. }) { Exit::Usage } else { Exit::Failed };
    Failure { exit, what: error.to_string(), advice: advice.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

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
