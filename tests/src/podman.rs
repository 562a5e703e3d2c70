//! Containers for a test: Podman with `runc`. Each test starts with an empty store.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Result, nats, thirdparty};

mod debian;

/// The image of our programs.
pub const IMAGE: &str = "localhost/casebook";
/// The image of our programs with Python and Node.
pub const TOOLS: &str = "localhost/casebook-tools";
/// The image of the NATS server that the tests use.
pub const NATS: &str = "localhost/nats";

/// Static programs of a profile that is built in a short time.
const PROFILE: &str = "quick";
const COMPOSE: &str = "podman-compose==1.6.0";

/// A store of images and containers. What runs in it is removed on drop.
pub struct Podman {
    folder: tempfile::TempDir,
    /// Whether the folder is in memory.
    mounted: bool,
    /// The name of its project in Compose. All stores share the networks, so that each needs its own name.
    project: String,
}

impl Podman {
    /// An empty store, or `None` if this machine cannot run containers. Then the test is skipped, with a message; if
    /// `CASEBOOK_CONTAINERS` is `1`, that is an error; with `0` nothing is tried.
    ///
    /// # Panics
    /// If containers are required and cannot run.
    pub fn new() -> Result<Option<Self>> {
        if runs() { Self::at(tempfile::tempdir()?, false).map(Some) } else { Ok(None) }
    }

