//! Attacks inside the innocent process of the demo; `casebook-lab deceive` tries all of them, and other cases.

use casebook_tests::deceive::{self, Variant};
use casebook_tests::run;

fn some(all: Vec<Variant>, names: &[&str]) -> Vec<Variant> {
    let picked: Vec<Variant> = all.into_iter().filter(|v| names.iter().any(|name| v.name.contains(name))).collect();
    assert_eq!(picked.len(), names.len(), "each name is of one variant");
    picked
}

#[test]
fn attack_inside_an_innocent_process_is_not_dismissed() {
    assert!(deceive::attacks().len() >= 60);
    let names = [
        "kernel: alerted process loads a module from a file",
        "network: child downloads",
        "process: child looks harmless by its name",
        "persistence: child writes the image",
        "account: child adds an account",
        "service: child enables a service",
        "script: edited before it ran",
        "package: from a mirror with a similar path",
    ];
    for (name, report) in deceive::verdicts(&some(deceive::attacks(), &names), |_| run::demo()).unwrap() {
        assert!(!deceive::dismissed(&report), "{name}: {:?}", report.ruling);
    }
}

#[test]
fn harmless_change_stays_dismissible() {
    assert!(deceive::benign().len() >= 20);
    let names = ["another host name", "child copies a system file", "script was read before"];
    for (name, report) in deceive::verdicts(&some(deceive::benign(), &names), |_| run::demo()).unwrap() {
        assert!(deceive::dismissed(&report), "{name}: {:?}", report.ruling);
    }
}
