use super::*;
use casebook_protocol::Timestamp;

fn check(text: &str, expect: &str) {
    let reading = Reading { day_first: false, numbers: true };
    let got = parse(text, reading).map_or("none".to_owned(), |m| {
        let at = Timestamp::from_nanosecond(m.ns.into()).unwrap();
        let zone = if m.zoned { "" } else { " no zone" };
        let year = if m.dated { "" } else { " no year" };
        format!("{at} {:?}{zone}{year}", m.precision)
    });
    assert_eq!(got, expect, "{text}");
}

#[test]
fn the_forms_that_logs_use() {
    check("2023-09-05T09:58:38.132Z", "2023-09-05T09:58:38.132Z Millisecond");
    check("2023-09-06 04:58:38.122", "2023-09-06T04:58:38.122Z Millisecond no zone");
    check("2023-08-30T11:01:22.847554295Z", "2023-08-30T11:01:22.847554295Z Nanosecond");
    check("2024-01-01T10:00:00+0530", "2024-01-01T04:30:00Z Second");
    check("2024-01-01 10:00:00,123", "2024-01-01T10:00:00.123Z Millisecond no zone");
    check("2024-01-01 10:00:00 UTC", "2024-01-01T10:00:00Z Second");
    check("2024-01-01", "2024-01-01T00:00:00Z Day no zone");
    check("20231005T101010Z", "2023-10-05T10:10:10Z Second");
    check("10/Oct/2000:13:55:36 -0700", "2000-10-10T20:55:36Z Second");
    check("Oct  9 13:55:36", "2000-10-09T13:55:36Z Second no zone no year");
    check("Wed Oct 11 13:55:36.5 2000", "2000-10-11T13:55:36.5Z Millisecond no zone");
    check("Wed, 11 Oct 2000 13:55:36 GMT", "2000-10-11T13:55:36Z Second");
    check("Oct 10 2000 13:55:36", "2000-10-10T13:55:36Z Second no zone");
    check("9/5/2023, 1:00:50.336 PM", "2023-09-05T13:00:50.336Z Millisecond no zone");
    check("27.05.2019 10:09:04:540", "2019-05-27T10:09:04.54Z Millisecond no zone");
    check("27.05.2019 10:09:04:54", "none");
    check("25.12.2023 10:00", "2023-12-25T10:00:00Z Minute no zone");
    check("20171223-22:15:29:606", "2017-12-23T22:15:29.606Z Millisecond no zone");
    check("2017-10-30-12:47:03", "2017-10-30T12:47:03Z Second no zone");
    check("20220721023749", "2022-07-21T02:37:49Z Second no zone");
    check("12/28-12:55:38.765402", "2000-12-28T12:55:38.765402Z Microsecond no zone no year");
    check("10.30 16:49:06", "2000-10-30T16:49:06Z Second no zone no year");
    check("01-02 01:02:04.156", "2000-01-02T01:02:04.156Z Millisecond no zone no year");
    check("I1231 23:59:59.000001", "2000-12-31T23:59:59.000001Z Microsecond no zone no year");
    check("/Date(1711431195806)/", "2024-03-26T05:33:15.806Z Millisecond");
}

#[test]
fn counts_from_an_epoch() {
    check("1588205199.82437", "2020-04-30T00:06:39.82437Z Microsecond");
    check("1652292620.898048", "2022-05-11T18:10:20.898048Z Microsecond");
    check("1711431195806", "2024-03-26T05:33:15.806Z Millisecond");
    check("1711431195", "2024-03-26T05:33:15Z Second");
    check("1711431195806123456", "2024-03-26T05:33:15.806123456Z Nanosecond");
    check("133559047958060000", "2024-03-26T05:33:15.806Z Nanosecond");
    check("13355904795806000", "2024-03-26T05:33:15.806Z Microsecond");
}

#[test]
fn what_is_no_time() {
    for text in [
        "10.0.19041.1682",
        "192.168.2.6",
        "not a time",
        "123456789012345678901234567890",
        "2023-13-40T00:00:00Z",
        "99999999",
        "1.2.3.4:8080",
        "May the force",
        "2024-01-01abc",
        "ñandú 2024",
        "10:00:50",
        "01-02 10:00:00",
        "13/28-12:55:38.765402",
        "F1231 steps of it",
        "20171223-22:15",
    ] {
        check(text, "none");
    }
}

#[test]
fn a_time_before_other_text() {
    let (_, used) = prefix("Oct 10 13:55:36 host sshd[1]: x", Reading::default()).unwrap();
    assert_eq!(used, "Oct 10 13:55:36".len());
    let (_, used) = prefix("2024-01-01 10:00:00 install foo", Reading::default()).unwrap();
    assert_eq!(used, "2024-01-01 10:00:00".len());
}
