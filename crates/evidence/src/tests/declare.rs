//! What a sensor is comes from the configuration.

use casebook_protocol::ActKind;

use super::*;

const PROXY: &str = "1795305324.000    369 10.20.0.43 TCP_MISS/200 151273 GET http://deb.example.org/debian/x - \
                     FIRSTUP_PARENT/10.20.0.1 text/plain\n";
const AUTH: &str = "Mar  1 02:03:04 web1 sshd[811]: Accepted password for eve from 192.0.2.7 port 4022 ssh2\n\
                    Mar  1 02:03:09 web1 sudo: eve : TTY=pts/0 ; PWD=/ ; USER=root ; COMMAND=/bin/ls\n";

fn rule(files: &str, confirmed: bool) -> SourceRule {
    SourceRule {
        files: FilePattern::new(files).unwrap(),
        sensor: "proxy01".into(),
        on_alerted_host: false,
        records: vec![ActKind::Connection],
        hosts: vec!["web1".into()],
        domain: None,
        zone: None,
        year: None,
        time_field: None,
        confirmed,
    }
}

fn declared(rules: Vec<SourceRule>) -> Declared {
    Declared { rules, ..Declared::default() }
}

fn source<'c>(catalog: &'c Catalog, file: &str) -> (&'c Source, &'c str) {
    catalog.with_sensors().find(|(source, _)| source.file == file).unwrap()
}

#[test]
fn without_configuration_every_source_counts_as_written_on_the_host() {
    let folder = Folder::new(&[("proxy.log", PROXY.as_bytes()), ("auth.log", AUTH.as_bytes())]);
    // A file of this name in the evidence is only evidence.
    folder.write(
        "sources.toml",
        b"[[source]]\nfiles = \"**\"\nsensor = \"trusted\"\non_alerted_host = false\nconfirmed = true\n",
    );
    let catalog = folder.open();
    assert_eq!(catalog.sources().len(), 3);
    for (source, sensor) in catalog.with_sensors() {
        assert!(!source.confirmed && source.on_subject_host() && sensor.starts_with("unconfirmed"), "{source:?}");
    }
    assert_eq!(source(&catalog, "auth.log").1, "unconfirmed@web1");
}

#[test]
fn only_a_confirmed_rule_for_the_file_makes_a_source_independent() {
    let folder = Folder::new(&[("proxy.log", PROXY.as_bytes()), ("auth.log", AUTH.as_bytes())]);
    folder.write("sub/proxy.log", PROXY.as_bytes());
    let mut catalog = folder.open();
    catalog.declare(&declared(vec![rule("proxy.log", true)])).unwrap();
    let (proxy, sensor) = source(&catalog, "proxy.log");
    assert_eq!(
        (sensor, proxy.on_subject_host(), proxy.acts.as_slice()),
        ("proxy01", false, &[ActKind::Connection][..])
    );
    assert_eq!(proxy.hosts, ["web1"]);
    for file in ["sub/proxy.log", "auth.log"] {
        assert!(source(&catalog, file).0.on_subject_host(), "{file}");
    }
    let mut catalog = folder.open();
    catalog.declare(&declared(vec![rule("proxy.log", false), rule("**", true)])).unwrap();
    let (draft, sensor) = source(&catalog, "proxy.log");
    assert_eq!((draft.sensor.as_str(), sensor), ("proxy01", "unconfirmed@web1"));
    assert!(draft.on_subject_host(), "a draft counts as a guess, and the first rule counts");
    assert!(!source(&catalog, "sub/proxy.log").0.on_subject_host());
    let reopened = folder.open();
    assert!(reopened.sources().iter().all(|source| !source.confirmed), "the index keeps what was detected");
}

#[test]
fn configuration_inside_the_evidence_is_refused() {
    let folder = Folder::new(&[("auth.log", AUTH.as_bytes()), ("team/sources.toml", b"x = 1\n")]);
    let mut catalog = folder.open();
    let inside = Declared { file: Some(folder.evidence().join("team/sources.toml")), ..Declared::default() };
    let error = catalog.declare(&inside).unwrap_err().to_string();
    assert!(error.contains("is inside the evidence folder"), "{error}");
    let outside = Declared { file: Some(folder.dir.path().join("sources.toml")), ..Declared::default() };
    catalog.declare(&outside).unwrap();
}

#[test]
fn tools_show_a_guess_as_a_guess() {
    let folder = Folder::new(&[("proxy.log", PROXY.as_bytes()), ("auth.log", AUTH.as_bytes())]);
    let mut catalog = folder.open();
    catalog.declare(&declared(vec![rule("proxy.log", true)])).unwrap();
    let tools = EvidenceTools::new(Arc::new(catalog), &["proxy".to_owned(), "auth".to_owned()]);
    let listed = call(&tools, "list_sources", "{}");
    let (auth, proxy) = (&listed[0], &listed[1]);
    assert_eq!(auth["sensor"], "unconfirmed@web1");
    assert_eq!((&auth["confirmed"], &auth["guessed_sensor"]), (&false.into(), &"auth@web1".into()));
    assert_eq!((&proxy["sensor"], &proxy["confirmed"]), (&"proxy01".into(), &true.into()));
    assert_eq!((&proxy["written_on_subject_host"], &proxy["acts"][0]), (&false.into(), &"connection".into()));
    assert!(proxy["guessed_sensor"].is_null());
    let about = tools.toolset().about;
    assert!(about.contains("records of auth@web1, a guess") && about.contains("records of proxy01)"), "{about}");
}
