//! `casebook check`: whole team folders, single files, and the schemas for editors.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use casebook_agent::model::config::Config;
use casebook_cli::args::Format;
use casebook_cli::commands::check::{check, schema};
use casebook_expert::profile::Profile;
use casebook_runtime::config::{Form, Source};
use serde_json::{Value, json};
use tempfile::TempDir;

const EXPERT: &str =
    "name: cloud\ndescription: d\ninstructions: i\nmodel: big\ntools:\n  - evidence/search\n  - hub/get_*\n";
const MCP: &str =
    "{\"mcpServers\": {\n\"hub\": {\"command\": \"npx\"},\n\"off\": {\"command\": \"x\", \"disabled\": true}}}";
const TOOLS: &str = "servers:\n  hub:\n    environment: [PATH]\n  off:\n    timeout: 1s\n";
const MODELS: &str =
    "[models.big]\nprovider = \"openai-compatible\"\nmodel = \"m\"\nbase_url = \"http://h/v1\"\nwindow = 4096\n";

const SOURCES: &str =
    "[[source]]\nfiles = \"proxy.log\"\nsensor = \"proxy01\"\non_alerted_host = false\nconfirmed = true\n";

/// A team folder that holds.
struct Team(TempDir);

impl Team {
    fn new() -> Self {
        let team = Self(tempfile::tempdir().unwrap());
        team.file("experts/cloud.yaml", EXPERT);
        team.file("mcp.json", MCP);
        team.file("tools.yaml", TOOLS);
        team.file("pins.json", "{\"version\":1,\"servers\":{}}");
        team.file("models.toml", MODELS);
        team
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The faults of the folder, with paths in it.
    fn faults(&self) -> Vec<String> {
        let models = self.0.path().join("models.toml");
        let found = check(&[self.0.path().to_path_buf()], Some(&models), &|_| None);
        self.told(found.faults.iter().map(ToString::to_string))
    }

    fn told(&self, faults: impl Iterator<Item = String>) -> Vec<String> {
        let folder = format!("{}/", self.0.path().display());
        faults.map(|fault| fault.replace(&folder, "")).collect()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_casebook"));
        for name in ["CASEBOOK_TEAM", "CASEBOOK_MODELS", "CASEBOOK_DATA"] {
            command.env_remove(name);
        }
        command.arg("check").args(arguments).current_dir(self.0.path()).output().unwrap()
    }
}

/// The one fault of a team in which `name` holds `text`.
fn fault(name: &str, text: &str) -> String {
    let team = Team::new();
    team.file(name, text);
    let faults = team.faults();
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults.into_iter().next().unwrap()
}

#[test]
fn a_team_folder_is_checked_across_its_files() {
    assert_eq!(Team::new().faults(), Vec::<String>::new());
    let holds = |got: &str, wants: &[&str]| {
        for want in wants {
            assert!(got.contains(want), "{want:?} is not in {got:?}");
        }
    };
    let expert = |from: &str, to: &str, wants: &[&str]| {
        let got = fault("experts/cloud.yaml", &EXPERT.replace(from, to));
        holds(&got, wants);
        assert!(got.starts_with("experts/cloud.yaml:"), "{got}");
    };
    expert("hub/", "hubs/", &["cloud.yaml:7: tools.1: mcp.json has no server hubs; write hub/get_*"]);
    expert("hub/", "other/", &["cloud.yaml:7: tools.1: mcp.json has no server other; the servers are hub, evidence"]);
    expert("hub/", "off/", &["cloud.yaml:7: tools.1: the server off is disabled"]);
    expert("hub/", "z*/", &["cloud.yaml:7: tools.1: z* matches no server of mcp.json"]);
    expert("/search", "/serch", &["cloud.yaml:6: tools.0: unknown evidence tool serch", "evidence/search"]);
    expert("/search", "/x*", &["cloud.yaml:6: tools.0: unknown evidence tool x*", "count_by"]);
    expert("model: big", "model: small", &["cloud.yaml:4: model: the models file has no \"small\"", "big, analyst"]);
    let tools = |text: &str, wants: &[&str]| holds(&fault("tools.yaml", text), wants);
    tools(&format!("{TOOLS}  hug:\n"), &["tools.yaml:6: servers.hug: mcp.json has no such server; write hub"]);
    tools(&format!("{TOOLS}  zzzz:\n"), &["tools.yaml:6: servers.zzzz", "add it there, or leave this out"]);
    tools(&TOOLS.replace("[PATH]", "[HOME]"), &["mcp.json:2: mcpServers.hub: npx needs the PATH", "tools.yaml"]);
    tools(
        &format!("{TOOLS}    headers: {{ A: {{ env: B }} }}\n").replace("  off:\n    timeout: 1s\n", ""),
        &["tools.yaml:2", "has no headers"],
    );
    let http = MCP.replace("\"command\": \"npx\"", "\"url\": \"http://h/mcp\"");
    holds(&fault("mcp.json", &http), &["tools.yaml:2: servers.hub: this server has an address"]);
    holds(&fault("tools.yml", TOOLS), &["tools.yml:1: this file name is ignored", "tools.yaml"]);
    holds(&fault("source.toml", SOURCES), &["source.toml:1: this file name is ignored", "sources.toml"]);
    holds(&fault("mcp.jsonc", MCP), &["mcp.jsonc:1: this file name is ignored", "mcp.json"]);
    holds(&fault("pins.json", "{"), &["pins.json:1: EOF while parsing", "remove this file to pin all tools again"]);
    holds(
        &fault("mcp.json", &MCP.replace("\"npx\"", "\"${UNSET}\"")),
        &["mcp.json:2: mcpServers.hub.command", "UNSET"],
    );
}

#[test]
fn a_server_of_a_team_may_be_the_evidence() {
    let team = Team::new();
    team.file("tools.yaml", &format!("{TOOLS}  evidence:\n    kind: evidence\n"));
    assert_eq!(team.faults(), Vec::<String>::new());
}

#[test]
fn sources_file_is_checked_and_compared_with_the_evidence() {
    let team = Team::new();
    team.file("sources.toml", &SOURCES.replace("false", "1"));
    let faults = team.faults();
    assert!(faults.len() == 1 && faults[0].starts_with("sources.toml:4: source.0.on_alerted_host: "), "{faults:?}");
    holds_alone(&Team::new());
    let draft = SOURCES.replace("proxy.log", "gone/*.log").replace("confirmed = true\n", "");
    team.file("sources.toml", &format!("{SOURCES}\n{draft}\n{SOURCES}"));
    team.file("logs/proxy.log", "2026-03-01T02:03:04Z one\n2026-03-01T02:03:05Z two\n");
    team.file("logs/auth.log", "2026-03-01T02:03:04Z one\n2026-03-01T02:03:05Z two\n");
    let output = team.run(&[".", "--evidence", "logs", "--data", "data", "--json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &told["faults"]), (Some(0), &json!([])));
    let notices = told["notices"].as_array().unwrap().iter();
    let notices: Vec<String> = notices.map(|n| format!("{}: {}", n["line"], n["what"].as_str().unwrap())).collect();
    assert_eq!(
        notices,
        [
            "1: no entry matches auth.log, so it counts as a guess; add an entry",
            "7: source.1: gone/*.log counts as a guess; check the entry, then set confirmed = true",
            "7: source.1: gone/*.log matches no file of the evidence; correct or remove it",
            "12: source.2: proxy.log has no effect: earlier entries match its files; remove it or move it up",
        ]
    );
    let output = team.run(&[".", "--models", "models.toml"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("sources.toml:7: source.1: gone/*.log counts as a guess")
            && text.ends_with("6 files are valid\n"),
        "{text}"
    );
}

/// A folder with `sources.toml` alone is a team folder.
fn holds_alone(team: &Team) {
    let alone = team.file("alone/sources.toml", SOURCES);
    let found = check(&[alone.parent().unwrap().to_path_buf()], None, &|_| None);
    assert_eq!((found.faults, found.notices), (Vec::new(), Vec::new()));
}

#[test]
fn all_faults_of_all_files_are_told_at_once_in_order() {
    let team = Team::new();
    team.file("experts/broken.yaml", "name: Broken\ncolour: red\n");
    team.file("experts/cloud.yaml", &EXPERT.replace("hub/", "gone/"));
    team.file("tools.yaml", "servers:\n  gone:\n    timeout: 1ms\n");
    let places: Vec<String> =
        team.faults().iter().map(|f| f.splitn(3, ':').take(2).collect::<Vec<_>>().join(":")).collect();
    // Of tools.yaml no more is known than that it does not hold: what it says of servers is not compared.
    assert_eq!(places, ["experts/broken.yaml:1", "experts/cloud.yaml:7", "tools.yaml:3"]);
}

#[test]
fn each_kind_of_file_is_known_by_its_name_or_its_keys() {
    let team = Team::new();
    let holds = |name: &str, text: &str, expect: &str| {
        let path = team.file(name, text);
        let found = check(&[path], None, &|_| None);
        let got = team.told(found.faults.iter().map(ToString::to_string)).join("\n");
        assert!(got.contains(expect) && got.is_empty() == expect.is_empty(), "{name}: {got:?}");
    };
    holds("claude_desktop_config.json", MCP, "");
    holds("x.yml", EXPERT, "");
    holds("x.yml", "name: A\n", "x.yml:1: name");
    holds("m.toml", MODELS, "");
    holds("m.toml", "[models.big]\nprovider = \"x\"\n", "m.toml:");
    holds("m.toml", &MODELS.replace("4096", "12"), "m.toml:5: models.big.window");
    holds("p.toml", "evidence = \"e\"\nindex = \"i\"\n", "");
    holds("p.toml", "evidence = \"e\"\nindex = 7\n", "p.toml:2: ");
    holds("p.toml", "team = \"t\"\n", "");
    holds("p.toml", "team = \"\"\n", "p.toml:1: team: is empty");
    holds("profile.toml", "x = \n", "profile.toml:1: ");
    holds("hub.toml", "at_once = 3\nmodels = \"m.toml\"\n", "hub.toml:2: ");
    holds("hub.toml", "at_once = 3\n", "");
    holds("hub.toml", "\nat_once = 0\n", "hub.toml:2: at_once: expected a whole number");
    holds("critic.toml", "models = \"m.toml\"\n", "");
    holds("critic.toml", "colour = 1\n", "critic.toml:1: colour: unknown key");
    holds("other.toml", "colour = 1\n", "other.toml:1: expected a models file");
    holds("f.toml", "[[format]]\nname = \"a\"\n", "f.toml:1: format.0.files: is missing");
    holds("s.toml", SOURCES, "");
    holds("sources.toml", &SOURCES.replace("sensor", "sensors"), "sources.toml:3: source.0.sensors: unknown key");
    holds("s.toml", "[trusted]\npackage_sources = [\"x\"]\n", "s.toml:2: trusted.package_sources.0: expected");
    holds("notes.txt", "x", "notes.txt:1: expected a team folder or a YAML");
    for name in ["gone.yaml", "gone.toml", "gone"] {
        let gone = check(&[team.0.path().join(name)], None, &|_| None);
        assert!(gone.faults[0].what.starts_with("cannot read this file"), "{gone:?}");
    }
    let empty = tempfile::tempdir().unwrap();
    let found = check(&[empty.path().to_path_buf()], None, &|_| None);
    assert!(found.faults[0].what.starts_with("expected a team folder"), "{found:?}");
}

#[test]
fn the_program_prints_faults_and_says_so_in_its_exit_code() {
    let team = Team::new();
    let run = |arguments: &[&str]| {
        let output = team.run(arguments);
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(run(&[".", "--models", "models.toml"]), (Some(0), "5 files are valid\n".into(), String::new()));
    team.file("experts/cloud.yaml", &EXPERT.replace("hub/", "hubs/"));
    let (code, out, _) = run(&["."]);
    assert_eq!(code, Some(2));
    assert_eq!(
        out,
        "./experts/cloud.yaml:7: tools.1: mcp.json has no server hubs; write hub/get_*\n1 fault in 4 files\n"
    );
    let (code, out, _) = run(&[".", "--json"]);
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &told["faults"][0]["line"]), (Some(2), &json!(7)));
    assert_eq!(told["files"].as_array().unwrap().len(), 4);
    let (code, _, error) = run(&[]);
    assert_eq!(code, Some(2));
    assert!(error.contains("nothing to check") && error.contains("CASEBOOK_TEAM"), "{error}");
}

#[test]
fn the_example_in_deploy_holds_and_so_do_the_examples_in_the_manual() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let paths: Vec<PathBuf> = [
        "team",
        "config/hub.toml",
        "config/director.toml",
        "config/critic.toml",
        "config/expert.toml",
        "config/expert-profile.toml",
    ]
    .iter()
    .map(|name| root.join("deploy").join(name))
    .collect();
    let found = check(&paths, Some(&root.join("deploy/models/ollama.toml")), &|_| None);
    assert_eq!(found.faults, []);
    assert_eq!(found.files.len(), 11);
    assert_eq!(found.notices, []);
    let manual = std::fs::read_to_string(root.join("docs/experts.md")).unwrap();
    let block = |language: &str, begins: &str| {
        let fence = format!("```{language}\n");
        let mut blocks = manual.split(&fence).skip(1).filter_map(|rest| rest.split("```").next());
        blocks.find(|block| block.starts_with(begins)).unwrap().to_owned()
    };
    let team = Team::new();
    team.file(
        "experts/cloud.yaml",
        &block("yaml", "name:").replace("aws/describe_*", "github/get_*").replace("fast", "big"),
    );
    team.file("mcp.json", &block("json", "{"));
    team.file("tools.yaml", &block("yaml", "servers:"));
    team.file("sources.toml", &block("toml", "[[source]]"));
    assert_eq!(team.faults(), Vec::<String>::new());
}

const FORMATS: [Format; 7] =
    [Format::Expert, Format::Tools, Format::Mcp, Format::Models, Format::Profile, Format::Sources, Format::Formats];

#[test]
fn the_schemas_on_file_are_those_that_are_printed() {
    for format in FORMATS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/schemas/{}.schema.json", format.name()));
        if std::env::var_os("CASEBOOK_WRITE").is_some() {
            std::fs::write(&path, schema(format)).unwrap();
        }
        let on_file = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(on_file == schema(format), "{} is not what is printed: CASEBOOK_WRITE=1 writes it", path.display());
        let value: Value = serde_json::from_str(&on_file).unwrap();
        jsonschema::draft202012::meta::validate(&value).unwrap();
        let printed = Team::new().run(&["--schema", format.name()]);
        assert_eq!(String::from_utf8(printed.stdout).unwrap(), on_file);
    }
}

fn validator(format: Format) -> jsonschema::Validator {
    jsonschema::draft202012::new(&serde_json::from_str(&schema(format)).unwrap()).unwrap()
}

fn value(text: &str) -> Value {
    let table: toml::Table = toml::from_str(text).unwrap();
    serde_json::to_value(table).unwrap()
}

/// A schema refuses what the reader refuses for its form; what depends on the provider is the reader's alone.
#[test]
fn the_schema_of_models_files_refuses_what_their_reader_refuses() {
    let schema = validator(Format::Models);
    let models = |text: &str| (schema.is_valid(&value(text)), Config::parse("f", text).is_ok());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/models");
    for entry in std::fs::read_dir(folder).unwrap() {
        assert_eq!(models(&std::fs::read_to_string(entry.unwrap().path()).unwrap()), (true, true));
    }
    for (line, holds) in [
        ("key_env = \"K\"", true),
        ("key_file = \"k\"", true),
        ("max_output = 100", true),
        ("answer = \"native\"", true),
        ("temperature = 0.5", true),
        ("top_p = 1", true),
        ("effort = \"xhigh\"", true),
        ("seed = 3", true),
        ("timeout_seconds = 3600", true),
        ("concurrency = 1024", true),
        ("price = { input = 1, output = 2.5 }", true),
        ("fallback = []", true),
        ("[roles.expert.domains.cloud]\nmodel = \"big\"", true),
        ("[roles.critic.tasks.timeline]\nmodel = \"analyst\"", true),
        ("[roles.director.phases.trace.limits]\ncost = 0\ntool_calls = 0\nturns = 1\ntime = \"10m\"", true),
        ("[roles.director.limits]\nseconds = 600", true),
        ("colour = 1", false),
        ("key_env = \"a b\"", false),
        ("key = \"k\"", false),
        ("max_output = 0", false),
        ("answer = \"json\"", false),
        ("temperature = 3", false),
        ("top_p = 0", false),
        ("effort = \"lots\"", false),
        ("seed = -1", false),
        ("timeout_seconds = 0", false),
        ("concurrency = 1025", false),
        ("price = { output = 1 }", false),
        ("price = { input = -1, output = 1 }", false),
        ("[roles.boss]\nmodel = \"big\"", false),
        ("[roles.expert.limits]\nturns = 0", false),
        ("[roles.expert.limits]\ntime = \"10\"", false),
        ("[roles.expert.phases.later]\nmodel = \"big\"", false),
        ("[roles.expert.domains.A]\nmodel = \"big\"", false),
        ("[other]\nx = 1", false),
    ] {
        assert_eq!(models(&format!("{MODELS}{line}\n")), (holds, holds), "{line}");
    }
    for (from, to) in [
        ("openai-compatible", "ollama"),
        ("window = 4096", "window = 12"),
        ("window = 4096", ""),
        ("http://h", "ftp://h"),
        ("http://h", "http://u:p@h"),
        ("/v1", "/v1?k=v"),
        ("\"m\"", "\"\""),
    ] {
        assert_eq!(models(&MODELS.replace(from, to)), (false, false), "{to}");
    }
}

#[test]
fn the_schema_of_profiles_says_what_their_reader_says() {
    let check = |text: &str, expect: bool| {
        assert_eq!(validator(Format::Profile).is_valid(&value(text)), expect, "{text}");
        assert_eq!(Profile::parse(Path::new("p.toml"), text).is_ok(), expect, "{text}");
    };
    check("evidence = \"e\"\nindex = \"i\"\n", true);
    check("evidence = \"e\"\nindex = \"i\"\ndomains = [\"cloud\"]\n", true);
    check("team = \"t\"\n", true);
    check("team = \"t\"\nevidence = \"e\"\nindex = \"i\"\n", true);
    check("domains = [\"cloud\"]\nteam = \"t\"\n", true);
    check("", false);
    check("domains = [\"cloud\"]\n", false);
    check("team = \"\"\n", false);
    check("evidence = \"e\"\n", false);
    check("evidence = \"e\"\nteam = \"t\"\n", false);
    check("index = \"i\"\nteam = \"t\"\n", false);
    check("evidence = \"\"\nindex = \"i\"\n", false);
    check("evidence = \"e\"\nindex = \"i\"\ndomains = [\"A\"]\n", false);
    check("evidence = \"e\"\nindex = \"i\"\ncolour = 1\n", false);
}

#[test]
fn the_schema_of_experts_refuses_what_the_reader_refuses() {
    let schema = validator(Format::Expert);
    let read = |text: &str| Source::new(Form::Yaml, Path::new("f"), text).read::<Value>().unwrap();
    assert!(schema.is_valid(&read(EXPERT)));
    assert!(!schema.is_valid(&read(&EXPERT.replace("tools:", "tool:"))));
}
