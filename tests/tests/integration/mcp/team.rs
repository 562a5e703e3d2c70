//! `casebook mcp --nats`: a client of a team of processes, with the rights of those who read and of those
//! who send.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use casebook_tests::{generate, run};
use serde_json::{Value, json};

use super::script::{Client, LEGACY, text};

/// `casebook cluster`; asked to stop with this value.
struct Cluster(Child);

impl Drop for Cluster {
    fn drop(&mut self) {
        let asked = Command::new("kill").arg(self.0.id().to_string()).status();
        if !asked.is_ok_and(|status| status.success()) {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

#[test]
fn client_opens_and_reads_investigations_of_a_team() {
    let folder = generate::case().unwrap();
    let program = run::program("casebook");
    let mut command = run::cluster().unwrap();
    command.args(["--evidence", "evidence"]);
    command.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut cluster = Cluster(command.spawn().unwrap());
    let mut lines = BufReader::new(cluster.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    // The command line that it tells people, from the server on.
    let mut told = |what: &str| -> Vec<String> {
        let line = lines.find(|line| line.trim_start().starts_with(what)).unwrap();
        let words = line.split_whitespace().skip_while(|word| *word != "--nats");
        words.skip(1).step_by(2).take(2).map(|word| word.trim_matches('\'').to_owned()).collect()
    };
    let (sender, reader) = (told("casebook alert"), told("casebook watch"));
    let place = |file: &str| folder.path().join(file).display().to_string();
    let (publisher, credentials) = (place(&sender[1]), place(&reader[1]));
    let server = [text(&program), "mcp", "--nats", &reader[0], "--credentials", &credentials];
    let mut client = Client::stdio(&[&server[..], &["--publisher-credentials", &publisher]].concat(), LEGACY);
    let alert: Value = serde_json::from_str(generate::ALERT).unwrap();
    let opened = client.json("open_investigation", &json!({"alert": alert}));
    let again = client.json("open_investigation", &json!({"alert": alert}));
    assert_eq!((&opened["id"], &opened["new"]), (&again["id"], &Value::Null));
    let id = opened["id"].as_str().unwrap();
    let standing = client.closed(id);
    assert!(standing["verdict"].is_string(), "{standing}");
    let citation = client.json("get_findings", &json!({"id": id, "full": true}))["findings"][0]["citations"][0].clone();
    let artifact = json!({"id": id, "artifact": citation["artifact"]});
    assert!(client.json("get_evidence", &artifact)["bytes"].as_u64().unwrap() > 0);
    assert_eq!(client.json("search_investigations", &json!({"text": "web-017"}))["total"], 1);
    // A reader who opens an investigation gets an error.
    let mut client = Client::stdio(&server, LEGACY);
    let refused = client.call("open_investigation", &json!({"alert": {"id": "other"}})).unwrap_err();
    assert!(!refused.is_empty(), "{refused}");
}
