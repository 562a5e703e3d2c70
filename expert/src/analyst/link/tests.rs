use casebook_protocol::CallId;

use super::super::facet::Facets;
use super::*;

#[test]
fn who_starts_a_thread_in_the_process_above_is_followed_with_what_it_did() {
    let sysmon = |fields: &[(&str, &str)]| {
        let fields: BTreeMap<String, String> =
            fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let text = "Microsoft-Windows-Sysmon";
        Rec::of(CallId::new("r1.investigate.endpoint.t1.0").unwrap(), fields.clone(), Facets::read(&fields, text))
    };
    let alerted = [("EventID", "1"), ("CommandLine", "dump"), ("ProcessGuid", "{C}"), ("ParentProcessGuid", "{B}")];
    let thread = [("EventID", "8"), ("SourceProcessGuid", "{A}"), ("TargetProcessGuid", "{B}")];
    let reached = [("EventID", "3"), ("ProcessGuid", "{A}"), ("DestinationIp", "192.0.2.9")];
    let child = [("EventID", "1"), ("CommandLine", "id"), ("ProcessGuid", "{D}"), ("ParentProcessGuid", "{A}")];
    let other = [("EventID", "3"), ("ProcessGuid", "{E}"), ("DestinationIp", "192.0.2.9")];
    let mut recs = [&alerted[..], &thread, &reached, &child, &other].map(sysmon);
    let kin = |recs: &[Rec]| {
        let links = Links::follow(recs, &BTreeSet::from([0]), &[], None);
        [1, 2, 3, 4].map(|i| links.kin(i))
    };
    assert_eq!(kin(&recs), [None; 4], "a thread that shows nothing ties nothing");
    let shown = crate::analyst::behaviour::all().iter().filter(|b| b.id == "remote-thread-injection");
    recs[1].shows.extend(shown);
    assert_eq!(kin(&recs), [Some(Kin::Same), Some(Kin::Same), Some(Kin::Descendant), None]);
}

#[test]
fn a_thread_that_came_after_the_alert_ties_nothing() {
    let mut recs = [
        Rec::with(&[("EventID", "4688"), ("ProcessGuid", "{C}"), ("ParentProcessGuid", "{B}")]),
        Rec::with(&[("ActionType", "CreateRemoteThreadApiCall"), ("ProcessGuid", "{A}"), ("TargetProcessGuid", "{B}")]),
    ];
    recs[1].shows.extend(crate::analyst::behaviour::all().iter().filter(|b| b.id == "remote-thread-injection"));
    let at = |second: i64| Timestamp::from_second(second).ok();
    let mut kin = |thread: i64| {
        recs[1].time = at(thread);
        Links::follow(&recs, &BTreeSet::from([0]), &[], at(1000)).kin(1)
    };
    assert_eq!(kin(900), Some(Kin::Same));
    assert_eq!(kin(1001), None, "after the alert");
    assert_eq!(kin(1000 - 4000), None, "so long before that the process may be another");
}

#[test]
fn what_arrived_names_the_program_before_the_alert_and_is_rare() {
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
fn the_process_id_in_each_line_of_a_programs_log_ties_nothing() {
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
fn what_started_a_chain_anew_is_found_by_what_shares_its_name() {
    let started = |id: &str, parent: &str, second: i64| {
        let mut rec = Rec::with(&[("EventID", "4688"), ("ProcessGuid", id), ("ParentProcessGuid", parent)]);
        rec.time = Timestamp::from_second(second).ok();
        rec
    };
    let mut recs = vec![started("{A}", "{0}", 0), started("{B}", "{1}", 90_000), started("{C}", "{B}", 90_001)];
    recs[2].says("again.js");
    let kin = |recs: &[Rec]| Links::follow(recs, &BTreeSet::from([0]), &["again.js".into()], None).kin(1);
    assert_eq!(kin(&recs), None, "it shows nothing against it");
    recs[1].shows.extend(crate::analyst::behaviour::all().iter().find(|b| b.bearing == Bearing::Incriminating));
    assert_eq!(kin(&recs), Some(Kin::Named));
}

#[test]
fn what_a_process_above_did_counts_where_it_shows_something_against_it() {
    let start =
        |id: &str, parent: &str| Rec::with(&[("EventID", "4688"), ("ProcessGuid", id), ("ParentProcessGuid", parent)]);
    let mut recs =
        vec![start("{B}", "{A}"), start("{A}", "{0}"), Rec::with(&[("EventID", "11"), ("ProcessGuid", "{A}")])];
    let kin = |recs: &[Rec]| Links::follow(recs, &BTreeSet::from([0]), &[], None).kin(2);
    assert_eq!(kin(&recs), None);
    let strong =
        |b: &&crate::analyst::behaviour::Behaviour| b.bearing == Bearing::Incriminating && b.weight >= Weight::Moderate;
    recs[2].shows.extend(crate::analyst::behaviour::all().iter().find(strong));
    assert_eq!(kin(&recs), Some(Kin::Named));
}

#[test]
fn what_brought_a_program_from_a_folder_of_users_is_looked_for() {
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
