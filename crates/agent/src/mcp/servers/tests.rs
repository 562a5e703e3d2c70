use casebook_table::{blocks, expect_file};
use proptest::prelude::*;
use secrecy::ExposeSecret;

use super::*;

fn variable(name: &str) -> Option<String> {
    (name == "TOKEN").then(|| "hunter2".to_owned())
}

fn parse(text: &str) -> Result<Servers, Vec<String>> {
    Servers::parse(Path::new("team/mcp.json"), text, &variable)
        .map_err(|faults| faults.0.iter().map(ToString::to_string).collect())
}

const PASTED: &str = r#"{
  // as other clients have it
  "inputs": [{"id": "key", "type": "promptString"}],
  "mcpServers": {
    "github": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-github", "--port", 3000],
      "env": { "GITHUB_TOKEN": "${TOKEN}", "LEVEL": "${LEVEL:-info}", "DEBUG": true, "GONE": null },
      "cwd": "/srv/${LEVEL:-x}",
      "autoApprove": ["search_code"],
    },
    "My Search.v2/x": {
      "type": "streamableHttp",
      "serverUrl": "https://search.example/mcp?key=${TOKEN}",
      "headers": { "Authorization": "Bearer ${env:TOKEN}" }
    },
    "off": { "command": "${UNSET}", "disabled": true },
    "off too": { "url": "nonsense", "enabled": false }
  }
}"#;

#[test]
fn what_users_have_is_read_unchanged() {
    let servers = parse(PASTED).unwrap();
    assert_eq!(servers.all.keys().collect::<Vec<_>>(), ["My Search.v2/x", "github"]);
    assert_eq!(servers.disabled.iter().collect::<Vec<_>>(), ["off", "off too"]);
    let Way::Child { command, args, env, cwd } = &servers.all["github"] else { panic!("a child") };
    assert_eq!((command.as_str(), cwd.as_deref()), ("npx", Some(Path::new("/srv/x"))));
    assert_eq!(args[1..], ["@modelcontextprotocol/server-github", "--port", "3000"]);
    let env: Vec<_> = env.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect();
    assert_eq!(env, [("DEBUG", "true"), ("GITHUB_TOKEN", "hunter2"), ("LEVEL", "info")]);
    let Way::Http { url, headers } = &servers.all["My Search.v2/x"] else { panic!("over HTTP") };
    assert_eq!(url, "https://search.example/mcp?key=hunter2");
    assert_eq!(headers["Authorization"].expose_secret(), "Bearer hunter2");
    let shown = format!("{:?}", servers.all["My Search.v2/x"]);
    assert!(shown.contains("search.example") && !shown.contains("/mcp"), "{shown}");
    assert_eq!(host("https://ann:hunter2@mcp.example:8443/s/a-key-in-the-path?x"), Some("mcp.example:8443"));
    assert_eq!(host("nonsense"), None);
}

#[test]
fn no_secret_is_shown() {
    assert!(!format!("{:?}", parse(PASTED).unwrap()).contains("hunter2"));
    let child = r#"{"mcpServers": {"a": {"command": "x", "args": ["--key", "${TOKEN}"]}}}"#;
    assert!(!format!("{:?}", parse(child).unwrap()).contains("hunter2"));
}

#[test]
fn the_servers_are_found_in_each_form() {
    let names = |text: &str| parse(text).map(|servers| servers.all.keys().cloned().collect::<Vec<_>>().join(","));
    assert_eq!(names(r#"{"servers": {"a": {"type": "stdio", "command": "x"}}, "inputs": []}"#).unwrap(), "a");
    assert_eq!(names(r#"{"a": {"command": "x"}, "b": {"httpUrl": "http://h/mcp"}}"#).unwrap(), "a,b");
    assert_eq!(names(r#"{"servers": {"command": "x"}}"#).unwrap(), "servers", "a bare server of that name");
    assert_eq!(names(r#"{"mcpServers": {}}"#).unwrap(), "");
    assert_eq!(names("{}").unwrap(), "");
    assert_eq!(names(r#"{"mcpServers": {"evidence": {"command": "casebook"}}}"#).unwrap(), "evidence");
}

#[test]
fn every_fault_names_its_line_its_key_and_what_to_write() {
    blocks(&expect_file!["faults.txt"], |title, input| {
        let whole = || format!("{{\n\"mcpServers\": {{\n\"a\": {{\n{input}\n}} }} }}");
        let got = parse(&if title == "file" { input.to_owned() } else { whole() }).expect_err(input).join("\n");
        assert!(!got.contains("hunter2"), "{got}");
        got
    });
}

#[test]
fn all_faults_are_told_at_once_in_order() {
    let text = "{\"mcpServers\": {\n\"b\": {\"command\": \"${X}\",\n\"args\": [\"${Y}\"]},\n\"a\": {}}}";
    let lines: Vec<String> =
        parse(text).unwrap_err().iter().map(|f| f.split(": ").next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["team/mcp.json:2", "team/mcp.json:3", "team/mcp.json:4"]);
}

#[test]
fn the_schema_holds_what_is_read_and_refuses_what_is_not() {
    let schema = jsonschema::draft202012::new(&Servers::schema()).unwrap();
    let check = |text: &str, expect: bool| {
        let value: Value = Source::new(Form::Json, Path::new("f"), text).read().unwrap();
        assert_eq!(schema.is_valid(&value), expect, "{text}");
    };
    check(PASTED, true);
    check(r#"{"servers": {"a": {"command": "x"}}}"#, true);
    check(r#"{"a": {"command": "x"}}"#, true);
    check(r#"{"mcpServers": {"a": {"command": ["x"]}}}"#, false);
    check(r#"{"mcpServers": {"é": {"command": "x"}}}"#, false);
    check(r#"{"a": {"command": 7}}"#, false);
    check("[]", false);
}

proptest! {
    #[test]
    fn no_server_stops_the_reader(key in "(command|args|env|url|headers|type|cwd|disabled|x)", value in "(\"[ -~é\\$\\{\\}:]{0,20}\"|\\[\"\\$\\{\"\\]|\\{\"a\": 1\\}|1|null|true)") {
        let text = format!(r#"{{"mcpServers": {{"a": {{"command": "c", {key:?}: {value}}}}}}}"#);
        let _ = parse(&text);
        let _ = parse(&text.replace("\"command\": \"c\", ", ""));
    }
}
