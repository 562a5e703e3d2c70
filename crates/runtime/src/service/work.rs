//! Work on queues over NATS. A process connects, joins a Hub, takes jobs, sends heartbeats, and drains after a request
//! to stop. It retries without limit; meanwhile it is alive but not ready.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use casebook_protocol::subject::Queue;
use casebook_protocol::{Join, Member, one_line};
use futures_util::future::try_join_all;

use super::signals::Hangups;
use super::{Common, Failure, Service};
use crate::env::Env;
use crate::nats::{self, Connection, JoinError, NatsError, Options};
use crate::process::{Drain, Observe, Performer, RoleActor};
use crate::wire::WIRE_VERSION;

/// The first and the longest pause between attempts.
const PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
const LOOK: Duration = Duration::from_millis(500);
/// How often to join again, since another Hub of another version may have taken over.
const AGAIN: Duration = Duration::from_secs(30);

pub struct Assignment {
    pub queue: Queue,
    pub member: Option<Member>,
    pub at_once: usize,
    pub worker: Box<dyn FnOnce(Env) -> Arc<dyn Performer>>,
}

/// Works on all `assignments` until the process has drained.
///
/// # Errors
/// Only failures that waiting cannot solve: an unusable file, an old server, or a Hub that refuses this version.
pub async fn work(service: &Service, assignments: Vec<Assignment>) -> Result<(), Failure> {
    for assignment in &assignments {
        service.health.queue(&assignment.queue.name(), |_| {});
    }
    service.health.preparing(None);
    try_join_all(assignments.into_iter().map(|assignment| at(service.clone(), assignment))).await.map(drop)
}

/// How to connect as `user`. In a folder of credentials each user has the file of its name.
pub fn options(common: &Common, user: &str) -> Options {
    let of_user = |path: &PathBuf| if path.is_dir() { path.join(user) } else { path.clone() };
    Options {
        url: common.nats.clone(),
        credentials: common.credentials.as_ref().map(of_user),
        ca: common.ca.clone(),
        cert: common.cert.clone(),
        key: common.key.clone(),
        user: user.to_owned(),
        mac_key: None,
    }
}

/// Connects as `user`, without a time limit; none after a request to stop.
pub async fn connected(service: &mut Service, user: &str) -> Result<Option<Connection>, Failure> {
    let options = options(&service.common, user);
    connected_with(service, options).await
}

/// Like [`connected`], with these options.
pub async fn connected_with(service: &mut Service, options: Options) -> Result<Option<Connection>, Failure> {
    let user = &options.user;
    let mut pause = PAUSE.0;
    loop {
        let error = tokio::select! {
            biased;
            () = service.stop.wait() => return Ok(None),
            connection = nats::connect(&options) => match connection {
                Ok(connection) => {
                    service.health.trouble(user, None);
                    tokio::spawn(renewed(connection.clone(), service.hangups.clone()));
                    return Ok(Some(connection));
                }
                Err(error) => error,
            },
        };
        match &error {
            NatsError::Connect { .. } | NatsError::NoResponders { .. } | NatsError::Failed { .. } => {}
            NatsError::File { .. } => return Err(Failure::usage(error)),
            NatsError::Old { .. } | NatsError::Unfit { .. } | NatsError::Different(_) => {
                return Err(Failure::failed(error));
            }
        }
        if again(service, user, &error.to_string(), &mut pause).await {
            return Ok(None);
        }
    }
}

/// Connects again at each request to read the files again.
async fn renewed(connection: Connection, mut hangups: Hangups) {
    while hangups.next().await {
        match connection.reconnect().await {
            Ok(()) => tracing::info!("read the credentials again; connecting again"),
            Err(error) => tracing::error!(%error, "cannot use the new credentials; the connection stays"),
        }
    }
}

