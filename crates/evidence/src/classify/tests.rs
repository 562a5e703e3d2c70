use casebook_table::{blocks, expect_file};

use super::*;
use crate::DOMAINS;
use crate::fields::{Shape, parse};
use crate::source::Format;

fn belongs(format: Format, lines: &[&str]) -> Belongs {
    let shape = Shape::of(format);
    let sample: Vec<_> = lines.iter().map(|l| parse(&shape, l.as_bytes()).fields).collect();
    Belongs::of(&Facts::new(format, &sample))
}

/// The word before the colon of a title is the format.
#[test]
fn each_log_has_the_domain_and_sensor_on_file() {
    blocks(&expect_file!["cases.txt"], |title, text| {
        let (format, _) = title.split_once(':').unwrap();
        let format = serde_json::from_value(format.into()).unwrap();
        let one = format == Format::ModSecurity;
        let lines: Vec<&str> = if one { vec![text] } else { text.lines().collect() };
        let got = belongs(format, &lines);
        assert!(got.domain().is_some() && DOMAINS.contains(&got.domain));
        format!("{} {}{}", got.domain, got.sensor, if got.on_host { ", written on the host" } else { "" })
    });
}

#[test]
fn a_single_record_makes_no_log_that_of_a_sensor() {
    let office = r#"{"OfficeWorkload":"Exchange","Operation":"New-InboxRule","UserId":"m","ClientIP":"192.0.2.9"}"#;
    let typed =
        r#"{"eventid":"cowrie.command.input","session":"abc60b61c358","sensor":"s","src_ip":"192.0.2.9","input":"id"}"#;
    let other = r#"{"level":"info","msg":"started"}"#;
    for forged in [office, typed] {
        let lines: Vec<&str> = std::iter::once(forged).chain(std::iter::repeat_n(other, 9)).collect();
        let got = belongs(Format::Ndjson, &lines);
        assert!(!["m365-audit", "cowrie"].contains(&got.sensor.as_str()), "{forged}");
    }
}
