//! Whole investigations of cases with ground truth: our own demo, and those of the folder that
//! CASEBOOK_CASES names, where it is set.

use std::path::Path;
use std::sync::Arc;

use casebook_cli::embedded::Sources;
use casebook_expert::team::TeamFolder;
use casebook_protocol::{Alert, Report, Verdict};
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

#[test]
fn demo_without_its_sources_file_is_not_dismissed() {
    let (demo, folder) = (run::demo(), tempfile::tempdir().unwrap());
    let investigated = |team: Option<&str>, name: &str| {
        let alert = Alert::parse(&std::fs::read(demo.join("alert.json")).unwrap()).unwrap();
        let team = team.map(|text| {
            let team = folder.path().join(format!("{name}-team"));
            std::fs::create_dir(&team).unwrap();
            std::fs::write(team.join("sources.toml"), text).unwrap();
            Arc::new(TeamFolder::read(&team).unwrap())
        });
        let sources = Sources { evidence: Some(demo.join("evidence")), team, rule_set: None };
        run::investigate_by(sources, alert, &folder.path().join(name)).unwrap()
    };
    let confirmed = std::fs::read_to_string(demo.join("team/sources.toml")).unwrap();
    let draft = confirmed.replace("confirmed = true", "confirmed = false");
    assert_eq!(investigated(Some(&confirmed), "confirmed").verdict, Verdict::FalsePositive);
    for (team, name) in [(None, "none"), (Some(draft.as_str()), "draft")] {
        let report = investigated(team, name);
        assert_eq!(report.verdict, Verdict::Inconclusive, "{name}");
        let missing = report.ruling.missing.join("\n");
        assert!(missing.contains("two independent checked sources"), "{name}: {missing}");
    }
}

/// The whole team as processes of its own over a real server ends in the report of the one process.
fn same_over_nats(case: &Path, embedded: &Report) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = run::cluster().unwrap();
    command.arg(case.join("alert.json"));
    run::with_evidence(&mut command, case);
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
