use casebook_protocol::CallId;
use casebook_table::{blocks, expect_file};

use super::*;
use casebook_evidence::facet::Facets;

/// The record of a text: its fields, `@ ` its time, `> ` what it says, `! ` a behaviour that it shows.
fn rec(text: &str) -> Rec {
    let of = |mark: &str| text.lines().find_map(|line| line.strip_prefix(mark));
    let pairs = text.lines().filter_map(|line| line.split_once(" = "));
    let fields: BTreeMap<String, String> = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let facets = Facets::read(&fields, text);
    let mut rec = Rec::of(CallId::new("r1.investigate.endpoint.t1.0").unwrap(), fields, facets);
    rec.time = of("@ ").and_then(|second| Timestamp::from_second(second.parse().unwrap()).ok());
    rec.says(of("> ").unwrap_or_default());
    rec.shows.extend(crate::analyst::behaviour::all().iter().filter(|one| of("! ").is_some_and(|id| one.id == id)));
    rec
}

/// The first record is the alerted one; a title may end with the time of the alert and a rare name.
#[test]
fn each_record_is_linked_to_the_alert_as_on_file() {
    blocks(&expect_file!["cases.txt"], |title, text| {
        let recs: Vec<Rec> = text.split("\n\n").map(rec).collect();
        let after = |word: &str| title.split_once(word).and_then(|(_, rest)| rest.split(' ').next());
        let at = after("alert at ").and_then(|second| Timestamp::from_second(second.parse().unwrap()).ok());
        let names: Vec<String> = after("named ").map(str::to_owned).into_iter().collect();
        let links = Links::follow(&recs, &BTreeSet::from([0]), &names, at);
        (1..recs.len()).map(|n| format!("{:?}\n", links.kin(n))).collect()
    });
}

#[test]
fn rare_file_that_arrived_before_the_alert_is_linked() {
    let wrote = |name: &str, second: i64| {
        let mut rec =
            Rec::with(&[("ActionType", "FileCreated"), ("FileName", name), ("InitiatingProcessFileName", "b")]);
        rec.time = Timestamp::from_second(second).ok();
        rec.says(name);
        rec
    };
    let mut recs: Vec<Rec> = [("tool.exe", 10), ("tool.exe", 99)].map(|(name, at)| wrote(name, at)).into();
    recs.extend((0..9).map(|_| wrote("node.exe", 10)));
    let mut links = Links::default();
    links.arrived(&recs, &BTreeSet::from(["tool.exe".into(), "node.exe".into()]), Timestamp::from_second(50).ok());
    let kin: Vec<_> = (0..recs.len()).filter(|i| links.kin(*i).is_some()).collect();
    assert_eq!(kin, [0]);
}

#[test]
fn process_id_in_each_line_of_a_log_links_nothing() {
    let line = || Rec::with(&[("timestamp", "x"), ("message", "pid=7 a thing was done"), ("message.pid", "7")]);
    let linked = |many: usize| {
        let recs: Vec<Rec> = (0..many).map(|_| line()).collect();
        let links = Links::follow(&recs, &BTreeSet::from([0]), &[], None);
        (0..many).filter(|i| links.kin(*i).is_some()).count()
    };
    assert_eq!(linked(20), 20);
    assert_eq!(linked(60), 1);
    // What tells of the process itself stays tied to its lines.
    let mut recs: Vec<Rec> = (0..60).map(|_| line()).collect();
    recs.push(Rec::with(&[("EventID", "4688"), ("ProcessId", "7"), ("CommandLine", "a")]));
    assert_eq!(Links::follow(&recs, &BTreeSet::from([0]), &[], None).kin(60), Some(Kin::Same));
}

#[test]
fn origin_of_a_program_in_a_users_folder_is_looked_for() {
    let recs = [
        Rec::with(&[("EventID", "4688"), ("NewProcessName", "C:\\Users\\mara\\Downloads\\Tool.exe")]),
        Rec::with(&[("ActionType", "FileCreated"), ("FileName", "x"), ("InitiatingProcessFileName", "b.exe")]),
    ];
    let links = Links::follow(&recs, &BTreeSet::from([0]), &[], None);
    assert_eq!(links.brought(&recs), BTreeSet::from(["tool.exe".to_owned()]));
    let given = [Rec::with(&[
        ("EventID", "4688"),
        ("NewProcessName", r"C:\Windows\System32\rundll32.exe"),
        (
            "CommandLine",
            r#"rundll32.exe "C:\ProgramData\Side.dll",Run C:\Windows\System32\other.dll /x C:\ProgramData\a.txt"#,
        ),
    ])];
    let links = Links::follow(&given, &BTreeSet::from([0]), &[], None);
    assert_eq!(links.brought(&given), BTreeSet::from(["side.dll".to_owned()]));
    assert!(!brought("C:\\Windows\\System32\\svchost.exe"));
}