    /// Like [`Podman::new`], in memory if the machine has 6 GB to spare. Some disks need minutes to remove an image of many
    /// files.
    pub fn in_memory() -> Result<Option<Self>> {
        if !runs() {
            return Ok(None);
        }
        let folder = tempfile::tempdir()?;
        let memory = std::fs::read_to_string("/proc/meminfo")?;
        let free = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.split_whitespace().next());
        let enough = free.and_then(|kb| kb.parse::<u64>().ok()).is_some_and(|kb| kb > 6_000_000);
        if enough {
            let mount = ["-t", "tmpfs", "-o", "size=4g,mode=700", "none"];
            said(Command::new("mount").args(mount).arg(folder.path()))?;
        }
        Self::at(folder, enough).map(Some)
    }

    fn at(folder: tempfile::TempDir, mounted: bool) -> Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let project = format!("casebook-test-{}-{number}", std::process::id());
        let podman = Self { folder, mounted, project };
        let place = podman.folder.path().display();
        let storage =
            format!("[storage]\ndriver = \"overlay\"\ngraphroot = \"{place}/store\"\nrunroot = \"{place}/run\"\n");
        podman.write("storage.conf", &storage)?;
        // The usual limits are more than some machines allow.
        let limits = "default_ulimits = [\"nofile=4096:4096\", \"nproc=4096:4096\"]";
        let containers = format!(
            "[engine]\nruntime = \"runc\"\n[network]\nnetwork_backend = \"netavark\"\n[containers]\n{limits}\n"
        );
        podman.write("containers.conf", &containers)?;
        Ok(podman)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        Ok(std::fs::write(self.folder.path().join(name), text)?)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A command that uses this store.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("CONTAINERS_STORAGE_CONF", self.folder.path().join("storage.conf"));
        command.env("CONTAINERS_CONF", self.folder.path().join("containers.conf"));
        command.stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Result<Output> {
        Ok(self.command("podman").args(arguments).output()?)
    }

    /// What a command printed, which must succeed.
    pub fn said(&self, arguments: &[&str]) -> Result<String> {
        said(self.command("podman").args(arguments))
    }

    /// Builds the image of our programs as a user without a registry does, from static programs.
    pub fn build(&self) -> Result<()> {
        self.build_from_ready(&["--network", "none", "--tag", IMAGE])
    }

    /// Builds the image with Python and Node on a Debian that `mmdebstrap` makes. Debian's packages, and `uv`, come from
    /// where this machine gets them.
    pub fn build_tools(&self) -> Result<()> {
        const BASE: &str = "localhost/debian";
        let root = debian::root(self.folder.path())?;
        let mut import = self.command("podman");
        import.args(["import", "--quiet"]);
        for (name, value) in debian::pip_settings() {
            import.arg("--change").arg(format!("ENV {name}={value}"));
        }
        said(import.arg(&root).arg(BASE))?;
        std::fs::remove_file(root)?;
        let base = format!("TOOLS={BASE}");
        // The network of this machine also reaches a proxy on its loopback.
        self.build_from_ready(&[
            "--network",
            "host",
            "--build-arg",
            &base,
            "--target",
            "casebook-tools",
            "--tag",
            TOOLS,
        ])
    }

    fn build_from_ready(&self, options: &[&str]) -> Result<()> {
        static BUILT: OnceLock<Result<String, String>> = OnceLock::new();
        let build = || {
            let mut command = Command::new("deploy/image/build");
            said(command.arg(PROFILE).current_dir(root()).env_remove("CARGO_TARGET_DIR")).map_err(|e| e.to_string())
        };
        BUILT.get_or_init(build).clone()?;
        let mut command = self.command("podman");
        command.args(["build", "--quiet", "--build-arg", "FROM_BINARIES=ready"]).args(options);
        said(command.arg(".").current_dir(root()))?;
        Ok(())
    }

    /// Builds an image of the NATS server in place of the official one, which is in a registry.
    pub fn build_nats(&self) -> Result<()> {
        let folder = self.folder.path().join("nats");
        std::fs::create_dir_all(&folder)?;
        std::fs::copy(nats::program()?, folder.join("nats-server"))?;
        std::fs::write(
            folder.join("Containerfile"),
            "FROM scratch\nCOPY nats-server /\nENTRYPOINT [\"/nats-server\"]\n",
        )?;
        said(self.command("podman").args(["build", "--quiet", "--tag", NATS]).arg(&folder))?;
        Ok(())
    }

    /// `podman-compose` of the file in `deploy/compose`, with its secrets in a folder of this test.
    pub fn compose(&self, port: u16) -> Command {
        let mut command = self.command(thirdparty::python(&[COMPOSE]).with_file_name("podman-compose"));
        command.current_dir(root().join("deploy/compose"));
        command.args(["--project-name", &self.project]);
        command.env("CASEBOOK_SECRETS", self.secrets()).env("CASEBOOK_PAGES", port.to_string());
        command.env("CASEBOOK_IMAGE", IMAGE).env("NATS_IMAGE", NATS);
        command
    }

    /// The folder for `deploy/compose/prepare`.
    pub fn secrets(&self) -> std::path::PathBuf {
        self.folder.path().join("secrets")
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        // A container that others need is removed only after them.
        let remove = || self.run(&["rm", "--all", "--force", "--volumes", "--time", "0"]);
        let failed =
            (0..3).map(|_| remove()).find(|removed| removed.as_ref().is_ok_and(|o| o.status.success())).is_none();
        if failed {
            eprintln!("containers in {} were not removed", self.folder.path().display());
        }
        // Networks are files outside the store.
        let _ = self.run(&[
            "network",
            "prune",
            "--force",
            "--filter",
            &format!("label=io.podman.compose.project={}", self.project),
        ]);
        if self.mounted {
            let _ = said(Command::new("umount").arg("--recursive").arg(self.folder.path()))
                .inspect_err(|why| eprintln!("memory is not freed: {why}"));
        }
    }
}

/// False if this machine cannot run containers, with a message.
///
/// # Panics
/// If containers are required and cannot run.
fn runs() -> bool {
    let Some(why) = missing() else { return true };
    assert!(std::env::var_os("CASEBOOK_CONTAINERS").is_none_or(|wanted| wanted == "0"), "{why}");
    eprintln!("skipped: {why}");
    false
}

/// Why this machine cannot run containers.
fn missing() -> Option<String> {
    if std::env::var_os("CASEBOOK_CONTAINERS").is_some_and(|wanted| wanted == "0") {
        return Some("CASEBOOK_CONTAINERS is 0: tests of containers are off".into());
    }
    if !cfg!(target_os = "linux") || !rustix::process::geteuid().is_root() {
        return Some("tests of containers need Linux and root".into());
    }
    let runs = |program: &&&str| Command::new(program).arg("--version").output().is_err();
    let absent = ["podman", "runc", "iptables", "readelf"].iter().find(runs)?;
    let packages = "podman runc netavark aardvark-dns iptables iproute2 binutils ca-certificates";
    Some(format!("{absent} is not installed; apt-get install {packages}"))
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// What a command printed, which must succeed.
pub fn said(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|e| format!("cannot run {command:?}: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(format!("{command:?} ended with {}\n{out}{err}", output.status).into())
}
