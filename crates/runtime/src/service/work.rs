//! A process that works on queues over NATS: it connects, is let in by a Hub, takes jobs, says that it
//! is there, and drains when it is asked to stop. What does not answer is asked again for as long as it
//! takes; meanwhile the process lives and is not ready.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use casebook_protocol::subject::Queue;
use casebook_protocol::{Join, Member, one_line};
use futures_util::future::try_join_all;

use super::{Common, Failure, Service};
use crate::env::Env;
use crate::nats::{self, Connection, JoinError, NatsError, Options};
use crate::process::{Drain, Observe, Performer, RoleActor};
use crate::wire::WIRE_VERSION;

/// The first pause before the server or a Hub is asked again, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// How often health is brought up to date.
const LOOK: Duration = Duration::from_millis(500);
/// How often a Hub is asked again whether it lets us in: it may be another one, of another version.
const AGAIN: Duration = Duration::from_secs(30);

pub struct Assignment {
    pub queue: Queue,
    /// What the roster says of it, for Experts.
    pub member: Option<Member>,
    pub at_once: usize,
    pub worker: Box<dyn FnOnce(Env) -> Arc<dyn Performer>>,
}

/// Works on all `assignments` until the process is asked to stop and has drained.
///
/// # Errors
/// What cannot be mended by waiting: a file that cannot be used, a server that is too old, a Hub that
/// refuses this version.
pub async fn work(service: &Service, assignments: Vec<Assignment>) -> Result<(), Failure> {
    for assignment in &assignments {
        service.health.queue(&assignment.queue.name(), |_| {});
    }
    service.health.preparing(None);
    try_join_all(assignments.into_iter().map(|assignment| at(service.clone(), assignment))).await.map(drop)
}

/// How to reach the server as `user`. Where the credentials are a folder, each user has the file of its
/// name in it.
pub fn options(common: &Common, user: &str) -> Options {
    let of_user = |path: &PathBuf| if path.is_dir() { path.join(user) } else { path.clone() };
    Options {
        url: common.nats.clone(),
        credentials: common.credentials.as_ref().map(of_user),
        ca: common.ca.clone(),
        cert: common.cert.clone(),
        key: common.key.clone(),
        user: user.to_owned(),
    }
}

/// Connects as `user`, however long it takes; none when the process was asked to stop first.
pub async fn connected(service: &mut Service, user: &str) -> Result<Option<Connection>, Failure> {
    let options = options(&service.common, user);
    let mut pause = PAUSE.0;
    loop {
        let error = tokio::select! {
            biased;
            () = service.stop.wait() => return Ok(None),
            connection = nats::connect(&options) => match connection {
                Ok(connection) => {
                    service.health.trouble(user, None);
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

/// Says what is wrong and waits a little longer each time; true when the process was asked to stop.
async fn again(service: &mut Service, user: &str, why: &str, pause: &mut Duration) -> bool {
    let why = one_line(why, 300);
    let before = service.health.standing().troubles.insert(user.to_owned(), why.clone());
    if before.as_deref() != Some(&why) {
        tracing::warn!(user, why, "is tried again until it works");
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
        leaves: false,
    };
    let worker = (assignment.worker)(connection.env());
    worker.ready().await;
    if !let_in(&mut service, &connection, &join).await? {
        return Ok(());
    }
    tracing::info!(user, "let in: takes jobs");
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
        tracing::warn!(user, left, "jobs were handed back: another does them");
    }
    connection.flush().await;
    ended
}

/// Asks a Hub until it lets us in; false when the process was asked to stop first.
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

/// Asks again from time to time; ends when a Hub refuses us.
async fn kept_in(service: &Service, connection: &Connection, join: &Join) -> Failure {
    let user = join.queue().name();
    loop {
        tokio::time::sleep(AGAIN).await;
        match connection.join(join).await {
            Ok(()) => service.health.queue(&user, |queue| queue.joined = true),
            Err(error @ JoinError::Refused(_)) => return Failure::usage(error),
            Err(JoinError::Later(why)) => {
                tracing::warn!(user, why, "no Hub lets this process in at the moment");
                service.health.queue(&user, |queue| queue.joined = false);
            }
        }
    }
}

/// Keeps health up to date, for as long as it is polled.
pub async fn shown(service: &Service, connection: &Connection, user: &str, under_way: impl AsyncFn() -> u64) {
    loop {
        let (connected, under_way) = (connection.connected(), under_way().await);
        service.health.queue(user, |queue| {
            queue.connected = connected;
            queue.under_way = under_way;
        });
        tokio::time::sleep(LOOK).await;
    }
}
