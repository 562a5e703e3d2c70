//! A real NATS server for a test, found or installed, in a folder of its own.

use std::path::{Path, PathBuf};

use casebook_protocol::subject::Queue;
use casebook_protocol::{Domain, Role};
use casebook_runtime::broker::{Broker, Options, Places};
use casebook_runtime::nats;
use casebook_runtime::nats::permit::{User, authorization};

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
        let place = folder.path().join("nats");
        std::fs::create_dir_all(&place).map_err(|e| e.to_string())?;
        let broker = Broker::start(Options { program: program()?, folder: place, config, port: 0 });
        Ok(Self { broker: broker.map_err(|e| e.to_string())?, others: None, folder })
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
        let experts = domains.iter().map(|domain| Queue::new(Role::Expert, Some(domain)));
        let queues = [Queue::new(Role::Director, None), Queue::new(Role::Critic, None)].into_iter().chain(experts);
        let users = [User::Hub, User::Publisher, User::Reader].into_iter().chain(queues.map(User::Worker));
        Self::guarded(&users.collect::<Vec<_>>())
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

/// The server's program; says on standard error what it took to have one.
///
/// # Errors
/// Why there is none, and what to do.
pub fn program() -> Result<PathBuf, String> {
    let server = Places::of_environment().find().map_err(|e| e.to_string())?;
    for note in &server.notes {
        eprintln!("{note}");
    }
    Ok(server.program)
}
