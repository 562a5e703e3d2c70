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

/// The one fault of a file in which `body` is said of a server.
fn fault(body: &str) -> String {
    let text =
        format!("servers:\n  s:\n    about: x\n{}", body.lines().map(|l| format!("    {l}\n")).collect::<String>());
    let faults = parse(&text).expect_err(body);
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults.into_iter().next().unwrap()
}

#[test]
fn every_fault_names_its_line_its_key_and_what_to_write() {
    for (body, line, want) in [
        ("readonly: [x]", 4, "readonly: unknown key; write read_only"),
        ("colour: red", 4, "colour: unknown key; write one of kind, about, "),
        ("read_only: x", 4, "read_only: expected a list; write a list of names of tools of which"),
        ("read_only: [x, [7]]", 4, "read_only.1: expected a text"),
        ("read_only:\n  - x\n  - ''", 6, "read_only.1: expected the name of a tool"),
        ("kind: special", 4, "kind: expected one of general, evidence"),
        ("concurrency: 0", 4, "concurrency: expected a number from 1 to 64"),
        ("concurrency: 65", 4, "concurrency: expected a number from 1 to 64"),
        ("concurrency: many", 4, "concurrency: expected a whole number in its range; write how many calls"),
        ("timeout: 60", 4, "timeout: expected a time with its unit; write one such as 60s"),
        ("timeout: soon", 4, "timeout: expected a time with its unit"),
        ("timeout: 99ms", 4, "timeout: is out of range; write a time from 100ms to 1h"),
        ("start_timeout: 61m", 4, "start_timeout: is out of range"),
        ("environment: [PATH, 'A=hunter2']", 4, "environment.1: expected the name of a variable"),
        ("secrets:\n  TOKEN: hunter2", 5, "secrets.TOKEN: expected one of env, file; write where the secret is, never"),
        ("headers:\n  Authorization: Bearer hunter2", 5, "headers.Authorization: expected one of env, file"),
        ("secrets:\n  TOKEN: { env: sk-hunter2 }", 5, "secrets.TOKEN: expected the name of the environment variable"),
        ("secrets:\n  TOKEN: { file: '' }", 5, "secrets.TOKEN: expected the path of a file"),
        ("secrets:\n  TOKEN: { env: A, file: b }", 5, "secrets.TOKEN.env: expected one key alone"),
        ("secrets:\n  TOKEN: {}", 5, "secrets.TOKEN: expected one key"),
        ("secrets:\n  TOKEN: { value: hunter2 }", 5, "secrets.TOKEN: expected one of env, file"),
        ("secrets:\n  A-B: { env: A }", 5, "secrets.A-B: expected the name of an environment variable"),
        ("headers:\n  A B: { env: A }", 5, "headers.A B: expected the name of a header"),
        ("environment: [A]\nsecrets:\n  A: { env: B }", 6, "secrets.A: is named under environment, too"),
        ("writes: [get_x]\nread_only: [get_*]", 5, "read_only.0: get_* may be a tool that writes names, too"),
        ("writes: [get_x]\nrepeatable: [a, get_*]", 5, "repeatable.1: get_* may be a tool that writes names"),
        ("writes: ['get_*']\nrepeatable:\n  - get_x", 6, "repeatable.0: get_x may be a tool"),
        ("scope: { a: 7 }", 4, "scope: expected a map"),
        ("scope: { a: {} }", 4, "scope.a: fixes nothing"),
        ("scope:\n  '*b': { org: y }\n  a*: { org: x }", 6, "scope.a*.org: fixes this differently from *b"),
        ("written_on_subject_host: maybe", 4, "written_on_subject_host: expected true or false; write false if"),
        ("sensor: ''", 4, "sensor: is empty"),
    ] {
        let got = fault(body);
        assert!(got.starts_with(&format!("team/tools.yaml:{line}: servers.s.{want}")), "{got}");
        assert!(!got.contains("hunter2"), "{got}");
    }
    for (text, want) in [
        ("server:\n  a:\n", "1: server: unknown key; write servers"),
        ("servers: [a]\n", "1: servers: expected a map; write for each server"),
        ("servers:\n  a: on\n", "2: servers.a: expected a map; write what is said of one server"),
        ("text\n", "1: the file: expected a map"),
        ("servers:\n  s:\n    about: x\n    about: y\n", "4: servers.s: about: this key is here a second time"),
    ] {
        let got = parse(text).expect_err(text).join("\n");
        assert!(got.starts_with(&format!("team/tools.yaml:{want}")), "{got}");
    }
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
