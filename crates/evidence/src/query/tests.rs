use super::*;

fn fields(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn check(pairs: &[(&str, &str)], field: &str, op: Op, value: &str, expect: bool) {
    let condition = Condition::new(field, op, value).unwrap();
    assert_eq!(condition.is_true(&fields(pairs)), expect, "{field} {op:?} {value} on {pairs:?}");
}

#[test]
fn fields_are_named_by_path_or_by_its_end() {
    let all = fields(&[("a.Image", "x"), ("b.Image", "y"), ("ips.0", "1"), ("ips.1", "2"), ("r.0.id", "3")]);
    assert_eq!(values(&all, "a.image"), ["x"]);
    assert_eq!(values(&all, "image"), ["x", "y"]);
    assert_eq!(values(&all, "ips"), ["1", "2"]);
    assert_eq!(values(&all, "ips.1"), ["2"]);
    assert_eq!(values(&all, "r.*.id"), ["3"]);
    assert_eq!(values(&all, "mage"), Vec::<&str>::new());
}

#[test]
fn conditions_hold_as_they_read() {
    let record = [
        ("EventID", "4624"),
        ("Image", r"C:\Windows\System32\cmd.exe"),
        ("Size", "10.5"),
        ("When", "2024-01-02T00:00:00Z"),
    ];
    check(&record, "eventid", Op::Eq, "4624", true);
    check(&record, "eventid", Op::Eq, "462", false);
    check(&record, "image", Op::EndsWith, r"\CMD.EXE", true);
    check(&record, "image", Op::Contains, "system32", true);
    check(&record, "image", Op::StartsWith, "d:", false);
    check(&record, "size", Op::Gt, "9", true);
    check(&record, "size", Op::Lt, "9", false);
    check(&record, "when", Op::Gt, "2024-01-01T00:00:00Z", true);
    check(&record, "user", Op::Ne, "root", false);
    check(&record, "eventid", Op::Ne, "1", true);
    check(&record, "user", Op::Exists, "true", false);
    check(&record, "user", Op::Exists, "false", true);
    check(&record, "image", Op::Regex, r"(?i)\\cmd\.EXE$", true);
    assert!(Condition::new("a", Op::Regex, "(").unwrap_err().contains("regular expression"));
}
