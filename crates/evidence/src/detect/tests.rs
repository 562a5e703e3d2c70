use casebook_table::{blocks, expect_file};

use super::*;

#[test]
fn each_file_has_the_form_on_file() {
    blocks(&expect_file!["cases.txt"], |_, text| {
        let found = detect(format!("{text}\n").as_bytes(), true);
        let place = match found.cut {
            Cut::Lines(_) => String::new(),
            Cut::Json(json) => {
                let place = match json.place {
                    JsonPlace::Top => " top".into(),
                    JsonPlace::Array(keys) => format!(" [{}]", keys.join(".")),
                };
                place + if json.numbered { " numbered" } else { "" }
            }
        };
        format!("{:?}{place} {}", found.shape.format, found.shape.columns.join(","))
    });
}
