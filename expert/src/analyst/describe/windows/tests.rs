use casebook_table::{blocks, expect_file};

use super::super::tests::{claimed, fields};

#[test]
fn each_event_of_windows_is_told_as_on_file() {
    blocks(&expect_file!["cases.txt"], |_, text| {
        let fields = fields(text);
        let raw = fields.iter().map(|(name, value)| format!("{name}={value} ")).collect::<String>();
        claimed(fields, &raw)
    });
}
