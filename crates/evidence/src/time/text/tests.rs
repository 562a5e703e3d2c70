use casebook_protocol::Timestamp;
use casebook_table::{expect_file, lines};

use super::*;

#[test]
fn each_text_is_the_time_on_file() {
    lines(&expect_file!["cases.txt"], |text| {
        let Some(moment) = parse(text, Reading { day_first: false, numbers: true }) else { return "none".to_owned() };
        let at = Timestamp::from_nanosecond(moment.ns.into()).unwrap();
        let zone = if moment.zoned { "" } else { " no zone" };
        let year = if moment.dated { "" } else { " no year" };
        format!("{at} {:?}{zone}{year}", moment.precision)
    });
}

#[test]
fn a_time_before_other_text() {
    let (_, used) = prefix("Oct 10 13:55:36 host sshd[1]: x", Reading::default()).unwrap();
    assert_eq!(used, "Oct 10 13:55:36".len());
    let (_, used) = prefix("2024-01-01 10:00:00 install foo", Reading::default()).unwrap();
    assert_eq!(used, "2024-01-01 10:00:00".len());
}
