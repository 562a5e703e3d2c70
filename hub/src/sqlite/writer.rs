//! The writing thread: commits waiting requests together.

use casebook_protocol::{ArtifactId, InvestigationId};
use casebook_runtime::store::{Once, StoreError};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use tokio::sync::{mpsc, oneshot};

use super::fault::fault;
use super::packed::{self, Packed};
use super::raw;

const GROUP: usize = 256;

type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// A request and its description for errors.
pub(super) struct Job {
    pub(super) doing: String,
    pub(super) request: Request,
}

pub(super) enum Request {
    Append { investigation: InvestigationId, after: u64, last: u64, row: Packed, named: Named, reply: Reply<()> },
    Once { investigation: InvestigationId, key: String, bytes: Packed, named: Named, reply: Reply<Once> },
    Put { named: Named, reply: Reply<()> },
}

/// Artifacts to store before the row that names them.
pub(super) type Named = Vec<(ArtifactId, Packed)>;

/// Sends the answer once the transaction is on disk (`None`) or has failed.
type Answer = Box<dyn FnOnce(Option<StoreError>)>;

pub(super) fn run(mut connection: Connection, mut waiting: mpsc::Receiver<Job>, file: &str) {
    while let Some(first) = waiting.blocking_recv() {
        let mut group = vec![first];
        while let Some(next) = (group.len() < GROUP).then(|| waiting.try_recv().ok()).flatten() {
            group.push(next);
        }
        commit(&mut connection, group, file);
    }
}

fn commit(connection: &mut Connection, group: Vec<Job>, file: &str) {
    let transaction = match connection.transaction_with_behavior(TransactionBehavior::Immediate) {
        Ok(transaction) => transaction,
        Err(error) => {
            for job in group {
                let failed = fault(&job.doing, file, &error);
                job.request.fail(failed);
            }
            return;
        }
    };
    let mut answers: Vec<(String, Answer)> = Vec::new();
    // A full disk makes SQLite roll back the whole transaction. Later requests must not be written without the earlier
    // ones, and all of them failed for the reason of the first.
    let mut lost: Option<String> = None;
    for job in group {
        let doing = job.doing.clone();
        if let Some(reason) = &lost {
            job.request.fail(StoreError::Unavailable { doing, reason: reason.clone() });
            continue;
        }
        let (answer, failed) = perform(&transaction, job, file);
        answers.push((doing, answer));
        if transaction.is_autocommit() {
            let reason = failed.unwrap_or_else(|| format!("{file} rolled back the transaction of this request"));
            lost = Some(reason);
        }
    }
    let committed = if lost.is_some() { Ok(()) } else { transaction.commit() };
    for (doing, answer) in answers {
        answer(match (&committed, &lost) {
            (_, Some(reason)) => Some(StoreError::Unavailable { doing, reason: reason.clone() }),
            (Ok(()), None) => None,
            (Err(error), None) => Some(fault(&doing, file, error)),
        });
    }
}

/// Each request writes its row with one statement, so a failure affects no other request. Its artifacts may
/// remain after a failure, since nothing names them.
fn perform(transaction: &Connection, Job { doing, request }: Job, file: &str) -> (Answer, Option<String>) {
    match request {
        Request::Append { investigation, after, last, row, named, reply } => {
            let done = put(transaction, &named).and_then(|()| append(transaction, &investigation, (after, last), &row));
            answer(reply, done.map_err(|error| fault(&doing, file, &error)).and_then(|done| done))
        }
        Request::Once { investigation, key, bytes, named, reply } => {
            let done = put(transaction, &named).and_then(|()| once(transaction, &investigation, &key, &bytes));
            let corrupt = |reason| StoreError::Corrupt { what: format!("{key} of {investigation}"), reason };
            let done = done.map_err(|error| fault(&doing, file, &error));
            answer(reply, done.and_then(|once| once.map_err(corrupt)))
        }
        Request::Put { named, reply } => {
            answer(reply, put(transaction, &named).map_err(|error| fault(&doing, file, &error)))
        }
    }
}

impl Request {
    fn fail(self, error: StoreError) {
        match self {
            Self::Append { reply, .. } | Self::Put { reply, .. } => drop(reply.send(Err(error))),
            Self::Once { reply, .. } => drop(reply.send(Err(error))),
        }
    }
}

/// Prepares an answer for when the outcome of the transaction is known, and returns why the request failed. The receiver
/// may be gone.
fn answer<T: 'static>(reply: Reply<T>, result: Result<T, StoreError>) -> (Answer, Option<String>) {
    let failed = match &result {
        Err(StoreError::Unavailable { reason, .. }) => Some(reason.clone()),
        _ => None,
    };
    let answer = move |failed: Option<StoreError>| {
        let _ = reply.send(result.and_then(|value| failed.map_or(Ok(value), Err)));
    };
    (Box::new(answer), failed)
}

/// The number of an investigation, assigned on first use. It may remain after a failed request.
fn number(db: &Connection, investigation: &InvestigationId) -> Result<i64, rusqlite::Error> {
    let known = |db: &Connection| {
        db.prepare_cached("SELECT n FROM investigations WHERE id = ?1")?
            .query_row(params![investigation.as_str()], |row| row.get(0))
            .optional()
    };
    if let Some(number) = known(db)? {
        return Ok(number);
    }
    db.prepare_cached("INSERT INTO investigations (id) VALUES (?1)")?.insert(params![investigation.as_str()])
}

fn append(
    db: &Connection,
    investigation: &InvestigationId,
    (after, last): (u64, u64),
    row: &Packed,
) -> Result<Result<(), StoreError>, rusqlite::Error> {
    let number = number(db, investigation)?;
    let mut found = db.prepare_cached("SELECT coalesce(max(seq), 0) FROM events WHERE investigation = ?1")?;
    let found: u64 = found.query_row(params![number], |row| row.get::<_, i64>(0))?.unsigned_abs();
    if found != after {
        return Ok(Err(StoreError::Conflict { investigation: investigation.clone(), expected: after, found }));
    }
    if last > after {
        let mut insert =
            db.prepare_cached("INSERT INTO events (investigation, seq, form, entry) VALUES (?1, ?2, ?3, ?4)")?;
        insert.execute(params![number, i64::try_from(last).unwrap_or(i64::MAX), row.form, row.bytes])?;
    }
    Ok(Ok(()))
}

fn once(
    db: &Connection,
    investigation: &InvestigationId,
    key: &str,
    bytes: &Packed,
) -> Result<Result<Once, String>, rusqlite::Error> {
    let number = number(db, investigation)?;
    let mut insert =
        db.prepare_cached("INSERT OR IGNORE INTO results (investigation, key, form, bytes) VALUES (?1, ?2, ?3, ?4)")?;
    if insert.execute(params![number, key, bytes.form, bytes.bytes])? == 1 {
        return Ok(Ok(Once::Recorded));
    }
    let mut query = db.prepare_cached("SELECT form, bytes FROM results WHERE investigation = ?1 AND key = ?2")?;
    let stands = query.query_row(params![number, key], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(stands.map_or(Ok(Once::Recorded), |(form, bytes)| packed::unpack(form, bytes).map(Once::Stands)))
}

fn put(db: &Connection, named: &Named) -> Result<(), rusqlite::Error> {
    for (id, bytes) in named {
        let mut insert = db.prepare_cached("INSERT OR IGNORE INTO artifacts (id, form, bytes) VALUES (?1, ?2, ?3)")?;
        insert.execute(params![raw(id), bytes.form, bytes.bytes])?;
    }
    Ok(())
}
