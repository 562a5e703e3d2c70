use casebook_table::{blocks, expect_file};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parse(text: &str) -> Result<Policy, Vec<String>> {
    Policy::parse(Path::new("team/tools.yaml"), text)
        .map_err(|faults| faults.0.iter().map(ToString::to_string).collect())
}

const FILE: &str = r"
servers:
  github:
    about: Code and audit log of the organisation acme
    read_only: [search_*, get_*]
    writes: [add_label, set_*]
    repeatable: [get_*, '*_seen']
    concurrency: 2
    timeout: 500ms
    start_timeout: 2m
    environment: [PATH, HOME]
    secrets: { GITHUB_TOKEN: { env: CASEBOOK_GITHUB_TOKEN }, OTHER: { file: /run/secrets/github } }
    headers: { Authorization: { file: github-header } }
    scope:
      search_*: { org: acme, page: 1 }
      get_*: { org: acme }
    sensor: github-audit
    written_on_subject_host: false
  evidence:
    kind: evidence
  plain:
";

#[test]
fn a_policy_has_what_the_file_says_and_sane_defaults() {
    let policy = parse(FILE).unwrap();
    let pattern = |text: &str| Pattern::new(text);
    let github = ServerPolicy {
        kind: Kind::General,
        about: "Code and audit log of the organisation acme".into(),
        read_only: vec![pattern("search_*"), pattern("get_*")],
        writes: vec![pattern("add_label"), pattern("set_*")],
        repeatable: vec![pattern("get_*"), pattern("*_seen")],
        concurrency: 2,
        timeout: Duration::from_millis(500),
        start_timeout: Duration::from_secs(120),
        environment: vec!["PATH".into(), "HOME".into()],
        secrets: BTreeMap::from([
            ("GITHUB_TOKEN".into(), SecretSource::Env("CASEBOOK_GITHUB_TOKEN".into())),
            ("OTHER".into(), SecretSource::File("/run/secrets/github".into())),
        ]),
        headers: BTreeMap::from([("Authorization".into(), SecretSource::File("team/github-header".into()))]),
        scope: BTreeMap::from([
            (pattern("search_*"), json!({"org": "acme", "page": 1}).as_object().unwrap().clone()),
            (pattern("get_*"), json!({"org": "acme"}).as_object().unwrap().clone()),
        ]),
        sensor: Some("github-audit".into()),
        on_subject_host: false,
    };
    assert_eq!(policy.of("github"), github);
    assert_eq!(policy.of("evidence"), ServerPolicy { kind: Kind::Evidence, ..ServerPolicy::default() });
    assert_eq!(policy.of("plain"), ServerPolicy::default());
    assert_eq!(policy.of("unknown"), ServerPolicy::default());
    for empty in ["", "servers:\n", "servers: {}\n"] {
        assert!(parse(empty).unwrap().servers.is_empty());
    }
}

#[test]
fn every_fault_names_its_line_its_key_and_what_to_write() {
    blocks(&expect_file!["faults.txt"], |title, input| {
        let inner = || input.lines().map(|line| format!("    {line}\n")).collect::<String>();
        let whole = || format!("servers:\n  s:\n    about: x\n{}", inner());
        let got = parse(&if title == "file" { input.to_owned() } else { whole() }).expect_err(input).join("\n");
        assert!(!got.contains("hunter2"), "{got}");
        got
    });
}

#[test]
fn all_faults_of_meaning_come_at_once_in_order() {
    let text =
        "servers:\n  b:\n    timeout: 1ms\n    sensor: ''\n  a:\n    concurrency: 0\n    secrets: { 7: {env: A} }\n";
    let lines: Vec<String> =
        parse(text).unwrap_err().iter().map(|f| f.split(": ").next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["team/tools.yaml:3", "team/tools.yaml:4", "team/tools.yaml:6", "team/tools.yaml:7"]);
}

#[test]
fn a_key_without_a_value_says_nothing() {
    let text = "servers:\n  a:\n    read_only:\n    secrets:\n    scope:\n    environment:\n";
    assert_eq!(parse(text).unwrap().of("a"), ServerPolicy::default());
}

#[test]
fn the_schema_holds_what_is_read_and_refuses_what_is_not() {
    let schema = jsonschema::draft202012::new(&Policy::schema()).unwrap();
    let check = |text: &str, expect: bool| {
        let value: Value = Source::new(Form::Yaml, Path::new("f"), text).read().unwrap();
        assert_eq!(schema.is_valid(&value), expect, "{text}");
    };
    check(FILE, true);
    check("{}", true);
    check("servers: { a: { colour: red } }", false);
    check("servers: { a: { concurrency: 65 } }", false);
    check("servers: { a: { timeout: soon } }", false);
    check("servers: { a: { secrets: { A: hunter2 } } }", false);
    check("servers: { a: { secrets: { A: { env: A, file: b } } } }", false);
}

proptest! {
    #[test]
    fn no_policy_stops_the_reader(key in "(kind|about|read_only|concurrency|timeout|environment|secrets|scope|x)", value in "([ -~é]{0,20}|\\[a, '\\*'\\]|\\{a: \\{env: b\\}\\}|\\{'\\*': \\{a: 1\\}\\}|[0-9]{1,30}(s|ms|h)?)") {
        let _ = parse(&format!("servers:\n  a:\n    {key}: {value}\n"));
    }
}
