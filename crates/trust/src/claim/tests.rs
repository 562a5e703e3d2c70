use casebook_table::{expect_file, lines};

use super::*;

#[test]
fn each_claim_states_only_what_the_evidence_states() {
    let mut corpus = Corpus::default();
    corpus.add_value(
        &serde_json::json!({"src": "192.168.2.60", "cmd": "bash  -c 'id'", "path": "C:\\Windows\\System32\\reg.exe",
        "n": 376, "cipher": "TLS_RSA_WITH_AES_256_GCM_SHA384", "wrapped": "{\"user\":\"Tomcat\"}", "seen": "2022-05-11 18:10", "peer": "fd00:a8af::d48e", "resp_bytes": 70042, "duration": 705.174, "md5": "d41d8cd98f00b204e9800998ecf8427e"}),
    );
    let times: Vec<Timestamp> =
        ["2022-05-11T18:10:22.138Z", "2022-05-11T18:11:21.2Z"].iter().map(|t| t.parse().unwrap()).collect();
    lines(&expect_file!["claims.txt"], |claim| match faults(claim, &corpus, &times) {
        none if none.is_empty() => "fine".to_owned(),
        some => some.join("; "),
    });
}

#[test]
fn a_number_that_was_asked_for_is_no_result() {
    let mut corpus = Corpus::default();
    corpus.add_query(&serde_json::json!({"terms": ["mara"], "limit": 30, "before_seconds": 60}));
    assert_eq!(faults("30 records name `mara`", &corpus, &[]), ["the number 30 does not occur in what is cited"]);
    assert!(faults("nothing of `mara` in the 60 seconds before", &corpus, &[]).is_empty());
}

#[test]
fn a_number_that_stands_for_something_else_is_no_count() {
    let mut corpus = Corpus::default();
    corpus.add_text("sshd[4711]: Failed password for root from 10.0.0.9 port 2222 ssh2 (message repeated 57 times)");
    corpus.add_value(&serde_json::json!({"Attempts": "31", "note": "count=12; user 88"}));
    corpus.add_text("account 5005 logged on, eventid 4625, timestamp 1234, port number 3389");
    corpus.add_number(9);
    let check = |claim: &str, held: bool| assert_eq!(faults(claim, &corpus, &[]).is_empty(), held, "{claim}");
    for claim in ["57 times", "31 failed attempts", "12 events", "9 records", "port 2222", "process 4711"] {
        check(claim, true);
    }
    for claim in [
        "2222 times",
        "In 4711 attempts: root",
        "88 matching records",
        "2222 events.",
        "5005 times",
        "4625 events",
        "1234 times",
        "3389 lines",
    ] {
        check(claim, false);
    }
    let said = faults("2222 times", &corpus, &[]);
    assert_eq!(said, ["as a count the number 2222 does not occur in what is cited"]);
}
