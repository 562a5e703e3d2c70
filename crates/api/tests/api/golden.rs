//! The pages of a fixed log, as they are kept in `tests/expected`. `UPDATE_EXPECT=1` writes them again.

use expect_test::expect_file;

use crate::kit::{fixture, pages};

#[test]
fn the_pages_of_a_fixed_log_stay_as_they_are() {
    let all = pages(
        &fixture(),
        "{\"records\":[{\"file\":\"auth.log\",\"line\":7,\"time\":\"2026-11-25T00:00:00Z\",\"text\":\"accepted\"}]}",
    );
    assert!(all.len() >= 18, "{}", all.len());
    for (name, page) in all {
        // A tag a line, so that a difference can be read.
        let lines = page.replace("><", ">\n<") + "\n";
        expect_file![format!("{}/tests/expected/{name}.html", env!("CARGO_MANIFEST_DIR"))].assert_eq(&lines);
    }
}

#[test]
fn every_page_has_one_heading_a_title_and_landmarks() {
    for (name, page) in pages(&fixture(), "text") {
        assert_eq!(page.matches("<h1").count(), 1, "{name}");
        assert!(page.contains("<main") && page.contains("<nav") && page.contains("lang=\"en\""), "{name}");
        assert!(page.contains(" · Casebook</title>"), "{name}");
        assert!(!page.contains(" style="), "{name}: the policy forbids inline styles");
        assert!(!page.contains("<script>"), "{name}: the policy forbids inline scripts");
    }
}

#[test]
fn every_id_is_there_once() {
    for (name, page) in pages(&fixture(), "text") {
        // The list has the same case twice here.
        if name == "fleet" || name == "compare" {
            continue;
        }
        let mut seen = std::collections::BTreeSet::new();
        for id in page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(seen.insert(id.to_owned()), "{name} has two elements with the id {id}");
        }
    }
}
