//! `casebook investigate` on a disk that is full at some point: it ends, and goes on to the same report.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use casebook_protocol::Report;
use casebook_report::compare::stable;
use casebook_tests::disk::Disk;
use casebook_tests::{generate, run, wait};

/// The longest time in which a run has to end.
const BOUND: Duration = Duration::from_secs(60);
/// Sizes of the disk in KiB: from the first file to the last write.
const SIZES: [u64; 30] = [
    8, 16, 24, 40, 64, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600, 650, 700, 750, 800, 850, 900, 950, 1000,
    1050, 1100, 1200, 1300, 1500, 1800,
];

/// Runs `casebook` to its end. Fails if it does not end in time.
fn ends(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(run::program("casebook"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    if wait::found(BOUND, || child.try_wait().unwrap()).is_none() {
        child.kill().unwrap();
        panic!("{arguments:?} does not end: {:?}", child.wait_with_output());
    }
    child.wait_with_output().unwrap()
}

fn report(folder: &Path, out: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(folder.join(out).join("report.json")).unwrap();
    stable(&serde_json::from_str::<Report>(&text).unwrap())
}

#[test]
fn a_disk_that_is_full_at_any_point_ends_the_run_and_with_room_it_goes_on() {
    let case = generate::case().unwrap();
    let folder = case.path();
    let investigate = |data: &str, out: &str| {
        ends(folder, &["investigate", "alert.json", "--evidence", "evidence", "--data", data, "--out", out])
    };
    assert!(investigate("whole", "whole-out").status.success());
    let expected = report(folder, "whole-out");
    let (mut full, mut of_worker) = (0, 0);
    for (n, size) in SIZES.into_iter().enumerate() {
        let Some(disk) = Disk::new(size) else { return };
        let data = disk.path().join("data").display().to_string();
        let out = format!("out-{size}");
        let output = investigate(&data, &out);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => {}
            Some(1) => {
                full += 1;
                of_worker += usize::from(said.contains("cannot record "));
                assert!(said.contains("full") || said.contains("No space left"), "{size}: {said}");
                assert!(said.contains("free some space"), "{size}: {said}");
                let told = said.lines().filter(|line| line.starts_with("casebook: ") || line.starts_with("  "));
                assert_eq!(told.count(), 2, "{size}: what happened and what to do: {said}");
                disk.grow(100_000).unwrap();
                let listed = ends(folder, &["list", "--data", &data]);
                let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
                let id = listed.split_whitespace().find(|word| word.len() == 36 && word.matches('-').count() == 4);
                let again = match id.filter(|_| n % 2 == 0) {
                    Some(id) => ends(folder, &["resume", id, "--data", &data, "--out", &out]),
                    None => investigate(&data, &out),
                };
                assert!(again.status.success(), "{size}: {}", String::from_utf8_lossy(&again.stderr));
            }
            other => panic!("{size}: exit {other:?}: {said}"),
        }
        assert_eq!(report(folder, &out), expected, "{size}");
    }
    eprintln!("{full} of {} runs met a full disk, {of_worker} of them in the record of a worker", SIZES.len());
    assert!(full >= 20, "only {full} runs met a full disk");
}
