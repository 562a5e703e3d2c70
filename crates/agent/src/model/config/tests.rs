use casebook_table::{blocks, expect_file};

use super::*;

const FILE: &str = r#"
[models.big]
provider = "anthropic"
model = "claude-x"
key_env = "ANTHROPIC_API_KEY"
window = 200000
max_output = 16000
effort = "high"
timeout_seconds = 120
fallback = ["mid"]
price = { input = 3.0, cached = 0.3, cache_write = 3.75, output = 15 }

[models.mid]
provider = "openai-responses"
model = "gpt-x"
key_file = "/run/secrets/openai"
window = 128000
fallback = ["small"]

[models.small]
provider = "openai-compatible"
model = "qwen"
base_url = "http://localhost:11434/v1"
window = 32768
temperature = 0
seed = 7

[roles.director]
model = "big"

[roles.expert]
model = "small"
limits = { turns = 8, tool_calls = 20, tokens = 100000 }
[roles.expert.phases.trace]
model = "mid"
limits = { tokens = 400000, cost = 0.5 }
[roles.expert.domains.cloud]
model = "big"
limits = { turns = 12 }

[roles.critic]
model = "mid"
[roles.critic.tasks.timeline]
model = "analyst"
"#;

fn config() -> Config {
    Config::parse("models.toml", FILE).expect("the file holds")
}

fn chain(selected: &ModelSelection) -> Vec<&str> {
    selected.chain.iter().map(|profile| profile.name.as_str()).collect()
}

#[test]
fn a_profile_has_what_the_file_says_and_sane_defaults() {
    let config = config();
    let small = config.model("small").unwrap();
    assert_eq!(
        *small,
        Profile {
            name: "small".into(),
            provider: Provider::OpenaiCompatible,
            provider_model: "qwen".into(),
            base_url: "http://localhost:11434/v1/".into(),
            key: KeySource::Keyless,
            window: 32768,
            max_output: 8192,
            way: Way::SubmitTool,
            parameters: Parameters { temperature: Some(0.0), seed: Some(7), ..Parameters::default() },
            timeout: Duration::from_secs(300),
            concurrency: 8,
            price: None,
            fallback: vec![],
        }
    );
    let big = config.model("big").unwrap();
    let price = Price { input: 3_000_000, cached: 300_000, cache_write: 3_750_000, output: 15_000_000 };
    assert_eq!((big.way, big.price, big.parameters.effort), (Way::Native, Some(price), Some(Effort::High)));
    assert_eq!(big.base_url, "https://api.anthropic.com/v1/");
    assert_eq!(config.model("mid").unwrap().key, KeySource::File("/run/secrets/openai".into()));
}

#[test]
fn a_selection_is_the_role_then_phase_task_and_domain() {
    let config = config();
    let cloud = Domain::new("cloud").unwrap();
    let of = |phase, domain| config.select(Role::Expert, TaskKind::Investigate, phase, domain).unwrap();

    let plain = of(Phase::Discovery, None);
    assert_eq!(chain(&plain), ["small"]);
    assert_eq!((plain.limits.turns, plain.limits.tokens), (Some(8), Some(100_000)));

    let trace = of(Phase::Trace, None);
    assert_eq!(chain(&trace), ["mid", "small"]);
    assert_eq!((trace.limits.turns, trace.limits.tokens), (Some(8), Some(400_000)));
    assert_eq!(trace.limits.cost_micros, Some(500_000));

    let both = of(Phase::Trace, Some(&cloud));
    assert_eq!(chain(&both), ["big", "mid", "small"], "the domain goes before the phase; fallbacks have fallbacks");
    assert_eq!((both.limits.turns, both.limits.tokens), (Some(12), Some(400_000)));
}

#[test]
fn no_model_means_the_analyst() {
    let config = config();
    assert_eq!(config.select(Role::Critic, TaskKind::Timeline, Phase::Trace, None), None);
    assert!(config.select(Role::Critic, TaskKind::Review, Phase::Trace, None).is_some());
    assert_eq!(Config::default().select(Role::Director, TaskKind::Plan, Phase::Discovery, None), None);
    let limits_only = Config::parse("f", "[roles.expert]\nlimits = { turns = 3 }\n").unwrap();
    assert_eq!(limits_only.select(Role::Expert, TaskKind::Investigate, Phase::Trace, None), None);
}

