//! `casebook verify` over NATS: what is changed on the server is named.

use std::process::Command;

use async_nats::jetstream;
use casebook_runtime::nats::streams;
use casebook_tests::generate;

use super::service::evidence;
use super::*;

struct Reader {
    folder: tempfile::TempDir,
    url: String,
}

impl Reader {
    fn casebook(&self, arguments: &[&str], code: i32) -> String {
        let mut command = Command::new(run::program("casebook"));
        let output = command.args(arguments).args(["--nats", &self.url]).current_dir(self.folder.path()).output();
        let output = output.unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        text
    }
}

/// Deletes the last message of a subject on the server.
async fn delete_last(connection: &Connection, stream: &str, subject: &str) {
    let context = jetstream::new(connection.client().clone());
    let stream = context.get_stream(stream).await.unwrap();
    let last = stream.get_last_raw_message_by_subject(subject).await.unwrap();
    assert!(stream.delete_message(last.sequence).await.unwrap());
}

#[test]
fn removed_report_and_removed_last_events_are_found_over_nats() {
    process::run(async {
        let nats = Nats::start().unwrap();
        let evidence = evidence(nats.folder());
        let reader = Reader { folder: tempfile::tempdir().unwrap(), url: nats.broker.url() };
        let team = Team::start(nats, &evidence, Settings::default()).await;
        let id = open(&team.hub, generate::ALERT.as_bytes()).await;
        let report = concluded(&team.hub, &id).await;
        let head = report.proof.unwrap().head.seq;
        let store = team.hub.env().store;
        let kept = async || store.recorded(&id, archive::REPORT_KEY).await.unwrap();
        wait::soon(PATIENCE, kept).await.expect("the report is recorded");
        reader.casebook(&["export", id.as_str(), "-o", "kept.json"], 0);
        let evidence = evidence.display().to_string();
        let all = ["verify", id.as_str(), "--report", "kept.json", "--evidence", &evidence];
        let intact = reader.casebook(&all, 0);
        for needed in [
            "kept.json: it is what the log gives",
            "evidence files: the hash is the recorded one",
            "no difference was found",
        ] {
            assert!(intact.contains(needed), "{intact}");
        }

        delete_last(&team.hub, &streams::results(None), &subject::result(&id, archive::REPORT_KEY)).await;
        let found = reader.casebook(&["verify", id.as_str()], 4);
        assert!(found.contains("the investigation is closed and its report is not in the store"), "{found}");

        delete_last(&team.hub, streams::LOG, &subject::log(&id)).await;
        let found = reader.casebook(&["verify", id.as_str()], 0);
        assert!(found.contains("it is not closed, so its last events may be missing"), "{found}");
        let found = reader.casebook(&["verify", id.as_str(), "--report", "kept.json"], 4);
        assert!(found.contains(&format!("kept.json was made from {head} events, and the log has")), "{found}");
    })
    .unwrap();
}
