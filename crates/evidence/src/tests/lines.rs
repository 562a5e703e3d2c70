//! Line formats: those of `formats.toml`, and the built-in ones.

use casebook_table::{blocks, expect_file};

use super::*;
use crate::formats::{LineFormat, Pattern, Reader};

fn format(files: &str, pattern: &str, time: Option<&str>, begins: Option<&str>) -> LineFormat {
    let pattern = Pattern::new(pattern).unwrap();
    LineFormat {
        files: Some(FilePattern::new(files).unwrap()),
        reader: Reader { name: "shop".into(), pattern, time: time.map(str::to_owned) },
        begins: begins.map(|text| Pattern::new(text).unwrap()),
        ends: None,
    }
}

fn opened(folder: &Folder, declared: &Declared) -> Catalog {
    let index = folder.dir.path().join("indexes");
    Catalog::declared_in(&folder.evidence(), &index, None, declared, &mut |_| {}).unwrap()
}

fn with(rule: &str, change: impl FnOnce(&mut SourceRule)) -> Declared {
    let mut rule = SourceRule {
        files: FilePattern::new(rule).unwrap(),
        sensor: "shop".into(),
        on_alerted_host: true,
        records: Vec::new(),
        hosts: Vec::new(),
        domain: None,
        zone: None,
        year: None,
        time_field: None,
        confirmed: false,
    };
    change(&mut rule);
    Declared { rules: vec![rule], ..Declared::default() }
}

const SHOP: &str = "24.12.2025 18:30:00,250 WARN [mara] 192.0.2.9 login refused\n\
    at shop.Login.check(Login.java:17)\n\nCaused by: wrong password\n\n\
    24.12.2025 18:30:01,000 INFO [-] 192.0.2.10 {\"order\":7,\"state\":\"paid\"}\nnoise\n";

#[test]
fn own_format_gives_fields_facets_times_and_records_of_several_lines() {
    let folder = Folder::of("shop/a.log", SHOP);
    let pattern = r"(?s)^(?<time>\S+ \S+) (?<level>[A-Z]+) \[(?<user>[^\]]*)\] (?<src_ip>\S+) (?<message>.*)$";
    let shop = format("shop/*.log", pattern, Some("%d.%m.%Y %H:%M:%S,%f"), Some(r"^\d\d\.\d\d\."));
    let mut declared = with("shop/*", |rule| rule.zone = Some(Zone::new("Europe/Berlin").unwrap()));
    declared.formats.push(shop);
    let catalog = opened(&folder, &declared);
    accounted(&catalog, &folder.evidence());
    let source = &catalog.sources()[0];
    assert_eq!((source.format, source.records, source.malformed), (Format::Pattern, 2, 0));
    assert!(source.notes.iter().any(|note| note.contains("read as Europe/Berlin, by sources.toml")), "{source:?}");
    let record = catalog.record("shop/a.log", 1).unwrap();
    assert!(record.text().ends_with("Caused by: wrong password"));
    assert_eq!(record.time.unwrap().to_string(), "2025-12-24T17:30:00.25Z");
    assert_eq!(record.time_basis, casebook_protocol::TimeBasis::Record);
    let facets = facet::Facets::read(&record.fields().into_iter().collect(), &record.text());
    assert_eq!(facets.get(facet::Facet::User), Some("mara"));
    assert_eq!(facets.get(facet::Facet::SrcIp), Some("192.0.2.9"));
    let second = catalog.record("shop/a.log", 6).unwrap().fields();
    assert!(second.contains(&("level".to_owned(), "INFO".to_owned())));
}

#[test]
fn line_that_does_not_follow_its_format_is_kept_and_counted() {
    let folder = Folder::of("a.log", "1 mara\nno number\n2 eve\n");
    let formats = vec![format("a.log", r"^(?<n>\d+) (?<user>\S+)$", None, None)];
    let catalog = opened(&folder, &Declared { formats, ..Declared::default() });
    let source = &catalog.sources()[0];
    assert_eq!((source.records, source.malformed, source.malformed_examples[0].line), (3, 1, 2));
    assert_eq!(catalog.record("a.log", 2).unwrap().fields(), [("message".to_owned(), "no number".to_owned())]);
}

