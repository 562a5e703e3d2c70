//! A real NATS server for a test, found or installed, in a folder of its own.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use casebook_cli::cluster::server::{self, Server};
use casebook_cli::cluster::users;
use casebook_protocol::Domain;
use casebook_runtime::nats;
use casebook_runtime::nats::permit::{User, authorization};

use crate::thirdparty;

/// A NATS server of this process, which can be killed and started again. It ends with this value.
pub struct Broker {
    folder: PathBuf,
    config: PathBuf,
    server: Server,
}

impl Broker {
    /// Starts a server with its store in `folder`. Without a configuration, it lets anyone do anything, and
    /// syncs each append to the disk before it acknowledges it. Blocks.
    ///
    /// # Errors
    /// Why there is no server.
    pub fn start(folder: &Path, config: Option<PathBuf>) -> Result<Self, String> {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let config = match config {
            Some(config) => config,
            None => {
                let config = folder.join("nats-server.conf");
                let written = std::fs::write(&config, "jetstream { sync_interval: always }\n");
                written.map_err(|e| format!("{}: {e}", config.display()))?;
                config
            }
        };
        let server = Server::start(&program()?, folder, &config, 0).map_err(|e| e.to_string())?;
        Ok(Self { folder: folder.to_path_buf(), config, server })
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.server.port
    }

    /// Its address, without TLS.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.server.process.id()
    }

    /// Kills it, as a loss of power would.
    pub fn kill(&mut self) {
        self.server.process.kill();
    }

    /// Kills it if it still runs, and starts it again on the same port and store. Blocks.
    ///
    /// # Errors
    /// As [`Broker::start`].
    pub fn restart(&mut self) -> Result<(), String> {
        self.kill();
        let server = Server::start(&program()?, &self.folder, &self.config, self.port());
        self.server = server.map_err(|e| e.to_string())?;
        Ok(())
    }
}

/// A NATS server that ends with this value.
pub struct Nats {
    /// The server.
    pub broker: Broker,
    others: Option<String>,
    folder: tempfile::TempDir,
}

impl Nats {
    /// Starts a server that asks nobody who they are.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn start() -> Result<Self, String> {
        Self::start_with(None)
    }

    /// Starts a server with a configuration of its own.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn start_with(config: Option<&str>) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let config = match config {
            None => None,
            Some(text) => {
                let path = folder.path().join("server.conf");
                std::fs::write(&path, text).map_err(|e| e.to_string())?;
                Some(path)
            }
        };
        Ok(Self { broker: Broker::start(&folder.path().join("nats"), config)?, others: None, folder })
    }

    /// Starts a server that lets in `users`, each with its own password and no more permissions than it
    /// needs.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn guarded(users: &[User]) -> Result<Self, String> {
        let password = |user: &User| format!("password-of-{}", user.name());
        let quoted = users.iter().map(|user| (user.clone(), format!("\"{}\"", password(user)))).collect::<Vec<_>>();
        let nats = Self::start_with(Some(&authorization(&quoted)))?;
        std::fs::create_dir_all(nats.credentials()).map_err(|e| e.to_string())?;
        for user in users {
            let text = format!("{}:{}\n", user.name(), password(user));
            std::fs::write(nats.credentials().join(user.name()), text).map_err(|e| e.to_string())?;
        }
        Ok(nats)
    }

    /// Starts a server that lets in Hubs, Directors, Critics and Experts of `domains`, whoever sends alerts and
    /// whoever reads.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn guarded_for(domains: &[Domain]) -> Result<Self, String> {
        Self::guarded(&users::users(domains))
    }

    /// The folder with a file of credentials for each user; it is there where the server asks for them.
    #[must_use]
    pub fn credentials(&self) -> PathBuf {
        self.folder.path().join("credentials")
    }

    /// How to reach it as `user`.
    #[must_use]
    pub fn options(&self, user: &str) -> nats::Options {
        let credentials = Some(self.credentials().join(user)).filter(|path| path.is_file());
        let url = self.others.clone().unwrap_or_else(|| self.broker.url());
        nats::Options { url, user: user.to_owned(), credentials, ..nats::Options::default() }
    }

    /// A folder that is removed with it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Three servers that know each other. The options of each name all three.
///
/// # Errors
/// What went wrong, in words.
pub fn cluster() -> Result<Vec<Nats>, String> {
    let ports = (0..3).map(|_| free_port()).collect::<Result<Vec<u16>, _>>()?;
    let routes: Vec<String> = ports.iter().map(|port| format!("\"nats-route://127.0.0.1:{port}\"")).collect();
    let mut servers = Vec::new();
    for (n, port) in ports.iter().enumerate() {
        let config = format!(
            "server_name: server-{n}\ncluster {{\n  name: casebook\n  listen: \"127.0.0.1:{port}\"\n  routes: [{}]\n}}\n",
            routes.join(", ")
        );
        servers.push(Nats::start_with(Some(&config))?);
    }
    let all: Vec<String> = servers.iter().map(|s| s.broker.url()).collect();
    servers.iter_mut().for_each(|s| s.others = Some(all.join(",")));
    Ok(servers)
}

fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|e| e.to_string())
}

/// The server's program: the one that `casebook cluster` would run, else one that pip installs.
///
/// # Errors
/// The one that `CASEBOOK_NATS_SERVER` names cannot be used.
pub fn program() -> Result<PathBuf, String> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let find = || {
        let named = std::env::var_os("CASEBOOK_NATS_SERVER").map(PathBuf::from);
        let program = named.clone().unwrap_or_else(|| "nats-server".into());
        match server::check(&program) {
            Ok(_) => Ok(program),
            Err(failure) if named.is_some() => Err(failure.to_string()),
            Err(_) => Ok(thirdparty::python(&[thirdparty::NATS_SERVER]).with_file_name("nats-server")),
        }
    };
    FOUND.get_or_init(find).clone()
}