/// Reports the problem and waits a little longer each time; true after a request to stop.
async fn again(service: &mut Service, user: &str, why: &str, pause: &mut Duration) -> bool {
    let why = one_line(why, 300);
    let before = service.health.standing().troubles.insert(user.to_owned(), why.clone());
    if before.as_deref() != Some(&why) {
        tracing::warn!(user, why, "cannot work yet; retrying");
        service.health.trouble(user, Some(why));
    }
    let stopped = service.stop.within(*pause).await;
    *pause = (*pause * 2).min(PAUSE.1);
    stopped
}

async fn at(mut service: Service, assignment: Assignment) -> Result<(), Failure> {
    let user = assignment.queue.name();
    let Some(connection) = connected(&mut service, &user).await? else { return Ok(()) };
    service.health.queue(&user, |queue| queue.connected = true);
    let join = Join {
        protocol: WIRE_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        role: assignment.queue.role,
        domain: assignment.queue.domain.clone(),
        instance: service.health.name().to_owned(),
        member: assignment.member,
        at_once: assignment.at_once,
        leaves: false,
    };
    let worker = (assignment.worker)(connection.env());
    worker.ready().await;
    if !let_in(&mut service, &connection, &join).await? {
        return Ok(());
    }
    tracing::info!(user, "joined; taking jobs");
    let actor = RoleActor::start_on(assignment.queue, worker, assignment.at_once);
    let under_way = async || actor.send(Observe).await.map_or(0, |seen| seen.under_way);
    let mut stop = service.stop.clone();
    let ended = tokio::select! {
        biased;
        () = stop.wait() => Ok(()),
        () = connection.stay(&join) => Ok(()),
        () = shown(&service, &connection, &user, under_way) => Ok(()),
        refused = kept_in(&service, &connection, &join) => Err(refused),
    };
    service.health.update(|standing| standing.draining = true);
    connection.leave(&join).await;
    let draining = shown(&service, &connection, &user, under_way);
    let left = tokio::select! {
        left = actor.send(Drain(service.common.drain)) => left.unwrap_or_default(),
        () = draining => 0,
    };
    if left > 0 {
        tracing::warn!(user, left, "returned unfinished jobs");
    }
    connection.flush().await;
    ended
}

async fn let_in(service: &mut Service, connection: &Connection, join: &Join) -> Result<bool, Failure> {
    let user = join.queue().name();
    let mut pause = PAUSE.0;
    loop {
        let answer = tokio::select! {
            biased;
            () = service.stop.wait() => return Ok(false),
            answer = connection.join(join) => answer,
        };
        match answer {
            Ok(()) => {
                service.health.trouble(&user, None);
                service.health.queue(&user, |queue| queue.joined = true);
                return Ok(true);
            }
            Err(error @ JoinError::Refused(_)) => return Err(Failure::usage(error)),
            Err(JoinError::Later(why)) => {
                if again(service, &user, &why, &mut pause).await {
                    return Ok(false);
                }
            }
        }
    }
}

/// Joins again from time to time. Ends if a Hub refuses this process.
async fn kept_in(service: &Service, connection: &Connection, join: &Join) -> Failure {
    let user = join.queue().name();
    loop {
        tokio::time::sleep(AGAIN).await;
        match connection.join(join).await {
            Ok(()) => service.health.queue(&user, |queue| queue.joined = true),
            Err(error @ JoinError::Refused(_)) => return Failure::usage(error),
            Err(JoinError::Later(why)) => {
                tracing::warn!(user, why, "no Hub accepts this process at the moment");
                service.health.queue(&user, |queue| queue.joined = false);
            }
        }
    }
}

/// Keeps health up to date for as long as the future is polled.
pub async fn shown(service: &Service, connection: &Connection, user: &str, under_way: impl AsyncFn() -> u64) {
    loop {
        let (connected, under_way) = (connection.connected(), under_way().await);
        service.health.trouble(user, connection.trouble());
        service.health.queue(user, |queue| {
            queue.connected = connected;
            queue.under_way = under_way;
        });
        tokio::time::sleep(LOOK).await;
    }
}
