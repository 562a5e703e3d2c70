//! A team across hosts, which are network namespaces: hosts are cut off, lost and restarted.

use std::process::Command;
use std::time::Instant;

use casebook_tests::{hosts, nats, run};

#[test]
fn team_across_hosts_survives_cuts_losses_and_restarts() {
    if hosts::skipped() {
        return;
    }
    // In the sandbox nothing can be installed.
    let server = nats::program().unwrap();
    run::program("casebook-hub");
    let begun = Instant::now();
    let mut lab = Command::new(env!("CARGO_BIN_EXE_casebook-lab"));
    // The case of slow links takes more than a minute: `casebook-lab hosts --case slow`.
    let cases = ["Leader", "Server", "Hub", "Worker", "Quorum", "Rolling"];
    let named = cases.iter().flat_map(|case| ["--case".to_owned(), case.to_lowercase()]);
    let output = lab.arg("hosts").args(named).env("CASEBOOK_NATS_SERVER", server).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
    println!("{said}\n{:.0} s", begun.elapsed().as_secs_f64());
    for case in cases {
        assert!(said.contains(&format!("{case}: finished")), "{said}");
    }
    assert!(said.contains("18 investigations"), "{said}");
}
