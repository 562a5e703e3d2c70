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

/// A JSON object with these fields, each at its path.
fn object(names: &[&str]) -> serde_json::Value {
    let mut all = serde_json::Map::new();
    for name in names {
        let (mut at, mut steps) = (&mut all, name.split('.').peekable());
        while let Some(step) = steps.next() {
            if steps.peek().is_none() {
                at.insert(step.to_owned(), "x".into());
            } else {
                at = at.entry(step).or_insert_with(|| serde_json::json!({})).as_object_mut().unwrap();
            }
        }
    }
    all.into()
}

#[test]
fn one_odd_record_among_400_renames_no_log() {
    type Record = fn(usize) -> String;
    let logs: [(Format, Record); 3] = [
        (Format::Ndjson, |n| {
            format!(r#"{{"time":{n},"method":"POST","path":"/order","status":200,"body":{{"n":1}}}}"#)
        }),
        (Format::Ndjson, |n| format!(r#"{{"level":"info","msg":"order {n} is paid"}}"#)),
        (Format::KeyValue, |n| format!("level=info msg=\"order {n} is paid\" code=7")),
    ];
    let line = |format: Format, names: &[&str]| match format {
        Format::Ndjson => object(names).to_string(),
        _ => names.iter().map(|name| format!("{name}=x")).collect::<Vec<_>>().join(" "),
    };
    for (format, record) in logs {
        let own: Vec<String> = (0..400).map(record).collect();
        let with = |odd: Option<(usize, String)>| {
            let mut all = own.clone();
            if let Some((at, odd)) = odd {
                all.insert(at, odd);
            }
            belongs(format, &all.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let expected = with(None);
        for known in &sensors::SENSORS.product {
            let names: Vec<&str> = known.all.iter().chain(&known.any).copied().collect();
            for at in [0, 200] {
                assert_eq!(with(Some((at, line(format, &names)))), expected, "{} {format:?}", known.sensor);
                let nested = serde_json::json!({"method": "POST", "path": "/order", "body": object(&names)});
                assert_eq!(with(Some((at, nested.to_string()))), expected, "{} nested, {format:?}", known.sensor);
            }
        }
        // A third of the records is still not most of them.
        let names = ["eventSource", "eventName", "awsRegion"];
        let mut all: Vec<String> = own.iter().take(20).cloned().collect();
        all.extend((0..10).map(|_| line(format, &names)));
        assert_ne!(belongs(format, &all.iter().map(String::as_str).collect::<Vec<_>>()).sensor, "cloudtrail");
    }
}

#[test]
fn fields_below_different_fields_are_not_those_of_one_product() {
    let apart = r#"{"request":{"eventSource":"s3"},"reply":{"eventName":"x","awsRegion":"y"}}"#;
    assert_ne!(belongs(Format::Ndjson, &[apart; 9]).sensor, "cloudtrail");
    let together = r#"{"_source":{"eventSource":"s3","eventName":"x","awsRegion":"y"}}"#;
    assert_eq!(belongs(Format::Ndjson, &[together; 9]).sensor, "cloudtrail");
}
