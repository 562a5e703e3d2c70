//! The demo among records about other hosts; `casebook-lab noise` does it with more of them.

use casebook_tests::{noise, run};

#[test]
fn records_about_others_hide_no_event_that_matters() {
    let demo = run::demo();
    let (_, alone) = noise::investigate(&demo, 0).unwrap();
    let (report, among) = noise::investigate(&demo, 20_000).unwrap();
    assert_eq!(among.missed, alone.missed);
    assert!(report.timeline.events.len() <= 60, "{} events", report.timeline.events.len());
}
