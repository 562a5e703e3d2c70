use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parse(text: &str) -> Result<Policy, Vec<String>> {
    Policy::parse(Path::new("team/tools.yaml"), text).map_err(|faults| faults.iter().map(ToString::to_string).collect())
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
        line: 3,
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
        scope: vec![
            (pattern("search_*"), json!({"org": "acme", "page": 1}).as_object().unwrap().clone()),
            (pattern("get_*"), json!({"org": "acme"}).as_object().unwrap().clone()),
        ],
        sensor: Some("github-audit".into()),
        on_subject_host: false,
    };
    assert_eq!(policy.of("github"), github);
    assert_eq!(policy.of("evidence"), ServerPolicy { line: 19, kind: Kind::Evidence, ..ServerPolicy::default() });
    assert_eq!(policy.of("plain"), ServerPolicy { line: 21, ..ServerPolicy::default() });
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
    let check = |got: String, line: usize, wants: &[&str]| {
        assert!(got.starts_with(&format!("team/tools.yaml:{line}: ")), "{got}");
        for want in wants {
            assert!(got.contains(want), "{want:?} is not in {got:?}");
        }
        assert!(!got.contains("hunter2"), "{got}");
    };
    check(fault("readonly: [x]"), 4, &["servers.s.readonly: is no key of servers.s: write read_only"]);
    check(fault("colour: red"), 4, &["colour: is no key", "write one of ", "about, "]);
    check(fault("about: [x]"), 4, &["about: stands here a second time"]);
    check(fault("read_only: x"), 4, &["read_only: is a text, and must be a list", "[search_*, get_*]"]);
    check(fault("read_only: [x, 7]"), 4, &["read_only.1: is a number, and must be a text"]);
    check(fault("read_only:\n  - x\n  - ''"), 6, &["read_only.1: is empty"]);
    check(fault("kind: special"), 4, &["kind: is none of general, evidence"]);
    check(fault("concurrency: 0"), 4, &["concurrency: is too small: write 1 or more"]);
    check(fault("concurrency: 65"), 4, &["concurrency: is too large: write 64 or less"]);
    check(fault("concurrency: 300"), 4, &["concurrency: is too large"]);
    check(fault("concurrency: many"), 4, &["concurrency: is a text, and must be a whole number"]);
    check(fault("timeout: 60"), 4, &["timeout: is a number", "such as 60s, 500ms or 2m"]);
    check(fault("timeout: soon"), 4, &["timeout: is not what may stand here", "such as 60s"]);
    check(fault("timeout: 99ms"), 4, &["timeout: is out of range", "100ms to 1h"]);
    check(fault("start_timeout: 61m"), 4, &["start_timeout: is out of range"]);
    check(fault("environment: [PATH, 'A=hunter2']"), 4, &["environment.1: ", "such as PATH"]);
    check(
        fault("secrets:\n  TOKEN: hunter2"),
        5,
        &["secrets.TOKEN: is a text", "never the secret itself", "{ env: NAME }"],
    );
    check(
        fault("headers:\n  Authorization: Bearer hunter2"),
        5,
        &["headers.Authorization: is a text", "never the secret"],
    );
    check(
        fault("secrets:\n  TOKEN: { env: sk-hunter2 }"),
        5,
        &["secrets.TOKEN.env: ", "name of the environment variable"],
    );
    check(fault("secrets:\n  TOKEN: { env: A, file: b }"), 5, &["secrets.TOKEN: "]);
    check(fault("secrets:\n  TOKEN: {}"), 5, &["secrets.TOKEN: "]);
    check(fault("secrets:\n  A-B: { env: A }"), 5, &["A-B: is no name of an environment variable"]);
    check(fault("headers:\n  A B: { env: A }"), 5, &["A B: is no name of a header"]);
    check(fault("environment: [A]\nsecrets:\n  A: { env: B }"), 6, &["named under environment, too"]);
    check(fault("writes: [get_x]\nread_only: [get_*]"), 5, &["get_* may be a tool that is named under writes, too"]);
    check(
        fault("writes: [get_x]\nrepeatable: [a, get_*]"),
        5,
        &["repeatable.1: get_* may be", "named under writes, too"],
    );
    check(fault("writes: ['get_*']\nrepeatable:\n  - get_x"), 6, &["repeatable.0: get_x may be a tool"]);
    check(fault("scope: { a: 7 }"), 4, &["scope.a: is a number, and must be a map"]);
    check(fault("scope: { a: {} }"), 4, &["scope.a: fixes nothing"]);
    check(fault("scope:\n  a*: { org: x }\n  '*b': { org: y }"), 6, &["org: fixes this differently from a*"]);
    check(fault("written_on_subject_host: maybe"), 4, &["must be true or false"]);
    check(fault("sensor: ''"), 4, &["sensor: is empty"]);
    let of = |text: &str| parse(text).expect_err(text).join("\n");
    check(
        of("servers:\n  a:\n    secrets: { T: { value: hunter2 } }\n"),
        3,
        &["secrets.T: says not where", "value: is no key", "env, file"],
    );
    check(of("server:\n  a:\n"), 1, &["server: is no key of the file: write servers"]);
    check(of("servers: [a]\n"), 1, &["servers: is a list, and must be a map"]);
    check(of("servers:\n  a: on\n"), 2, &["servers.a: is a text, and must be a map"]);
    check(of("text\n"), 1, &["the file: is a text, and must be a map"]);
}

#[test]
fn all_faults_are_told_at_once_in_order() {
    let text =
        "servers:\n  b:\n    timeout: 1ms\n    colour: red\n  a:\n    concurrency: 0\n    secrets: { X: hunter2 }\n";
    let lines: Vec<String> =
        parse(text).unwrap_err().iter().map(|f| f.split(": ").next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["team/tools.yaml:4", "team/tools.yaml:6", "team/tools.yaml:7"]);
    let text =
        "servers:\n  b:\n    timeout: 1ms\n    colour: red\n  a:\n    concurrency: 0\n    secrets: { 7: {env: A} }\n";
    assert_eq!(parse(text).unwrap_err().len(), 4, "what has its form is checked further");
}

#[test]
fn the_schema_holds_what_is_read_and_refuses_what_is_not() {
    let schema = jsonschema::draft202012::new(&Policy::schema()).unwrap();
    let check = |text: &str, expect: bool| {
        let value = Document::yaml(Path::new("f"), text).unwrap().root().value();
        assert_eq!(schema.is_valid(&value), expect, "{text}");
    };
    check(FILE, true);
    check("", true);
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
