//! Runs evidence tools, which block on files, on threads that may block.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use casebook_agent::tools::Tools;
use casebook_protocol::{Acts, Alert, ExpertView, FileHash, Files, InvestigationId, SourceNote, Toolset};
use casebook_runtime::process::blocking;
use tokio::sync::Semaphore;

use casebook_evidence::EvidenceTools;

/// Files that came later, among the notes.
const LATER_MAX: usize = 10;

/// Concurrent searches in the process. Each may hold many hits in memory, and more searches than cores are not
/// faster.
static SEARCHES: Semaphore = Semaphore::const_new(3);

#[derive(Debug, Clone)]
pub struct Offloaded {
    tools: EvidenceTools,
    case: Option<Arc<Case>>,
}

/// An investigation, its sources, and the files that were read for it.
#[derive(Debug)]
struct Case {
    id: String,
    sources: BTreeSet<String>,
    files: Vec<FileHash>,
}

impl Offloaded {
    pub const fn new(tools: EvidenceTools) -> Self {
        Self { tools, case: None }
    }

    /// The tools over the snapshot of the investigation. It may have to be loaded.
    fn of_case(&self) -> Result<EvidenceTools, String> {
        let Some(case) = &self.case else { return Ok(self.tools.clone()) };
        let catalog = self.tools.catalog().for_case(&case.id, &case.files);
        let catalog = catalog.map_err(|error| format!("the evidence of this investigation cannot be read: {error}"))?;
        let ids: Vec<String> = self.tools.visible().map(|source| source.id.clone()).collect();
        let ids: Vec<String> = ids.into_iter().filter(|id| case.sources.contains(id)).collect();
        Ok(EvidenceTools::new(catalog, &ids))
    }

    /// Files that were not there when the Expert started. No Expert has them among its sources.
    fn later(&self, files: &Files) -> Vec<SourceNote> {
        let later = files.listed.iter().filter(|file| !self.tools.catalog().has_file(&file.file)).take(LATER_MAX);
        let note = "it came after the Expert had started: start the Expert again to search it";
        later.map(|file| SourceNote { source: file.file.clone(), note: note.into(), blind: true }).collect()
    }
}

#[async_trait]
impl Tools for Offloaded {
    fn toolset(&self) -> Toolset {
        self.tools.toolset()
    }

    async fn call(&self, tool: &str, arguments: &str) -> Result<String, String> {
        // The semaphore is never closed. The search keeps its permit, because its caller may stop waiting.
        let turn = SEARCHES.acquire().await;
        let (tools, tool, arguments) = (self.clone(), tool.to_owned(), arguments.to_owned());
        let search = move || {
            let _turn = turn;
            tools.of_case()?.call(&tool, &arguments)
        };
        blocking(search).await.unwrap_or_else(|error| Err(format!("the tool stopped: {error}")))
    }

    async fn files(&self) -> Option<Files> {
        let tools = self.clone();
        let list = move || {
            let mut files = tools.of_case()?.catalog().files();
            files.notes.extend(tools.later(&files));
            Ok(files)
        };
        let listed = blocking(list).await.unwrap_or_else(|error| Err(format!("the list stopped: {error}")));
        listed.inspect_err(|error| tracing::warn!(error, "could not list the evidence files")).ok()
    }

    fn for_case(&self, investigation: &InvestigationId, view: &ExpertView) -> Option<Arc<dyn Tools>> {
        let sources = view.sources.iter().map(|source| source.source.clone()).collect();
        let case = Case { id: investigation.to_string(), sources, files: view.snapshot.clone() };
        Some(Arc::new(Self { case: Some(Arc::new(case)), ..self.clone() }))
    }

    async fn acts(&self, alert: &Alert) -> Option<Acts> {
        let turn = SEARCHES.acquire().await;
        let (tools, alert) = (self.clone(), alert.clone());
        let list = move || {
            let _turn = turn;
            tools.of_case()?.catalog().acts(&alert).map_err(|error| error.to_string())
        };
        match blocking(list).await.unwrap_or_else(|error| Err(format!("the search stopped: {error}"))) {
            Ok(acts) => Some(acts),
            Err(error) => {
                tracing::warn!(error, "could not list the acts that a dismissal must account for");
                // The list is not complete, so nothing is dismissed.
                Some(Acts { more: 1, ..Acts::default() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use casebook_protocol::Question;
    use serde_json::Value;

    use super::*;
    use crate::roster::members;
    use casebook_evidence::Catalog;

    async fn total(tools: &Arc<dyn Tools>) -> u64 {
        let answer = tools.call("search", r#"{"terms":["mark"]}"#).await.unwrap();
        serde_json::from_str::<Value>(&answer).unwrap()["total"].as_u64().unwrap()
    }

    #[tokio::test]
    async fn each_instance_reads_the_snapshot_of_an_investigation() {
        let folder = tempfile::tempdir().unwrap();
        let (logs, index) = (folder.path().join("logs"), folder.path().join("index"));
        std::fs::create_dir(&logs).unwrap();
        std::fs::write(logs.join("a.log"), "mark one\n").unwrap();
        let append = |text: &[u8]| {
            std::fs::OpenOptions::new().append(true).open(logs.join("a.log")).unwrap().write_all(text).unwrap();
        };
        // As a process does at its start.
        let start = || {
            let catalog = Arc::new(Catalog::open_in(&logs, &index, None, &mut |_| {}).unwrap());
            members(&catalog).remove(0)
        };
        let first = start();
        let of = |tools: &Arc<dyn Tools>, id: &str, snapshot: Vec<FileHash>| {
            let view = ExpertView {
                alert: Alert::parse(b"{}").unwrap(),
                journal: vec![],
                question: Question { text: "what ran?".into(), to: vec![], follow: vec![] },
                toolset: first.member.toolset.clone(),
                sources: first.member.sources.clone(),
                earlier: vec![],
                snapshot,
            };
            tools.for_case(&InvestigationId::new(id).unwrap(), &view).unwrap()
        };
        let old = of(&first.tools, "old", vec![]);
        assert_eq!(total(&old).await, 1);
        let read = old.files().await.unwrap();
        append(b"mark two\n");
        std::fs::write(logs.join("late.log"), "mark three\n").unwrap();
        assert_eq!(total(&of(&first.tools, "old", vec![])).await, 1);
        let new = of(&first.tools, "new", vec![]);
        assert_eq!(total(&new).await, 2, "late.log is in no source of the roster");
        let notes = new.files().await.unwrap().notes;
        assert!(notes.iter().any(|note| note.blind && note.source == "late.log"), "{notes:?}");
        let second = start();
        let again = of(&second.tools, "old", read.listed.clone());
        assert_eq!(total(&again).await, 1);
        assert_eq!(again.files().await.unwrap().listed, read.listed);
        assert_eq!(again.files().await.unwrap().snapshot.unwrap().id, read.snapshot.unwrap().id);
    }
}
