//! Whole investigations of cases with ground truth: our own demo, and those of the folder that
//! CASEBOOK_CASES names, where it is set.

use std::path::Path;

use casebook_protocol::Report;
use casebook_report::compare::stable;
use casebook_tests::run;
use casebook_tests::score::{Score, Summary, score};

fn sound(name: &str, score: &Score) {
    assert_eq!(score.grounded, 1.0, "{name}: every event cites a record that exists");
    assert!(score.ordered, "{name}: times never go back");
    assert_eq!(score.duplicates, 0, "{name}: each occurrence is on the Timeline once");
    assert!(score.gaps <= 3, "{name}: at most three gaps");
    assert_ne!(score.verdict, "wrong", "{name}");
}

#[test]
fn the_demo_is_told_and_not_misjudged() {
    let folder = run::demo();
    let report = run::investigate_case(&folder).unwrap();
    sound("demo", &score(&folder, &report).unwrap());
    same_over_nats(&folder, &report);
}

/// The whole team as processes of its own over a real server ends in the report of the one process.
fn same_over_nats(case: &Path, embedded: &Report) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = run::cluster().unwrap();
    command.arg(case.join("alert.json")).arg("--evidence").arg(case.join("evidence"));
    command.arg("--data").arg(folder.path().join("data")).arg("--out").arg(folder.path().join("report"));
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].map(|b| String::from_utf8_lossy(&b).into_owned()).concat();
    assert!(output.status.success(), "{}: {said}", case.display());
    let report: Report =
        serde_json::from_slice(&std::fs::read(folder.path().join("report/report.json")).unwrap()).unwrap();
    assert_eq!(stable(&report), stable(embedded), "{}", case.display());
}

#[test]
fn cases_with_ground_truth_hold() {
    let Some(root) = std::env::var_os("CASEBOOK_CASES") else {
        println!("CASEBOOK_CASES names no folder of cases: only the demo is scored");
        return;
    };
    let mut all = Vec::new();
    for case in run::cases(Path::new(&root)).unwrap() {
        let report = run::investigate_case(&case).unwrap();
        let score = score(&case, &report).unwrap();
        sound(&case.display().to_string(), &score);
        all.push(score);
        same_over_nats(&case, &report);
    }
    let Summary { must, right, .. } = Summary::of(&all);
    assert!(must >= 0.8, "an average of {must:.2} of the required facts is found");
    assert!(right * 3 >= all.len() * 2, "{right} of {} verdicts are right", all.len());
}