#[test]
fn other_settings_make_another_index() {
    let folder =
        Folder::of("a.log", "Jan  2 10:00:00 web1 sshd[7]: Accepted password for eve from 192.0.2.7 port 1 ssh2\n");
    let time = |declared: &Declared| opened(&folder, declared).record("a.log", 1).unwrap().time.unwrap().to_string();
    let set = with("a.log", |rule| (rule.year, rule.zone) = (Some(2021), Some(Zone::new("+02:00").unwrap())));
    assert_eq!(time(&set), "2021-01-02T08:00:00Z");
    let other = with("a.log", |rule| (rule.year, rule.zone) = (Some(2022), None));
    assert_eq!(time(&other), "2022-01-02T10:00:00Z");
    assert_eq!(time(&set), "2021-01-02T08:00:00Z");
    // A command without configuration takes the index that is there.
    let index = folder.dir.path().join("indexes");
    let any = Catalog::open_in(&folder.evidence(), &index, None, &mut |p| assert_ne!(p.step, "loading")).unwrap();
    assert_eq!(any.sources()[0].records, 1);
}

#[test]
fn time_field_of_the_configuration_is_the_time_of_a_record() {
    let line = |n: u32| {
        format!(
            "{{\"time\":\"2024-05-02T10:00:{n:02}Z\",\"order\":{{\"placed\":\"2024-05-01T08:00:{n:02}Z\"}},\"user\":\"eve\"}}\n"
        )
    };
    let folder = Folder::of("a.json", &(10..30).map(line).collect::<String>());
    let first = |declared: &Declared| {
        let catalog = opened(&folder, declared);
        (catalog.record("a.json", 1).unwrap().time.unwrap().to_string(), catalog.sources()[0].clone())
    };
    assert_eq!(first(&Declared::default()).0, "2024-05-02T10:00:10Z");
    let (time, source) = first(&with("a.json", |rule| rule.time_field = Some("order.placed".into())));
    assert_eq!((time.as_str(), source.time_field.as_deref()), ("2024-05-01T08:00:10Z", Some("order.placed")));
    let (time, source) = first(&with("a.json", |rule| rule.time_field = Some("user".into())));
    assert_eq!(time, "2024-05-02T10:00:10Z");
    assert!(source.notes.iter().any(|note| note.contains("no record looked at has a time there")), "{source:?}");
}

#[test]
fn formats_file_inside_the_evidence_is_refused_and_has_no_effect() {
    let folder = Folder::new(&[("a.log", b"1 mara\n"), ("formats.toml", b"[[format]]\n")]);
    assert_eq!(folder.open().sources().len(), 2);
    let file = Some(folder.evidence().join("formats.toml"));
    let inside = Declared { formats_file: file, ..Declared::default() };
    let error = folder.open().declare(&inside).unwrap_err().to_string();
    assert!(error.contains("is inside the evidence folder"), "{error}");
}

/// All records with the time, the line and the fields.
#[test]
fn each_built_in_format_gives_the_records_on_file() {
    blocks(&expect_file!["lines.txt"], |_, content| {
        let folder = Folder::of("a.log", &format!("{content}\n"));
        let catalog = folder.open();
        let source = &catalog.sources()[0];
        let mut out =
            format!("{:?}, {}, {}, {} malformed\n", source.format, source.domain, source.sensor, source.malformed);
        for line in 1..=source.lines {
            let Ok(record) = catalog.record("a.log", line) else { continue };
            let time = record.time.map_or_else(|| "-".to_owned(), |time| time.to_string());
            let facets = facet::Facets::read(&record.fields().into_iter().collect(), &record.text());
            let who = |facet| facets.get(facet).unwrap_or("-");
            let (user, ip) = (who(facet::Facet::User), who(facet::Facet::SrcIp));
            out += &format!("{line} {time} {:?}, user {user}, from {ip}\n", facets.class);
            record.fields().iter().for_each(|(name, value)| out += &format!("  {name} = {value}\n"));
        }
        out
    });
}
