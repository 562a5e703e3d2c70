use proptest::prelude::*;
use secrecy::ExposeSecret;

use super::*;

fn variable(name: &str) -> Option<String> {
    (name == "TOKEN").then(|| "hunter2".to_owned())
}

fn parse(text: &str) -> Result<Servers, Vec<String>> {
    Servers::parse(Path::new("team/mcp.json"), text, &variable)
        .map_err(|faults| faults.iter().map(ToString::to_string).collect())
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
    assert_eq!((servers.all["github"].line, servers.all["My Search.v2/x"].line), (5, 12));
    let Way::Child { command, args, env, cwd } = &servers.all["github"].way else { panic!("a child") };
    assert_eq!((command.as_str(), cwd.as_deref()), ("npx", Some(Path::new("/srv/x"))));
    assert_eq!(args[1..], ["@modelcontextprotocol/server-github", "--port", "3000"]);
    let env: Vec<_> = env.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect();
    assert_eq!(env, [("DEBUG", "true"), ("GITHUB_TOKEN", "hunter2"), ("LEVEL", "info")]);
    let Way::Http { url, headers } = &servers.all["My Search.v2/x"].way else { panic!("over HTTP") };
    assert_eq!(url, "https://search.example/mcp?key=hunter2");
    assert_eq!(headers["Authorization"].expose_secret(), "Bearer hunter2");
    let shown = format!("{:?}", servers.all["My Search.v2/x"].way);
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

/// The one fault of a file with the server `body` at line 3.
fn fault(body: &str) -> String {
    let text = format!("{{\n\"mcpServers\": {{\n\"a\": {{\n{body}\n}} }} }}");
    let faults = parse(&text).expect_err(body);
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults.into_iter().next().unwrap()
}

#[test]
fn every_fault_names_its_line_its_key_and_what_to_write() {
    let check = |got: String, line: usize, wants: &[&str]| {
        assert!(got.starts_with(&format!("team/mcp.json:{line}: ")), "{got}");
        for want in wants {
            assert!(got.contains(want), "{want:?} is not in {got:?}");
        }
        assert!(!got.contains("hunter2"), "{got}");
    };
    check(fault(""), 3, &["mcpServers.a: says neither command nor url"]);
    check(fault("\"command\": \"x\",\n\"url\": \"http://h\""), 5, &["a.url: stands beside command"]);
    check(fault("\"url\": \"http://h\",\n\"serverUrl\": \"http://h\""), 5, &["serverUrl: is a second address"]);
    check(fault("\"url\": \"http://h/sse\",\n\"type\": \"sse\""), 5, &["old SSE transport", "write \"http\""]);
    check(
        fault("\"url\": \"http://h\",\n\"transport\": \"stdio\""),
        5,
        &["transport", "reached over http", "leave this out"],
    );
    check(fault("\"command\": \"x\",\n\"type\": \"http\""), 5, &["type", "reached over stdio"]);
    check(fault("\"command\": \"x\",\n\"type\": \"websocket\""), 5, &["type", "stdio and http"]);
    check(fault("\"command\": \"x\",\n\"headers\": {}"), 5, &["headers", "leave them out"]);
    check(fault("\"url\": \"http://h\",\n\"args\": []"), 5, &["args", "leave it out"]);
    check(fault("\"command\": \" \""), 4, &["command", "is empty"]);
    check(fault("\"command\": 7"), 4, &["command: is a number, and must be a text", "write the program"]);
    check(fault("\"command\": \"x\",\n\"args\": \"hunter2\""), 5, &["args: is a text, and must be a list"]);
    check(fault("\"command\": \"x\",\n\"args\": [1,\n[\"hunter2\"]]"), 6, &["args.1: "]);
    check(fault("\"command\": \"x\",\n\"env\": {\n\"A\": [\"hunter2\"]}"), 6, &["env.A: "]);
    check(fault("\"command\": \"x\",\n\"env\": {\"A=B\": \"hunter2\"}"), 5, &["env.A=B", "no name of a variable"]);
    check(fault("\"command\": \"x\",\n\"env\": {\n\"A\": \"${UNSET}hunter2\"}"), 6, &["env.A", "UNSET is not set"]);
    check(fault("\"command\": \"x\",\n\"args\": [\n\"${input:key}\"]"), 6, &["args.0", "${input:key} asks a person"]);
    check(fault("\"command\": \"x\\u0000\""), 4, &["NUL"]);
    check(fault("\"url\": \"h/mcp\""), 4, &["url", "whole address"]);
    check(fault("\"url\": \"ftp://h/mcp\""), 4, &["url", "https://"]);
    check(fault("\"url\": \"https://u:hunter2@h/mcp\""), 4, &["Authorization header"]);
    check(fault("\"url\": \"https:///mcp hunter2\""), 4, &["is no address"]);
    check(fault("\"url\": \"http://h\",\n\"headers\": {\"A B\": \"hunter2\"}"), 5, &["no name of a header"]);
    check(fault("\"url\": \"http://h\",\n\"headers\": {\"A\": \"hunter2\\n\"}"), 5, &["control character"]);
    check(fault("\"command\": \"x\",\n\"disabled\": \"yes\""), 5, &["disabled: is a text, and must be true or false"]);
    let of = |text: &str| parse(text).expect_err(text).join("\n");
    check(of("{\"mcpServers\": {\n\"a\\u00e9\": {\"command\": \"x\"}}}"), 2, &["1 to 64 letters"]);
    check(of("{\"mcpServers\": {\n\"__\": {\"command\": \"x\"}}}"), 2, &["rename it"]);
    check(of("{\"a.b\": {\"command\": \"x\"},\n\"a b\": {\"command\": \"x\"}}"), 2, &["a-b__", "a.b (line 1)"]);
    check(of("{\"mcpServers\": {},\n\"servers\": {}}"), 2, &["beside mcpServers"]);
    check(of("{\"command\": \"x\"}"), 1, &["names no servers"]);
    check(of("[]"), 1, &["is no object"]);
    check(of("{\"mcpServers\": []}"), 1, &["mcpServers: is a list, and must be a map"]);
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
        let value = Document::json(Path::new("f"), text).unwrap().root().value();
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
