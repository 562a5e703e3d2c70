use super::*;

fn check(claim: &str, expect: &[&str]) {
    let mut corpus = Corpus::default();
    corpus.add_value(
        &serde_json::json!({"src": "192.168.2.60", "cmd": "bash  -c 'id'", "path": "C:\\Windows\\System32\\reg.exe",
        "n": 376, "cipher": "TLS_RSA_WITH_AES_256_GCM_SHA384", "wrapped": "{\"user\":\"Tomcat\"}", "seen": "2022-05-11 18:10", "peer": "fd00:a8af::d48e", "resp_bytes": 70042, "duration": 705.174, "md5": "d41d8cd98f00b204e9800998ecf8427e"}),
    );
    let times: Vec<Timestamp> =
        ["2022-05-11T18:10:22.138Z", "2022-05-11T18:11:21.2Z"].iter().map(|t| t.parse().unwrap()).collect();
    assert_eq!(faults(claim, &corpus, &times), expect);
}

#[test]
fn what_the_evidence_states_may_be_stated() {
    check("at 18:10:22 `tomcat` ran `bash -c 'id'` from 192.168.2.60, 376 times", &[]);
    check("2022-05-11T18:10:22.138Z: `c:\\windows\\system32\\REG.exe` (d41d8cd98f00b204e9800998ecf8427e)", &[]);
    check("59 s later it ran `bash -c…` and `C:\\Windows\\Sys…`", &[]);
    check("T1059.004 by pid-less process", &[]);
}

#[test]
fn what_it_does_not_state_may_not() {
    check("from 192.168.2.6", &["the address 192.168.2.6 does not occur in what is cited"]);
    check("at 18:10:23", &["the time 18:10:23 does not occur in what is cited"]);
    check("by `root`", &["`root` does not occur in what is cited"]);
    check("377 times", &["the number 377 does not occur in what is cited"]);
    check("37 times", &["the number 37 does not occur in what is cited"]);
    check("70 seconds later", &["the duration 70 does not occur in what is cited"]);
    check(
        "hash d41d8cd98f00b204e9800998ecf8427f",
        &["the hash d41d8cd98f00b204e9800998ecf8427f does not occur in what is cited"],
    );
}

#[test]
fn a_time_may_be_told_in_other_words() {
    for claim in [
        "at 20:10:22+02:00",
        "at 2022-05-11T20:10:22.138+02:00",
        "at 13:10 UTC-5",
        "at 6:10 pm UTC",
        "at 6:10:22 PM",
        "on 11 May 2022, 18:10 UTC",
        "on May 11, 2022 at 18:10:22Z.",
        "On May 12 at 03:10:22 UTC+9",
        "2022-05-11 18:11:21",
    ] {
        check(claim, &[]);
    }
}

#[test]
fn another_time_is_another_time_in_any_words() {
    check("at 20:10:22+01:00", &["the time 20:10:22+01:00 does not occur in what is cited"]);
    check("at 6:10 am UTC", &["the time 6:10 am UTC does not occur in what is cited"]);
    check("at 18:10+05:30", &["the time 18:10+05:30 does not occur in what is cited"]);
    check("at 10:22", &["the time 10:22 does not occur in what is cited"]);
    check("on 12 May 2022 at 18:10", &["the date 12 May 2022 does not occur in what is cited"]);
    check("on 2022-05-12", &["the date 2022-05-12 does not occur in what is cited"]);
    check("2022-05-12T18:10:22Z", &["the time 2022-05-12T18:10:22Z does not occur in what is cited"]);
}

#[test]
fn a_piece_of_something_longer_is_no_number() {
    check("18 times", &["the number 18 does not occur in what is cited"]);
    check("2022 times", &["the number 2022 does not occur in what is cited"]);
    check("192 times", &["the number 192 does not occur in what is cited"]);
    check("256 records", &["the number 256 does not occur in what is cited"]);
    check("hash d41d8cd98f00", &[]);
    check("hash d41d8cd98f01", &["the hash d41d8cd98f01 does not occur in what is cited"]);
}

#[test]
fn an_address_is_itself_in_any_notation() {
    check("from fd00:a8af:0:0:0:0:0:d48e and `fd00:a8af:0000::d48e`", &[]);
    check("in 192.168.2.0/24", &[]);
    check("in 192.168.3.0/24", &["the address 192.168.3.0/24 does not occur in what is cited"]);
    check("from 192.168.2.61:443", &["the address 192.168.2.61:443 does not occur in what is cited"]);
    check("from fd00:a8af::d48f", &["the address fd00:a8af::d48f does not occur in what is cited"]);
}

#[test]
fn an_amount_may_be_told_in_other_units() {
    check("70.0 kB, 68.4 KiB, 68 KB and 70,042 bytes in 11.8 minutes, 705 s or 705174 ms", &[]);
    check("71.0 kB", &["the amount 71.0 does not occur in what is cited"]);
    check("12.8 minutes", &["the duration 12.8 does not occur in what is cited"]);
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
