//! Records the model calls of a run, and repeats the run from them without a network. A recording is a folder with one
//! file per call and the models file. A reply is found by the fingerprint of its request.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use casebook_protocol::{ArtifactId, ModelCallId, one_line};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{Answered, Ask, AskError, Fault, Model, Observed};

pub const RECORDING_VERSION: u16 = 1;
/// The copy of the models file in a recording.
pub const MODELS_FILE: &str = "models.toml";

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept {
    casebook_recording: u16,
    request: Ask,
    result: Result<Answered, AskError>,
}

/// Records the calls of `model` in `folder`, which is created. `models` is the text of the models file, which contains
/// no keys.
pub fn record(model: Arc<dyn Model>, folder: &Path, models: &str) -> io::Result<Arc<dyn Model>> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join(MODELS_FILE), models)?;
    let folder = folder.to_owned();
    Ok(Arc::new(Observed { model, observe: move |ask: &Ask, result: &_, _| keep(&folder, ask, result) }))
}

fn keep(folder: &Path, ask: &Ask, result: &Result<Answered, AskError>) {
    let file = folder.join(format!("{}-{}.json", ask.id, ask.fingerprint().short()));
    let kept = Kept { casebook_recording: RECORDING_VERSION, request: ask.clone(), result: result.clone() };
    // The rename makes sure that a killed run leaves no partial file.
    let aside = file.with_extension("part");
    let text = serde_json::to_vec_pretty(&kept).map_err(io::Error::other);
    if let Err(error) = text.and_then(|t| std::fs::write(&aside, t)).and_then(|()| std::fs::rename(&aside, &file)) {
        tracing::error!(%error, file = %file.display(), "could not record a model call; a replay will miss it");
    }
}

#[derive(Debug)]
pub struct Replay {
    folder: PathBuf,
    answers: HashMap<ArtifactId, PathBuf>,
    calls: BTreeMap<ModelCallId, Vec<PathBuf>>,
}

#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    #[error("{}: {error}", file.display())]
    Unreadable { file: PathBuf, error: io::Error },
    #[error("{} is not a recorded exchange: {reason}", file.display())]
    Malformed { file: PathBuf, reason: String },
    #[error("expected recorded model calls in {}, got none; record a run with --record {}", folder.display(), folder.display())]
    Empty { folder: PathBuf },
}

impl Replay {
    pub fn open(folder: &Path) -> Result<Self, RecordingError> {
        let unreadable = |file: &Path| {
            let file = file.to_owned();
            move |error| RecordingError::Unreadable { file, error }
        };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable(folder))? {
            let path = entry.map_err(unreadable(folder))?.path();
            if path.extension().is_some_and(|e| e == "json") {
                files.push(path);
            }
        }
        files.sort();
        let mut replay = Self { folder: folder.to_owned(), answers: HashMap::new(), calls: BTreeMap::new() };
        for file in files {
            let kept = kept(&file)?;
            replay.calls.entry(kept.request.id.clone()).or_default().push(file.clone());
            replay.answers.insert(kept.request.fingerprint(), file);
        }
        if replay.answers.is_empty() {
            return Err(RecordingError::Empty { folder: folder.to_owned() });
        }
        Ok(replay)
    }

    fn missing(&self, ask: &Ask) -> String {
        let folder = self.folder.display();
        let Some(file) = self.calls.get(&ask.id).and_then(|files| files.first()) else {
            return format!(
                "the recording in {folder} has no reply to {} of model {}: the recorded run did not make this call",
                ask.id, ask.model
            );
        };
        let then = kept(file).ok().and_then(|k| serde_json::to_value(k.request).ok()).unwrap_or_default();
        let now = serde_json::to_value(ask).unwrap_or_default();
        let difference = difference(&then, &now, "").unwrap_or_else(|| "not visible".into());
        format!(
            "the recording in {folder} has another request for {}. The first difference is {difference}. Check if the alert, the evidence, the models file or the prompt has changed.",
            ask.id
        )
    }
}

fn kept(file: &Path) -> Result<Kept, RecordingError> {
    let bytes = std::fs::read(file).map_err(|error| RecordingError::Unreadable { file: file.to_owned(), error })?;
    let malformed = |reason: String| RecordingError::Malformed { file: file.to_owned(), reason };
    let kept: Kept = serde_json::from_slice(&bytes).map_err(|e| malformed(e.to_string()))?;
    if kept.casebook_recording != RECORDING_VERSION {
        return Err(malformed(format!(
            "expected version {RECORDING_VERSION}, got {}; use the version of casebook that recorded it",
            kept.casebook_recording
        )));
    }
    Ok(kept)
}

