//! The rules of Casebook as other tools for Sigma see them.

use std::path::Path;
use std::process::Command;

use casebook_tests::thirdparty::python;

const SIGMA: [&str; 2] = ["sigma-cli==3.1.0", "pySigma==1.5.1"];

#[test]
fn sigma_check_finds_no_issue_in_our_rules() {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("rules");
    let mut check = Command::new(python(&SIGMA).with_file_name("sigma"));
    check.args(["check", "--fail-on-issues"]);
    // These two fetch lists of MITRE from the network.
    check.args(["--exclude", "attacktag", "--exclude", "d3_fendtag"]);
    let output = check.arg(&rules).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("Found 0 errors, 0 condition errors and 0 issues."), "{said}");
}
