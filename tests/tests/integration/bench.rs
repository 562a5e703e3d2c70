//! `casebook-lab bench` over a few logs: each step runs and prints its figures.

use std::process::Command;

#[test]
fn bench_prints_a_row_for_each_step() {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_casebook-lab"));
    let output = lab.args(["bench", "1", "--further", "20"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for row in ["grep -c", "load without", "load with our", "load with further", "load and", "investigate,", "recorded"]
    {
        let found = text.lines().find(|line| line.starts_with(row)).unwrap_or_else(|| panic!("{row:?} in {text}"));
        assert!(found.chars().any(|c| c.is_ascii_digit()), "{found}");
    }
}
