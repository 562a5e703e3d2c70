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
    for (line, at, want) in [
        ("colour = 1", 6, "models.m.colour: unknown key; write one of provider, model, "),
        ("max_output = 9000", 6, "models.m.max_output: expected a number from 1 to 8191"),
        ("temperature = 3", 6, "models.m.temperature: expected a number from 0 to 2"),
        ("top_p = 0", 6, "models.m.top_p: expected a number above 0 and at most 1"),
        ("timeout_seconds = 0", 6, "models.m.timeout_seconds: expected a number from 1 to 3600"),
        ("concurrency = 0", 6, "models.m.concurrency: expected a number from 1 to 1024"),
        ("answer = \"json\"", 6, "models.m.answer: expected one of native, submit_tool"),
        ("effort = \"lots\"", 6, "models.m.effort: expected one of none, minimal, low, medium, high"),
        ("price = { input = -1, output = 1 }", 6, "models.m.price.input: expected an amount"),
        ("price = { output = 1 }", 6, "models.m.price.input: is missing; write of a million input tokens"),
        (
            "fallback = [\"x\"]",
            6,
            "models.m.fallback.0: there is no such model in this file; write one of its [models.NAME] (m)",
        ),
        ("fallback = [\"m\"]", 6, "models.m.fallback: goes in a circle (m -> m)"),
        ("base_url = \"gateway\"", 6, "models.m.base_url: expected a whole address"),
        ("base_url = \"ftp://h/\"", 6, "models.m.base_url: expected an address that begins with http:// or https://"),
        (
            "base_url = \"https://u:hunter2@h/v1\"",
            6,
            "models.m.base_url: leave user and password out; a key belongs in key_env",
        ),
        ("base_url = \"https://h/v1?key=hunter2\"", 6, "models.m.base_url: leave out what follows '?'"),
        ("key_file = \"k\"", 4, "models.m.key_env: key_env and key_file are both set"),
        ("seed = ", 6, ""),
        ("[roles.expert]\nmodel = \"n\"", 7, "roles.expert.model: there is no such model"),
        (
            "[roles.expert.tasks.plan]\nmodel = \"m\"",
            6,
            "roles.expert.tasks.plan: this is a task of the director; write it under [roles.director]",
        ),
        ("[roles.critic.domains.cloud]\nmodel = \"m\"", 6, "roles.critic.domains: only Experts have domains"),
        (
            "[roles.expert.phases.later]\nmodel = \"m\"",
            6,
            "roles.expert.phases: expected one of discovery, trace, conclude",
        ),
        ("[roles.expert.limits]\nturns = 0", 7, "roles.expert.limits.turns: expected a number from 1 to 1000"),
        ("[roles.boss]\nmodel = \"m\"", 6, "roles.boss: unknown key; write one of director, expert, critic"),
        (
            "[models.analyst]\nprovider = \"openai\"\nmodel = \"x\"\nkey_env = \"A\"\nwindow = 4096",
            6,
            "models.analyst: \"analyst\" names the built-in analyst",
        ),
    ] {
        let got = with(line);
        assert!(got.starts_with(&format!("models.toml:{at}: {want}")), "{got}");
    }
    let bedrock = "provider = \"bedrock\"\nbase_url = \"https://h\"\nanswer = \"native\"";
    for (key, instead, at, want) in [
        (
            "window",
            "window = 10",
            5,
            "models.m.window: expected the tokens of the model's context window, 1024 or more",
        ),
        ("window", "", 1, "models.m.window: is missing; write tokens that prompt and reply"),
        ("key_env", "", 1, "models.m.key_env: is missing; openai wants a key"),
        (
            "key_env",
            "key_env = \"sk-live-hunter2\"",
            4,
            "models.m.key_env: expected the name of an environment variable, not",
        ),
        ("key_env", "key = \"sk-live-hunter2\"", 4, "models.m.key: a key is never in this file"),
        ("provider", "provider = \"ollama\"", 2, "models.m.provider: expected one of anthropic, openai"),
        (
            "provider",
            "provider = \"openai-compatible\"",
            1,
            "models.m.base_url: openai-compatible needs the server's address",
        ),
        ("model", "model = \"\"", 3, "models.m.model: expected the name that the provider gives"),
        (
            "provider",
            "provider = \"openai-responses\"\nseed = 1",
            3,
            "models.m.seed: openai-responses has none; leave it out",
        ),
        (
            "provider",
            bedrock,
            4,
            "models.m.answer: bedrock has no structured output of its own here; write \"submit_tool\"",
        ),
    ] {
        let got = without(key, instead);
        assert!(got.starts_with(&format!("models.toml:{at}: {want}")), "{got}");
    }
    assert!(without("provider", "provider = \"ollama\"").contains("base_url = \"http://localhost:11434/v1\""));
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
