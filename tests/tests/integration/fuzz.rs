//! A bounded number of rounds with damaged input; `--bin fuzz` runs longer.

use std::path::Path;

use casebook_tests::fuzz::{Inputs, run};

#[test]
fn damaged_input_is_answered_and_never_panics() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/package-hook-kmod");
    let inputs = Inputs::of(&demo).unwrap();
    run(&inputs, 1_500, 1).unwrap();
}
