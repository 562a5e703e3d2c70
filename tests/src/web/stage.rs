//! The demo in a server, for checks of its pages.

use std::time::Duration;

use casebook_hub::{SqliteStore, archive};
use casebook_protocol::{InvestigationId, Recorded, Timestamp};
use serde_json::Value;
use tempfile::TempDir;

use super::Server;
use crate::Result;

/// A server over a folder that ends with the value.
pub struct Stage {
    pub server: Server,
    pub data: TempDir,
}

impl Stage {
    /// `casebook demo --serve`.
    pub fn demo() -> Result<Self> {
        let data = tempfile::tempdir()?;
        Ok(Self { server: Server::demo(data.path())?, data })
    }

    /// The demo when its investigation is closed, with its id.
    pub async fn closed() -> Result<(Self, String)> {
        let stage = Self::demo()?;
        let id = stage.case(true).await?;
        Ok((stage, id))
    }

    /// A server that only reads this folder.
    pub fn reading(data: TempDir) -> Result<Self> {
        Ok(Self { server: Server::serve(data.path(), &[])?, data })
    }

    /// The address of a page, with the key.
    pub fn at(&self, path: &str) -> String {
        let (path, fragment) =
            path.split_once('#').map_or((path, String::new()), |(path, at)| (path, format!("#{at}")));
        format!(
            "{}{path}{}k={}{fragment}",
            self.server.base,
            if path.contains('?') { '&' } else { '?' },
            self.server.key
        )
    }

    pub async fn api(&self, path: &str) -> Result<Value> {
        Ok(serde_json::from_slice(&self.server.get(&format!("/api/v1{path}")).await?.1)?)
    }

    /// The id of the first investigation, when it is opened, or when it is closed.
    pub async fn case(&self, closed: bool) -> Result<String> {
        for _ in 0..1_800 {
            let list = self.api("/investigations").await?;
            let first = list.pointer("/items/0").cloned().unwrap_or_default();
            let ended = first.get("closed").is_some_and(Value::is_string);
            if let Some(id) = first.get("id").and_then(Value::as_str).filter(|_| ended || !closed) {
                return Ok(id.to_owned());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err("the demo does not end".into())
    }

    /// A page of each kind, with everything that this case has.
    pub async fn pages(&self, id: &str) -> Result<Vec<String>> {
        let findings = self.api(&format!("/investigations/{id}/findings?limit=1")).await?;
        let text = |pointer: &str| findings.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let found = text("/items/0/finding/id");
        let citation = findings.pointer("/items/0/citations/0/citation").and_then(Value::as_object);
        let call = citation.and_then(|kind| kind.values().next()?.get("call")?.as_str()).unwrap_or_default();
        let mut pages: Vec<String> =
            ["/", "/launch", "/compare", "/insights", "/settings", "/problems/host"].map(str::to_owned).into();
        let tabs = ["timeline", "findings", "journal", "review", "rounds", "tasks", "events&group=review", "evidence"];
        pages.extend(tabs.map(|tab| format!("/i/{id}?tab={tab}")));
        pages.extend([
            format!("/i/{id}?tab=channels&at=300"),
            format!("/i/{id}/t/r1.investigate.network"),
            format!("/i/{id}/c/{call}?cite={found}.1"),
            format!("/evidence?id={id}&q=sudo"),
        ]);
        Ok(pages)
    }

    /// The log of an investigation, read beside the server.
    pub async fn log(&self, id: &str) -> Result<Vec<Recorded>> {
        let store = SqliteStore::read(self.data.path())?;
        Ok(archive::log(&store, &InvestigationId::new(id)?).await?)
    }
}

/// A log as that of another investigation, with other times.
pub fn renamed(log: &[Recorded], id: &InvestigationId, at: impl Fn(usize) -> Timestamp) -> Vec<Recorded> {
    let mut all: Vec<Recorded> = Vec::with_capacity(log.len());
    for (n, entry) in log.iter().enumerate() {
        all.push(Recorded::next(id, all.last(), at(n), entry.event.clone()));
    }
    all
}

/// The figures, or what is wrong.
pub(super) fn verdict(wrong: &[String], figures: String) -> Result<String> {
    if wrong.is_empty() { Ok(figures) } else { Err(wrong.join("\n").into()) }
}
