use casebook_table::{blocks, expect_file};

use super::*;

#[test]
fn each_record_has_the_class_and_facets_on_file() {
    blocks(&expect_file!["cases.txt"], |_, text| {
        let pair = |line: &str| line.split_once(" = ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        let facets = Facets::read(&text.lines().map(|line| pair(line).unwrap()).collect(), "");
        let told = facets.values.iter().filter(|(facet, _)| **facet != Facet::Text);
        let head = facets.class.map(|class| format!("{class:?}\n"));
        head.into_iter().chain(told.map(|(facet, value)| format!("{facet:?}: {value}\n"))).collect()
    });
}

/// A user agent is never read as a kernel record.
#[test]
fn a_collected_record_stands_in_a_field_of_messages() {
    let in_field = |field: &str| {
        let audit = [("audit.serial", "7"), ("audit.time", "1.5"), ("type", "CONFIG_CHANGE"), ("op", "add_rule")];
        let fields = audit.map(|(name, value)| (format!("{field}.{name}"), value.to_owned()));
        Facets::read(&fields.into_iter().collect(), "").class
    };
    assert_eq!(in_field("SyslogMessage"), Some(Class::ConfigChange));
    assert_eq!(in_field("event.original"), Some(Class::ConfigChange));
    assert_eq!(in_field("user_agent.original"), Some(Class::Other));
}

#[test]
fn who_writes_a_record_is_not_who_acted() {
    let fields = [("UserID", "S-1-5-18"), ("AccountName", "SYSTEM"), ("Image", "C:\\a.exe")];
    let fields: BTreeMap<String, String> = fields.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    assert_eq!(Facets::read(&fields, "Microsoft-Windows-Sysmon").get(Facet::User), None);
    assert_eq!(Facets::read(&fields, "PowerShell").get(Facet::User), Some("S-1-5-18"));
}

#[test]
fn the_number_of_an_event_has_a_name_in_each_language_of_windows() {
    for name in ["EventID", "Ereignis-ID", "イベント ID", "ID de l’événement"] {
        let fields = [(name.to_owned(), "4688".to_owned())].into_iter().collect();
        assert_eq!(event_id(&fields), Some("4688"), "{name}");
    }
}

#[test]
fn what_stands_inside_a_field_is_no_number_of_an_event() {
    for name in ["ProcessCommandLine.Ereignis-ID", "user_agent.original.EventID"] {
        let (outer, _) = name.rsplit_once('.').unwrap();
        let fields = [(outer.to_owned(), "a".to_owned()), (name.to_owned(), "4720".to_owned())].into_iter().collect();
        assert_eq!(event_id(&fields), None, "{name}");
    }
}

#[test]
fn the_name_of_a_field_makes_no_event_of_windows_a_request() {
    let fields = [("EventID", "1116"), ("Post Clean Status", "0")];
    let fields = fields.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    assert_eq!(Facets::read(&fields, r#"{"EventID":"1116","Post Clean Status":"0"}"#).class, Some(Class::Other));
}
