//! Forged and renamed logs beside the demo's evidence; `casebook-lab sensor` investigates more of them.

use casebook_tests::{run, sensor};

#[test]
fn forged_log_never_counts_as_independent() {
    let forged = sensor::forged().unwrap();
    assert!(forged.len() >= 40, "{}", forged.len());
    let folder = tempfile::tempdir().unwrap();
    sensor::write(folder.path(), &forged).unwrap();
    assert_eq!(sensor::seen(folder.path()).unwrap().len(), forged.len() + 6, "each is a source");
    assert_eq!(sensor::believed(folder.path()).unwrap(), [""; 0]);
}

#[test]
fn forged_log_restores_no_dismissal() {
    let forged = sensor::forged().unwrap();
    for name in ["edr2.ndjson", "sysmon.ndjson", "squid.txt"] {
        let folder = tempfile::tempdir().unwrap();
        sensor::write(folder.path(), [(&name.to_owned(), &forged[name])]).unwrap();
        let report = run::investigate_case(folder.path()).unwrap();
        assert!(!report.verdict.dismisses(), "{name}: {:?}", report.ruling);
    }
}
