//! `casebook serve`

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use casebook_api::cases::Cases;
use casebook_api::http::{Config, ServeError, access, listen};
use casebook_api::team::{Team as _, Wanted};
use casebook_hub::{OpenError, SqliteStore};
use casebook_index::Index;
use casebook_runtime::clock::SystemClock;
use tempfile::NamedTempFile;

use crate::args::Serve;
use crate::embedded::Sources;
use crate::failure::{Exit, Failure};
use crate::home::Home;
use crate::loading::whole_path;
use crate::models::Opened;
use crate::screen::{BOLD, DIM, Screen, paint};
use crate::serve::{Desk, Setup};
use crate::stop;

pub(super) async fn run(data: &Path, args: &Serve, screen: &mut Screen) -> Result<Exit, Failure> {
    with_alert(data, args, None, screen).await
}

/// Serves until Ctrl-C, and first opens an investigation of `alert`.
pub(super) async fn with_alert(
    data: &Path,
    args: &Serve,
    alert: Option<&Path>,
    screen: &mut Screen,
) -> Result<Exit, Failure> {
    let sources = args.sources.sources()?;
    if let Some(evidence) = &sources.evidence {
        whole_path(evidence)?;
    }
    let models = Opened::open(&args.models, sources.team.as_deref())?;
    let mut stop = stop::listen()?;
    let (home, sources) = opened(data, sources)?;
    let investigates = sources.evidence.is_some() || sources.team.is_some();
    let index = Index::open(&home.index_folder())?;
    let store = Arc::clone(&home.store);
    let cases = Arc::new(Cases::new(Arc::clone(&home.store), index));
    let setup = Setup { sources, models: models.reasoners, budget: args.budget.budget() };
    let (desk, work) = Desk::new(home, setup);
    let key = access::secret().map_err(|e| Failure::random(&e))?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.place.port));
    let config = Config {
        cases,
        team: Some(desk.clone()),
        clock: Arc::new(SystemClock),
        key: key.clone(),
        address,
        contained: false,
    };
    let listening = listen(config).await.map_err(|e| failure(&e))?;
    let url = format!("http://{}/?k={key}", listening.address);
    announce(&url, investigates, screen);
    let _page = if args.place.open { browse(&url) } else { None };
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(listening.serve(async move {
        // A dropped sender also ends the server.
        let _ = ended.await;
    }));
    if let Some(alert) = alert {
        let bytes = super::investigate::read_alert(alert)?.0;
        let body = desk.bodies().into_iter().next().map(|body| body.name).unwrap_or_default();
        let wanted = Wanted { body, again: false, budget: None };
        let opening = desk.clone();
        tokio::spawn(async move {
            if let Err(why) = opening.open(&bytes, wanted).await {
                tracing::error!(why, "the alert of the demo was not accepted");
            }
        });
    }
    // The roles are started on this thread, which is that of the actors' system.
    let failed = tokio::select! {
        () = work.run(&mut stop) => None,
        error = store.failed() => Some(error),
    };
    let _ = end.send(());
    serving.await.map_err(Failure::defect)?;
    failed.map_or(Ok(Exit::Done), |error| Err(error.into()))
}

/// The data folder, and what alerts are investigated with: nothing if another process writes to the folder.
fn opened(data: &Path, sources: Sources) -> Result<(Home, Sources), Failure> {
    if sources.evidence.is_none() && sources.team.is_none() {
        return Ok((Home::reading(data)?, sources));
    }
    match SqliteStore::open(data) {
        Ok(store) => Ok((Home::with(data, Arc::new(store)), sources)),
        Err(locked @ OpenError::Locked { .. }) => {
            let why = locked.to_string();
            tracing::warn!(why, "no alert can be investigated here; investigations are shown");
            Ok((Home::reading(data)?, Sources::default()))
        }
        Err(error) => Err(error.into()),
    }
}

fn announce(url: &str, investigates: bool, screen: &mut Screen) {
    screen.line(format_args!("{}  {url}", paint(BOLD, "Open")));
    let does = if investigates { "investigates and shows" } else { "shows, and does not investigate" };
    screen.line(paint(
        DIM,
        format_args!("casebook serve {does}; the address contains a key; do not share it; stop with Ctrl-C"),
    ));
}

fn failure(error: &ServeError) -> Failure {
    match error {
        ServeError::Bind { .. } => Failure::usage(error, "choose another port with --port PORT, or --port 0"),
        ServeError::NotLoopback(_) => Failure::usage(error, "use an address of this machine alone"),
    }
}

/// Asks the system to open a page that leads to the address: every user of the machine sees the arguments of a process,
/// and the address has the key. The page is removed when it is dropped. The address is printed as well, so a failure
/// does not matter.
fn browse(url: &str) -> Option<NamedTempFile> {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let opened = (|| {
        let mut page = tempfile::Builder::new().prefix("casebook-").suffix(".html").tempfile()?;
        write!(page, "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={url}\">")?;
        let mut command = Command::new(program);
        command.arg(page.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        std::thread::spawn(move || child.wait());
        Ok::<_, std::io::Error>(page)
    })();
    opened.inspect_err(|error| tracing::info!(%error, program, "cannot open a browser")).ok()
}
