//! A case that grows while it is shown: the log of the demo, recorded again event by event.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use casebook_api::cases::Cases;
use casebook_api::http::{Config, listen};
use casebook_hub::{SqliteStore, archive};
use casebook_index::Index;
use casebook_protocol::{InvestigationId, Recorded, Timestamp};
use casebook_runtime::clock::SystemClock;
use casebook_runtime::store::Store;
use tempfile::TempDir;

use super::Server;
use super::stage::{Stage, renamed};
use crate::Result;

pub fn now() -> Result<Timestamp> {
    Ok(SystemTime::now().try_into()?)
}

/// A folder with the demo, and what is appended to it.
pub struct Growing {
    pub store: Arc<SqliteStore>,
    /// The log of the demo.
    pub log: Vec<Recorded>,
    pub data: TempDir,
}

impl Growing {
    pub async fn new() -> Result<Self> {
        let (stage, id) = Stage::closed().await?;
        let Stage { server, data } = stage;
        drop(server);
        Self::of(data, &InvestigationId::new(id)?).await
    }

    /// A folder with this investigation.
    pub async fn of(data: TempDir, id: &InvestigationId) -> Result<Self> {
        let store = Arc::new(SqliteStore::open(data.path())?);
        let log = archive::log(store.as_ref(), id).await?;
        Ok(Self { store, log, data })
    }

    /// A server of its own process, which only reads.
    pub fn apart(&self) -> Result<(String, String, Server)> {
        let server = Server::serve(self.data.path(), &[])?;
        Ok((server.base.clone(), server.key.clone(), server))
    }

    /// A server in this process, over the store that is written.
    pub async fn here(&self) -> Result<(String, String)> {
        let store: Arc<dyn Store> = Arc::clone(&self.store) as Arc<dyn Store>;
        let cases = Arc::new(Cases::new(store, Index::in_memory()?));
        let (key, address) = ("here".to_owned(), ([127, 0, 0, 1], 0).into());
        let config =
            Config { cases, team: None, clock: Arc::new(SystemClock), key: key.clone(), address, contained: false };
        let listening = listen(config).await?;
        let base = format!("http://{}", listening.address);
        tokio::spawn(listening.serve(std::future::pending()));
        Ok((base, key))
    }

    /// Records the first `events` at once.
    pub async fn begin(&self, id: &InvestigationId, events: usize) -> Result<Vec<Recorded>> {
        let begun = now()?;
        let part = self.log.get(..events.min(self.log.len())).unwrap_or_default();
        let log = renamed(part, id, |_| begun);
        self.store.append(id, 0, &log).await?;
        Ok(log)
    }

    /// Records one event after the other, until `last` or the end of the log.
    pub async fn go_on(&self, log: &mut Vec<Recorded>, last: usize, pause: impl Fn(usize) -> Duration) -> Result<()> {
        let id = log.first().ok_or("the log has not begun")?.investigation.clone();
        for n in log.len()..last.min(self.log.len()) {
            tokio::time::sleep(pause(n)).await;
            let event = self.log.get(n).ok_or("the log ends")?.event.clone();
            let next = Recorded::next(&id, log.last(), now()?, event);
            self.store.append(&id, n as u64, std::slice::from_ref(&next)).await?;
            log.push(next);
        }
        Ok(())
    }
}
