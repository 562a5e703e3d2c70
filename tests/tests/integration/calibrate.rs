//! Planted falsehoods over whole investigations: none that code can detect is believed, with any
//! Critic, and no truth is lost to the checks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use casebook_agent::reasoner::Reasoner;
use casebook_cli::embedded::{self, NoObserver};
use casebook_cli::home::Home;
use casebook_cli::reasoners::Reasoners;
use casebook_cli::stop::Stop;
use casebook_protocol::Budget;
use casebook_runtime::process;
use casebook_tests::calibrate::kind::{Expect, Kind};
use casebook_tests::calibrate::{Calibrated, Options, calibrate, plant, stage, usual_critics};
use casebook_tests::lab::{FORMS, Lab};
use casebook_tests::model::brain::Brain;
use casebook_tests::run;

fn measured(cases: &[PathBuf], trials: usize) -> Calibrated {
    measured_by(cases, trials, &usual_critics())
}

fn measured_by(cases: &[PathBuf], trials: usize, critics: &[(String, Arc<dyn Reasoner>)]) -> Calibrated {
    let data = tempfile::tempdir().unwrap();
    process::run(async {
        let home = Home::open(data.path()).unwrap();
        let (_stopper, mut stop) = Stop::by_hand();
        for case in cases {
            let options = run::options(case, data.path(), Budget::default(), Reasoners::analyst()).unwrap();
            embedded::investigate_in(&home, options, &mut NoObserver, &mut stop).await.unwrap();
        }
        let ids = home.store.investigations().await.unwrap();
        let options = Options { trials, seed: 1 };
        let mut rounds = Vec::new();
        for id in &ids {
            rounds.extend(stage::stages(home.store.as_ref(), id).await.unwrap());
        }
        let claims =
            || -> Vec<String> { plant::trials(&rounds, 50, 3).into_iter().map(|trial| trial.draft.claim).collect() };
        assert_eq!(claims(), claims(), "a seed plants the same findings");
        calibrate(&home.store, &ids, options, critics).await.unwrap()
    })
    .unwrap()
}

fn holds(result: &Calibrated, planted: usize, kinds: usize) {
    assert!(result.planted >= planted, "{} of {planted} could be planted", result.planted);
    assert_eq!(result.failures, [], "code failed");
    for measure in &result.measures {
        let had: BTreeSet<Kind> = measure.rows.iter().map(|r| r.kind).collect();
        assert!(had.len() >= kinds, "{}: only {} kinds had trials", measure.critic, had.len());
        assert_eq!(measure.unscored, 0, "{}: a Review failed", measure.critic);
    }
    // What no check stops is left to the Critic: a measure in which nothing is believed measures nothing.
    let alone = &result.measures[0];
    assert!(alone.rows.iter().any(|r| r.expect == Expect::Refused && r.believed > 0));
    let (checks, analyst) = (alone.passed.auroc.unwrap(), result.measures[1].passed.auroc.unwrap());
    assert!(analyst > checks + 0.1, "the analyst ({analyst:.3}) adds to the checks ({checks:.3})");
}

#[test]
fn nothing_false_that_code_can_tell_is_believed_of_the_demo() {
    holds(&measured(&[run::demo()], 240), 240, 25);
}

#[test]
fn a_model_as_critic_is_measured_like_the_others() {
    let lab = Lab::start(Brain::default(), FORMS[0]).unwrap();
    let critic = vec![("scripted".to_owned(), lab.reasoners().unwrap().critic())];
    let result = measured_by(&[run::demo()], 40, &critic);
    let [measure] = result.measures.as_slice() else { panic!("one Critic, {} measures", result.measures.len()) };
    assert_eq!((measure.critic.as_str(), measure.unscored), ("scripted", 0));
    assert_eq!(result.failures, [], "whatever the model believes, code stands in the way");
    assert!(measure.rows.iter().any(|r| r.expect == Expect::Refused && r.believed > 0), "the script trusts the checks");
    assert_eq!(lab.violations(), [""; 0]);
}

#[test]
fn nothing_false_that_code_can_tell_is_believed_of_the_cases() {
    let Some(root) = std::env::var_os("CASEBOOK_CASES") else {
        println!("CASEBOOK_CASES names no folder of cases: only the demo is measured");
        return;
    };
    holds(&measured(&run::cases(Path::new(&root)).unwrap(), 2_000), 2_000, 25);
}

#[test]
fn without_material_it_says_what_to_give() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join(".casebook")).unwrap();
    let check = |arguments: &[&str], expected: [&str; 2]| {
        let mut lab = Command::new(env!("CARGO_BIN_EXE_casebook-lab"));
        let ended = lab.arg("calibrate").args(arguments).current_dir(place.path()).output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{said}");
        assert!(expected.iter().all(|part| said.contains(part)), "{said}");
    };
    check(&[], ["no finished investigation in .casebook", "--cases DIR"]);
    check(&["--cases", "."], ["no case in .", "alert.json and evidence/"]);
}
