//! A bounded number of rounds with damaged input; `casebook-lab fuzz` runs longer.

use casebook_tests::fuzz::{Inputs, run as fuzz};
use casebook_tests::run;

#[test]
fn damaged_input_is_answered_and_never_panics() {
    let inputs = Inputs::of(&run::demo()).unwrap();
    fuzz(&inputs, 1_500, 1).unwrap();
}
