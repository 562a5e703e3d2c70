use std::collections::BTreeMap;

use casebook_protocol::CallId;
use casebook_table::{blocks, expect_file};

use super::*;
use casebook_evidence::facet::Facets;

/// The fields of a record, each on a line of its own.
pub(super) fn fields(text: &str) -> BTreeMap<String, String> {
    let pair = |line: &str| line.split_once(" = ").map(|(name, value)| (name.to_owned(), value.to_owned()));
    text.lines().map(|line| pair(line).unwrap_or_else(|| panic!("no field: {line}"))).collect()
}

fn rec(fields: BTreeMap<String, String>, raw: &str) -> Rec {
    let facets = Facets::read(&fields, raw);
    Rec::of(CallId::new("r1.investigate.identity.t1.0").unwrap(), fields, facets)
}

/// The claim about a record with this text.
pub(super) fn claimed(fields: BTreeMap<String, String>, raw: &str) -> String {
    let mut rec = rec(fields, raw);
    raw.clone_into(&mut rec.raw);
    claim(&rec, &[], None, false, &|_| true)
}

#[test]
fn each_record_is_told_as_on_file() {
    blocks(&expect_file!["cases.txt"], |_, text| {
        let of = |text: &str| {
            let fields = fields(text);
            let message = fields.get("message").cloned().unwrap_or_default();
            rec(fields, &message)
        };
        let recs: Vec<Rec> = text.split("\n\n").map(of).collect();
        let (main, others) = recs.split_first().unwrap();
        claim(main, &others.iter().collect::<Vec<_>>(), None, false, &|_| true)
    });
}

/// The Director knows another product's alert by this word.
#[test]
fn the_claim_about_an_alert_begins_with_its_word() {
    let alert = "AlertName = Password Spray\nAlertSeverity = High\nProviderName = IPC";
    assert!(claimed(fields(alert), "").starts_with(casebook_trust::claim::JUDGEMENT));
}

#[test]
fn a_program_and_arguments_that_stand_apart_are_told_apart() {
    let exec = "process_exec.process.binary = /usr/bin/nsenter\nprocess_exec.process.arguments = -t 1 -m bash\n\
                process_exec.parent.binary = /bin/bash";
    let exec = rec(fields(exec), "");
    let together = |text: &str| !text.contains("nsenter -t");
    let told = claim(&exec, &[], None, false, &together);
    assert_eq!(told, "`/bin/bash` started `/usr/bin/nsenter` with `-t 1 -m bash`");
}
