//! Tests everything that reads foreign input with damaged input: the citation checker, the evidence parsers,
//! the message decoders. Real inputs are changed at random from a seed. The result must be an answer or an
//! error, never a panic.
//!
//! `cargo test` runs few rounds; `cargo run -p casebook-tests --bin casebook-lab -- fuzz 100000 7` runs longer.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use casebook_cli::home::Home;
use casebook_evidence::{Catalog, EvidenceTools};
use casebook_hub::archive;
use casebook_protocol::StepNotice;
use casebook_protocol::key::outcome_key;
use casebook_protocol::{Alert, Answer, ArtifactId, FindingDraft, Outcome, Recorded, Task, ToolCall};
use casebook_runtime::{process, stored, wire};
use casebook_trust::{Exhibits, claim};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{Result, run};

/// Rounds on inputs in memory for each round on a folder of evidence, which is slower.
const PER_FOLDER: usize = 100;
/// Bytes of each evidence file to damage.
const KEPT: usize = 24 << 10;

pub struct Inputs {
    alert: Vec<u8>,
    files: Vec<(String, Vec<u8>)>,
    outcomes: Vec<Outcome>,
    log: Vec<Vec<u8>>,
    cited: Vec<(ToolCall, Vec<u8>)>,
    findings: Vec<FindingDraft>,
}

impl Inputs {
    pub fn of(folder: &Path) -> Result<Self> {
        let data = tempfile::tempdir()?;
        run::investigate_in(&folder.join("alert.json"), &folder.join("evidence"), data.path())?;
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder.join("evidence"))? {
            let path = entry?.path();
            let mut bytes = std::fs::read(&path)?;
            bytes.truncate(KEPT);
            files.push((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), bytes));
        }
        files.sort();
        let alert = std::fs::read(folder.join("alert.json"))?;
        process::run(async { Self::recorded(data.path(), alert, files).await })?
    }

    async fn recorded(data: &Path, alert: Vec<u8>, files: Vec<(String, Vec<u8>)>) -> Result<Self> {
        let home = Home::reading(data)?;
        let store = home.store.as_ref();
        let all = store.investigations().await?;
        let id = all.first().ok_or("nothing was investigated")?;
        let state = archive::state(store, id).await?;
        let mut inputs = Self { alert, files, outcomes: vec![], log: vec![], cited: vec![], findings: vec![] };
        for task in state.tasks.keys() {
            if let Some(bytes) = store.recorded(id, &outcome_key(task)).await? {
                inputs.outcomes.push(stored::read(&bytes)?);
            }
        }
        let answers = inputs.outcomes.iter().filter_map(|o| o.result.as_ref().ok());
        inputs.findings = answers
            .filter_map(|a| if let Answer::Investigate(findings) = a { Some(findings.clone()) } else { None })
            .flatten()
            .collect();
        for call in state.calls.values().map(|made| &made.call).filter(|call| call.bytes < 40_000) {
            if let Some(bytes) = store.get(&call.result).await? {
                inputs.cited.push((call.clone(), bytes));
            }
        }
        let log = archive::log(store, id).await?;
        inputs.log = log.iter().filter_map(|entry| serde_json::to_vec(entry).ok()).collect();
        Ok(inputs)
    }
}

/// Runs `rounds` rounds from `seed`. Fails with the round that panicked.
pub fn run(inputs: &Inputs, rounds: usize, seed: u64) -> Result<()> {
    for round in 0..rounds {
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        dice.set_stream(round as u64);
        let place = || format!("round {round} of seed {seed}");
        catch_unwind(AssertUnwindSafe(|| one(inputs, &mut dice))).map_err(|_| format!("{}: a panic", place()))?;
        if round % PER_FOLDER == 0 {
            let folder = catch_unwind(AssertUnwindSafe(|| evidence(inputs, &mut dice)));
            folder.map_err(|_| format!("{}: a panic over evidence", place()))??;
        }
    }
    Ok(())
}

fn one(inputs: &Inputs, dice: &mut ChaCha8Rng) {
    match dice.random_range(0..5) {
        0 => {
            let _ = Alert::parse(&damaged(&inputs.alert, dice));
        }
        1 => messages(inputs, dice),
        2 => {
            if let Some(entry) = inputs.log.choose(dice) {
                let _ = serde_json::from_slice::<Recorded>(&damaged(entry, dice));
            }
        }
        _ => citations(inputs, dice),
    }
}

fn messages(inputs: &Inputs, dice: &mut ChaCha8Rng) {
    let Some(outcome) = inputs.outcomes.choose(dice) else { return };
    if let Ok(bytes) = wire::encode(outcome) {
        let bytes = damaged(&bytes, dice);
        let _ = wire::decode::<Outcome>(&bytes);
        let _ = wire::decode::<Task>(&bytes);
        let _ = wire::decode::<StepNotice>(&bytes);
    }
    if let Ok(bytes) = stored::write(outcome) {
        let _ = stored::read::<Outcome>(&damaged(&bytes, dice));
    }
}

