//! The HTTP server on a loopback address. The only module that names the HTTP library.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use casebook_runtime::clock::Clock;
use casebook_runtime::files;
use casebook_runtime::service::http::accept;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, broadcast};
use tokio::task::JoinSet;

use crate::cases::{Cases, Follow, Notice, Trouble};
use crate::team::Team;
use access::Access;

pub mod access;
mod answer;
mod api;
mod backtests;
mod feed;
mod forms;
mod guard;
mod one;
mod pack;
mod pages;
mod read;
mod upload;

/// The pause before the feed is read again after an error.
const AGAIN: Duration = Duration::from_secs(2);
const STREAMS: usize = 256;
const CONNECTIONS: usize = 1024;
/// The largest head of a request, in bytes, and the longest wait for one.
const HEAD: usize = 16 * 1024;
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Notices that a slow listener may miss before it starts again.
const NOTICES: usize = 1024;

/// What the server needs.
pub struct Config {
    pub cases: Arc<Cases>,
    /// None: this server has no evidence, and only reads.
    pub team: Option<Arc<dyn Team>>,
    pub clock: Arc<dyn Clock>,
    /// From [`access::secret`].
    pub key: String,
    pub address: SocketAddr,
    /// Allows an address other than the loopback, for a container that publishes its port on the loopback of the host.
    pub contained: bool,
}

pub(crate) struct App {
    pub cases: Arc<Cases>,
    pub team: Option<Arc<dyn Team>>,
    pub clock: Arc<dyn Clock>,
    pub access: Mutex<Access>,
    pub port: u16,
    pub notices: broadcast::Sender<Notice>,
    pub streams: Arc<Semaphore>,
    /// Held while a file is added to an upload, so that its limits hold.
    pub uploads: tokio::sync::Mutex<()>,
}

impl App {
    pub(crate) fn access(&self) -> MutexGuard<'_, Access> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn investigates(&self) -> bool {
        self.team.as_ref().is_some_and(|team| !team.bodies().is_empty())
    }

    pub(crate) fn cookie(&self) -> String {
        format!("casebook_{}", self.port)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("{0} is not a loopback address: other machines could reach it")]
    NotLoopback(SocketAddr),
    #[error("cannot listen at {address}: {source}")]
    Bind { address: SocketAddr, source: std::io::Error },
}

/// A server that listens; [`Listening::serve`] answers.
pub struct Listening {
    listener: TcpListener,
    router: Router,
    app: Arc<App>,
    pub address: SocketAddr,
}

/// Listens, so that the address is known before the first answer.
pub async fn listen(config: Config) -> Result<Listening, ServeError> {
    let address = config.address;
    if !address.ip().is_loopback() && !config.contained {
        return Err(ServeError::NotLoopback(address));
    }
    let bind = |source| ServeError::Bind { address, source };
    let listener = TcpListener::bind(address).await.map_err(bind)?;
    let address = listener.local_addr().map_err(bind)?;
    let app = Arc::new(App {
        cases: config.cases,
        team: config.team,
        clock: config.clock,
        access: Mutex::new(Access::new(&config.key)),
        port: address.port(),
        notices: broadcast::channel(NOTICES).0,
        streams: Arc::new(Semaphore::new(STREAMS)),
        uploads: tokio::sync::Mutex::default(),
    });
    let router = router(&app);
    Ok(Listening { listener, router, app, address })
}

impl Listening {
    /// Answers until `stop` ends.
    pub async fn serve(self, stop: impl Future<Output = ()> + Send + 'static) {
        let looking = tokio::spawn(look(Arc::clone(&self.app)));
        let service = TowerToHyperService::new(self.router);
        let mut connections = JoinSet::new();
        let serve = |stream| connection(stream, service.clone());
        // Streams have no end, so the server does not wait for them.
        tokio::select! {
            () = accept(&self.listener, files::share_of_open_files(CONNECTIONS), &mut connections, serve) => {}
            () = stop => {}
        }
        looking.abort();
    }
}

async fn connection(stream: TcpStream, service: TowerToHyperService<Router>) {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD);
    // An error of the client does not matter.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

/// Tells the streams what is appended, by this process or another. After an error it goes on where it was.
async fn look(app: Arc<App>) {
    let mut follow = None;
    loop {
        if let Err(error) = tell(&app, &mut follow).await {
            tracing::warn!(%error, "cannot follow new events");
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn tell(app: &App, follow: &mut Option<Follow>) -> Result<(), Trouble> {
    let follow = match follow {
        Some(follow) => follow,
        None => follow.insert(app.cases.follow().await?),
    };
    loop {
        // Sending fails if no stream is open.
        follow.next().await?.into_iter().for_each(|notice| drop(app.notices.send(notice)));
    }
}

fn router(app: &Arc<App>) -> Router {
    let guarded = pages::router().merge(api::router()).fallback(pages::missing);
    let guard = axum::middleware::from_fn_with_state(Arc::clone(app), guard::guard);
    guarded.layer(guard).with_state(Arc::clone(app))
}
