use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use casebook_evidence::DOMAINS;

fn parse(text: &str) -> Result<Definition, Vec<String>> {
    Definition::parse(Path::new("team/experts/cloud.yaml"), text)
        .map_err(|faults| faults.0.iter().map(ToString::to_string).collect())
}

const FILE: &str = r#"name: cloud
description: |
  Knows the cloud.
expects: CloudTrail
instructions: |
  Look first.

  Then look again.
model: big
tools:
  - evidence/*
  - my/server/search_*
sources: [cloud, "host-*.log"]
limits: { turns: 12, tool_calls: 0, model_calls: 20, tokens: 200000, cost: "2.50", time: 10m }
"#;

#[test]
fn an_expert_is_what_its_file_says() {
    let grant = |server: &str, tool: &str| Grant { server: Pattern::new(server), tool: Pattern::new(tool) };
    let expect = Definition {
        file: "team/experts/cloud.yaml".into(),
        name: Domain::new("cloud").unwrap(),
        description: "Knows the cloud.".into(),
        expects: "CloudTrail".into(),
        instructions: "Look first.\n\nThen look again.".into(),
        model: Some("big".into()),
        tools: vec![grant("evidence", "*"), grant("my/server", "search_*")],
        sources: vec![Pattern::new("cloud"), Pattern::new("host-*.log")],
        limits: Limits {
            turns: Some(12),
            tool_calls: Some(0),
            model_calls: Some(20),
            tokens: Some(200_000),
            cost_micros: Some(2_500_000),
            seconds: Some(600),
        },
    };
    let read = parse(FILE).unwrap();
    assert_eq!(read, expect);
    assert!(read.grants("evidence", "search") && read.grants("my/server", "search_code"));
    assert!(!read.grants("my/server", "delete") && !read.grants("other", "search"));
}

#[test]
fn what_is_not_said_has_a_default_that_gives_nothing_away() {
    let read = parse("name: a\ndescription: d\ninstructions: i\ntools: [evidence/search]\n").unwrap();
    assert_eq!((read.model, read.limits, read.expects), (None, Limits::default(), String::new()));
    assert_eq!(read.sources, [Pattern::new("a")]);
    let cost = |written: &str| parse(&FILE.replace("\"2.50\"", written)).unwrap().limits.cost_micros;
    assert_eq!((cost("2.50"), cost("3"), cost("'0.000001'")), (Some(2_500_000), Some(3_000_000), Some(1)));
}

#[test]
fn every_fault_names_its_line_its_key_and_what_to_write() {
    for (from, to, line, want) in [
        ("name: cloud", "name: The Cloud", 1, "name: "),
        ("name: cloud\n", "", 1, "name: is missing; write its domain"),
        ("name: cloud", "name: [7]", 1, "name: expected a text"),
        ("description: |\n  Knows the cloud.\n", "", 1, "description: is missing; write its knowledge"),
        ("description: |\n  Knows the cloud.\n", "description: ' '\n", 2, "description: is empty"),
        ("instructions: |\n  Look first.\n\n  Then look again.\n", "", 1, "instructions: is missing"),
        ("expects: CloudTrail", "expects: [CloudTrail]", 4, "expects: expected a text"),
        ("model: big", "modell: big", 9, "modell: unknown key; write model"),
        (
            "tools:\n  - evidence/*\n  - my/server/search_*\n",
            "",
            1,
            "tools: is missing; write a list of tools that it may call",
        ),
        (
            "tools:\n  - evidence/*\n  - my/server/search_*\n",
            "tools: []\n",
            10,
            "tools: expected a list of 1 to 200 names",
        ),
        ("  - evidence/*\n  - my/server/search_*\n", "", 10, "tools: expected a list"),
        ("  - evidence/*", "  - '*'", 11, "tools.0: expected server/tool, got \"*\"; write server/*"),
        (
            "  - evidence/*",
            "  - search",
            11,
            "tools.0: expected server/tool, got \"search\"; write evidence/search for a tool over the logs",
        ),
        ("my/server/search_*", "server/", 12, "tools.1: expected server/tool, got \"server/\""),
        ("my/server/search_*", "/tool", 12, "tools.1: expected server/tool, got \"/tool\""),
        ("sources: [cloud, \"host-*.log\"]", "sources: []", 13, "sources: expected a list of 1 to 200 names"),
        ("turns: 12", "turns: 0", 14, "limits.turns: expected a number from 1 to 1000"),
        ("turns: 12", "turn: 12", 14, "limits.turn: unknown key; write turns"),
        ("tokens: 200000", "tokens: many", 14, "limits.tokens: expected a whole number in its range"),
        ("\"2.50\"", "free", 14, "limits.cost: expected an amount such as 2.50"),
        ("\"2.50\"", "-1", 14, "limits.cost: expected an amount"),
        ("time: 10m", "time: 10", 14, "limits.time: expected a time with its unit"),
        ("time: 10m", "time: 25h", 14, "limits: time: expected one from 1s to 24h"),
        ("time: 10m", "time: 500ms", 14, "limits: time: expected one from 1s to 24h"),
    ] {
        assert!(FILE.contains(from), "{from}");
        let got = parse(&FILE.replacen(from, to, 1)).expect_err(to);
        assert_eq!(got.len(), 1, "{got:?}");
        assert!(got[0].starts_with(&format!("team/experts/cloud.yaml:{line}: {want}")), "{got:?}");
    }
}

#[test]
fn all_faults_of_meaning_come_at_once_in_order() {
    let text = FILE.replace("description: |\n  Knows the cloud.", "description: ''").replace("turns: 12", "turns: 0");
    let got = parse(&text.replace("model: big", "model: ''")).unwrap_err();
    let lines: Vec<&str> = got.iter().filter_map(|fault| fault.split(':').nth(1)).collect();
    assert_eq!(lines, ["2", "8", "13"], "{got:?}");
}

#[test]
fn a_folder_is_read_in_order_and_its_faults_together() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    let told = || -> Vec<String> {
        let faults = read_folder(dir.path()).expect_err("it must not hold");
        faults.0.iter().map(|f| f.to_string().replace(&dir.path().display().to_string(), "D")).collect()
    };
    assert!(told()[0].starts_with("D:1: expected at least one Expert in this folder"), "{:?}", told());
    write("b.yaml", FILE);
    write("a.yml", &FILE.replace("name: cloud", "name: code"));
    write("notes.txt", "nothing");
    let read = read_folder(dir.path()).unwrap();
    assert_eq!(read.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["code", "cloud"]);
    write("c.yaml", &FILE.replace("name: cloud", "# twice\nname: cloud"));
    write("d.yaml", "name: [");
    std::fs::write(dir.path().join("e.yaml"), b"name: \xff").unwrap();
    let told = told();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].starts_with("D/c.yaml:2: name: cloud is also an Expert of D/b.yaml"), "{told:?}");
    assert!(told[1].starts_with("D/d.yaml:") && told[2].contains("D/e.yaml:1: expected UTF-8"), "{told:?}");
    let gone = read_folder(&dir.path().join("gone")).unwrap_err();
    assert!(gone.0[0].what.starts_with("this folder cannot be read"), "{gone:?}");
}

#[test]
fn every_preset_holds_and_all_together_read_every_domain() {
    for (name, text) in PRESETS {
        let read = Definition::parse(Path::new(name), text).unwrap_or_else(|faults| panic!("{faults:?}"));
        assert_eq!(read.name.as_str(), name);
        assert!(read.expects.contains("Fields: ") && read.expects.contains("Time span: "), "{name}");
        assert!(read.instructions.contains("You cannot see: ") && read.instructions.contains("harmless"), "{name}");
        assert_eq!(read.tools.iter().map(|g| format!("{}/{}", g.server, g.tool)).collect::<Vec<_>>(), ["evidence/*"]);
        assert!(read.sources.contains(&Pattern::new(name)), "{name} reads its own domain");
    }
    let presets = presets();
    assert_eq!(presets.len(), 8);
    let sources: BTreeSet<&str> = presets.iter().flat_map(|p| &p.sources).map(Pattern::as_str).collect();
    for domain in DOMAINS {
        assert!(sources.contains(domain), "no source is for {domain}");
    }
    let names: BTreeSet<&str> = presets.iter().map(|p| p.name.as_str()).collect();
    assert!(sources.iter().all(|s| DOMAINS.contains(s) || names.contains(s)), "{sources:?}");
}

#[test]
fn the_schema_holds_what_is_read_and_refuses_what_is_not() {
    let schema = jsonschema::draft202012::new(&Definition::schema()).unwrap();
    let check = |text: &str, expect: bool| {
        let value: serde_json::Value = Source::new(Form::Yaml, Path::new("f"), text).read().unwrap();
        assert_eq!(schema.is_valid(&value), expect, "{text}");
    };
    check(FILE, true);
    PRESETS.iter().for_each(|(_, text)| check(text, true));
    check(&FILE.replace("name: cloud", "name: A"), false);
    check(&FILE.replace("model: big", "colour: red"), false);
    check(&FILE.replace("turns: 12", "turns: 0"), false);
    check(&FILE.replace("time: 10m", "time: 10"), false);
}

proptest! {
    #[test]
    fn no_expert_stops_the_reader(key in "(name|description|tools|sources|limits|model|x)", value in "([ -~é]{0,20}|\\[a/b, '\\*'\\]|\\{(turns|cost|time): [0-9]{1,30}(s|h)?\\})") {
        let _ = parse(&format!("{FILE}\n{key}: {value}\n"));
        let _ = parse(&format!("name: a\ndescription: d\ninstructions: i\ntools: [e/f]\n{key}: {value}\n"));
    }
}