fn citations(inputs: &Inputs, dice: &mut ChaCha8Rng) {
    let Some((call, bytes)) = inputs.cited.choose(dice) else { return };
    let bytes = if dice.random() { damaged(bytes, dice) } else { bytes.clone() };
    let Some(finding) = inputs.findings.choose(dice) else { return };
    let mut finding = serde_json::to_vec(finding)
        .ok()
        .and_then(|json| serde_json::from_slice::<FindingDraft>(&damaged(&json, dice)).ok())
        .unwrap_or_else(|| finding.clone());
    finding.claim = String::from_utf8_lossy(&damaged(finding.claim.as_bytes(), dice)).into_owned();
    let mut exhibits = Exhibits::default();
    // All citations of the finding lead to this result.
    for citation in &finding.citations {
        let call = ToolCall { id: citation.call().clone(), result: ArtifactId::of(&bytes), ..call.clone() };
        exhibits.add(call, dice.random(), &bytes);
    }
    let checked = exhibits.check(&finding);
    assert_eq!(checked.citations.len(), finding.citations.len(), "each citation is checked once");
    assert_eq!(checked, exhibits.check(&finding), "the check is a function of what it is given");
    let _ = claim::faults(&finding.claim, &claim::Corpus::default(), &[]);
}

/// Loads a folder of damaged files, and reads its records.
fn evidence(inputs: &Inputs, dice: &mut ChaCha8Rng) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs)?;
    for (name, bytes) in &inputs.files {
        std::fs::write(logs.join(name), damaged(bytes, dice))?;
    }
    for (name, bytes) in packed(&inputs.files)? {
        std::fs::write(logs.join(name), damaged(&bytes, dice))?;
    }
    let Ok(catalog) = Catalog::open(&logs, &folder.path().join("index.sqlite"), &mut |_| {}) else { return Ok(()) };
    let ids: Vec<String> = catalog.sources().iter().map(|s| s.id.clone()).collect();
    let tools = EvidenceTools::new(Arc::new(catalog), &ids);
    let found = tools.call("search", r#"{"terms":["a"],"limit":200,"include_fields":true}"#)?;
    serde_json::from_str::<serde_json::Value>(&found).map_err(|e| format!("expected JSON as the answer: {e}"))?;
    for id in &ids {
        tools.call("describe_source", &serde_json::json!({"source": id}).to_string())?;
    }
    Ok(())
}

/// The start of each file in archives.
fn packed(files: &[(String, Vec<u8>)]) -> Result<Vec<(String, Vec<u8>)>> {
    let starts = || files.iter().map(|(name, bytes)| (name, bytes.get(..2_000).unwrap_or(bytes)));
    let mut tar = tar::Builder::new(Vec::new());
    let mut zip = rawzip::ZipArchiveWriter::new(Vec::new());
    for (name, bytes) in starts() {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, name, bytes)?;
        let (mut entry, config) = zip.new_file(name).compression_method(rawzip::CompressionMethod::DEFLATE).start()?;
        let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::fast()));
        writer.write_all(bytes)?;
        let (encoder, descriptor) = writer.finish()?;
        encoder.finish()?;
        entry.finish(descriptor)?;
    }
    let tar = tar.into_inner()?;
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    gz.write_all(&tar)?;
    Ok(vec![("a.zip".into(), zip.finish()?), ("b.tar".into(), tar), ("c.tar.gz".into(), gz.finish()?)])
}

fn damaged(bytes: &[u8], dice: &mut ChaCha8Rng) -> Vec<u8> {
    const PIECES: [&[u8]; 14] = [
        b"\0",
        b"\xff\xfe",
        b"\xf0\x9f\x92",
        b"{",
        b"]]]]",
        b"\"",
        b"\\u0000",
        b"99999999999999999999",
        b"-1",
        b"\n",
        "\u{202e}…`".as_bytes(),
        b"25:61:61",
        b"::ffff:1.2.3.4:5",
        b"1e999",
    ];
    let mut bytes = bytes.to_vec();
    for _ in 0..=dice.random_range(0..4) {
        let at = dice.random_range(0..bytes.len() + 1);
        let end = (at + dice.random_range(0..40)).min(bytes.len());
        match dice.random_range(0..6) {
            0 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << dice.random_range(0..8);
                }
            }
            1 => drop(bytes.drain(at..end)),
            2 => {
                let copy: Vec<u8> = bytes.drain(at..end).collect();
                bytes.splice(at..at, [copy.as_slice(), copy.as_slice()].concat());
            }
            3 if dice.random_ratio(1, 4) => bytes.truncate(at),
            _ => {
                let piece = PIECES.choose(dice).copied().unwrap_or_default();
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
    bytes
}