#[test]
fn a_model_that_two_fallbacks_lead_to_is_asked_once() {
    let model = |name: &str, fallback: &str| {
        format!(
            "[models.{name}]\nprovider = \"openai-compatible\"\nmodel = \"m\"\nbase_url = \"http://h/v1\"\nwindow = 4096\nfallback = [{fallback}]\n"
        )
    };
    let text = [model("a", "\"b\", \"c\""), model("b", "\"d\""), model("c", "\"d\""), model("d", "")].concat();
    let config = Config::parse("f", &format!("{text}[roles.director]\nmodel = \"a\"\n")).unwrap();
    let selected = config.select(Role::Director, TaskKind::Plan, Phase::Discovery, None).unwrap();
    assert_eq!(chain(&selected), ["a", "b", "d", "c"]);
}

#[test]
fn gemini_and_bedrock_are_reached_by_their_chat_interface() {
    let gemini = "https://generativelanguage.googleapis.com/v1beta";
    let bedrock = "https://bedrock-runtime.eu-central-1.amazonaws.com";
    for (provider, given, expected) in [
        ("gemini", None, format!("{gemini}/openai/")),
        ("gemini", Some(gemini.to_owned()), format!("{gemini}/openai/")),
        ("gemini", Some(format!("{gemini}/openai")), format!("{gemini}/openai/")),
        ("bedrock", Some(format!("{bedrock}/")), format!("{bedrock}/openai/v1/")),
        ("bedrock", Some(format!("{bedrock}/openai/v1")), format!("{bedrock}/openai/v1/")),
        ("bedrock", Some("https://gateway/aws/v1".into()), "https://gateway/aws/v1/".into()),
    ] {
        let given = given.map(|url| format!("base_url = \"{url}\"\n")).unwrap_or_default();
        let text =
            format!("[models.m]\nprovider = \"{provider}\"\nmodel = \"x\"\nkey_env = \"K\"\nwindow = 4096\n{given}");
        assert_eq!(Config::parse("f", &text).unwrap().model("m").unwrap().base_url, expected, "{given}");
    }
}

/// The fault of a file with one model, `change`d: the line within that model and the text.
fn fault(lines: &[&str]) -> String {
    let text = format!("[models.m]\n{}\n", lines.join("\n"));
    Config::parse("models.toml", &text).expect_err("this must not hold").to_string()
}

const GOOD: [&str; 4] = ["provider = \"openai\"", "model = \"gpt-x\"", "key_env = \"OPENAI_API_KEY\"", "window = 8192"];

fn with(line: &str) -> String {
    fault(&[&GOOD[..], &[line]].concat())
}

fn without(start: &str, instead: &str) -> String {
    fault(&GOOD.map(|line| if line.starts_with(start) { instead } else { line }))
}

#[test]
fn every_fault_names_its_line_its_key_and_what_to_write() {
    blocks(&expect_file!["faults.txt"], |title, input| {
        let got = match title.strip_prefix("instead of ") {
            Some(start) => without(start, input),
            None if title == "whole" => fault(&[input]),
            None => with(input),
        };
        assert!(!got.contains("hunter2"), "{got}");
        got
    });
}

#[test]
fn all_faults_of_meaning_come_at_once_in_order() {
    let got = with("seed = 1\ntop_p = 0\ntemperature = 3\n[roles.critic]\nmodel = \"n\"");
    let lines: Vec<&str> = got.lines().filter_map(|fault| fault.split(':').nth(1)).collect();
    assert_eq!(lines, ["7", "8", "10"], "{got}");
}

#[test]
fn no_fault_quotes_a_secret() {
    for got in [
        without("key_env", "key_env = \"sk-live-hunter2\""),
        without("key_env", "key = \"sk-live-hunter2\""),
        without("key_env", "key = sk-live-hunter2"),
        without("key_env", "api_key = \"sk-live-hunter2\""),
        with("base_url = \"https://u:hunter2@h/v1\""),
        with("base_url = \"https://h/v1?key=hunter2\""),
    ] {
        assert!(!got.contains("hunter2"), "{got}");
    }
}

#[test]
fn the_examples_hold_and_use_a_model() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/models");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let config = Config::parse(&path, &text).unwrap_or_else(|error| panic!("{error}"));
        assert!(config.select(Role::Director, TaskKind::Plan, Phase::Discovery, None).is_some(), "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 4);
}

/// The examples in the manual are read too: each block that begins with a table.
#[test]
fn the_manuals_examples_hold() {
    let text = include_str!("../../../../../docs/models.md");
    let blocks: Vec<&str> = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 2);
    for block in blocks {
        Config::parse("docs/models.md", block).unwrap_or_else(|error| panic!("{error} in\n{block}"));
    }
}