/// The first difference between two requests, with both values.
fn difference(then: &Value, now: &Value, at: &str) -> Option<String> {
    match (then, now) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<_> = a.keys().chain(b.keys()).collect();
            keys.sort();
            keys.dedup();
            keys.iter().find_map(|key| {
                let place = format!("{at}/{key}");
                difference(a.get(*key).unwrap_or(&Value::Null), b.get(*key).unwrap_or(&Value::Null), &place)
            })
        }
        (Value::Array(a), Value::Array(b)) => (0..a.len().max(b.len())).find_map(|n| {
            let place = format!("{at}/{n}");
            difference(a.get(n).unwrap_or(&Value::Null), b.get(n).unwrap_or(&Value::Null), &place)
        }),
        (Value::String(a), Value::String(b)) if a != b => {
            let same = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
            let near =
                |text: &str| one_line(&text.chars().skip(same.saturating_sub(20)).take(60).collect::<String>(), 80);
            Some(format!("at {at}, character {same}: then {:?}, now {:?}", near(a), near(b)))
        }
        (a, b) if a != b => {
            let short = |v: &Value| one_line(&v.to_string(), 80);
            Some(format!("at {at}: then {}, now {}", short(a), short(b)))
        }
        _ => None,
    }
}

#[async_trait]
impl Model for Replay {
    async fn ask(&self, ask: &Ask, _: Duration) -> Result<Answered, AskError> {
        let not_recorded = |message: String| AskError { fault: Fault::NotRecorded, message, attempts: 1 };
        match self.answers.get(&ask.fingerprint()) {
            Some(file) => kept(file).map_err(|e| not_recorded(e.to_string()))?.result,
            None => Err(not_recorded(self.missing(ask))),
        }
    }
}

#[cfg(test)]
mod tests {
    use casebook_protocol::Purpose;

    use super::*;
    use crate::model::{Choice, Message, Part, Reply, Stop};
    use casebook_protocol::Tokens;

    struct Echo;

    #[async_trait]
    impl Model for Echo {
        async fn ask(&self, ask: &Ask, _: Duration) -> Result<Answered, AskError> {
            let reply = Reply { text: ask.id.to_string(), calls: vec![], stop: Stop::Done, kept: None };
            Ok(Answered {
                reply,
                version: "e-1".into(),
                tokens: Tokens::default(),
                estimated: false,
                cost_micros: 1,
                attempts: 1,
            })
        }
    }

    fn ask(id: &str, text: &str) -> Ask {
        Ask {
            id: ModelCallId::new(id).unwrap(),
            model: "m".into(),
            prompt: "plan 1".into(),
            purpose: Purpose::Turn,
            system: vec![],
            messages: vec![Message::User(vec![Part { text: text.into(), cache: false }])],
            tools: vec![],
            choice: Choice::Free,
            format: None,
            max_output: 100,
        }
    }

    #[tokio::test]
    async fn what_was_recorded_is_replayed_and_what_was_not_is_named_with_its_difference() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = record(Arc::new(Echo), folder.path(), "# none").unwrap();
        let time = Duration::from_secs(1);
        let said = recorder.ask(&ask("r1.plan.m1", "the alert is red"), time).await.unwrap();

        let replay = Replay::open(folder.path()).unwrap();
        assert_eq!(replay.ask(&ask("r1.plan.m1", "the alert is red"), time).await.unwrap(), said);
        let other = replay.ask(&ask("r1.plan.m1", "the alert is blue"), time).await.unwrap_err();
        assert_eq!(other.fault, Fault::NotRecorded);
        assert!(other.message.contains("/messages/0/user/0/text, character 13"), "{other}");
        assert!(other.message.contains("red") && other.message.contains("blue"), "{other}");
        let never = replay.ask(&ask("r9.plan.m1", "x"), time).await.unwrap_err();
        assert!(never.message.contains("r9.plan.m1") && never.message.contains("did not make"), "{never}");
    }

    #[test]
    fn a_folder_that_is_no_recording_is_refused_with_advice() {
        let folder = tempfile::tempdir().unwrap();
        let empty = Replay::open(folder.path()).unwrap_err().to_string();
        assert!(empty.contains("--record"), "{empty}");
        std::fs::write(folder.path().join("r1.plan.m1-0.json"), "{}").unwrap();
        assert!(Replay::open(folder.path()).unwrap_err().to_string().contains("not a recorded exchange"));
        assert!(Replay::open(&folder.path().join("nowhere")).is_err());
    }
}
