use async_trait::async_trait;
use casebook_protocol::{ToolSpec, Toolset};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::net::TcpStream;

use super::*;

const SCHEMA: &str = r#"{"type":"object","properties":{"text":{"type":"string"}},"additionalProperties":false}"#;

struct Echo;

#[async_trait]
impl Tools for Echo {
    fn toolset(&self) -> Toolset {
        let spec = |name: &str| ToolSpec::new(name, &format!("{name} it"), SCHEMA, true);
        Toolset { name: "echo".into(), about: String::new(), tools: vec![spec("echo"), spec("write")] }
    }

    async fn call(&self, tool: &str, arguments: &str) -> Result<String, String> {
        let arguments: Value = serde_json::from_str(arguments).map_err(|e| e.to_string())?;
        match (tool, arguments["text"].as_str()) {
            ("echo", Some(text)) => Ok(text.to_owned()),
            ("echo", None) => Err("echo: `text` is missing".into()),
            _ => Err(format!("unknown tool {tool:?}; there is echo")),
        }
    }
}

fn served() -> Served {
    let hints = |tool: &str| Hints { read_only: tool == "echo", idempotent: true, open_world: false };
    Served { name: "echo", instructions: "Echoes.".into(), tools: Arc::new(Echo), hints }
}

struct Client {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    to: WriteHalf<DuplexStream>,
}

impl Client {
    fn new() -> (Self, tokio::task::JoinHandle<()>) {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let server = tokio::spawn(async move {
            Handler::new(served()).serve(Patient::new(read, write)).await.unwrap().waiting().await.unwrap();
        });
        let (read, to) = tokio::io::split(ours);
        (Self { lines: BufReader::new(read).lines(), to }, server)
    }

    async fn say(&mut self, text: &str) {
        self.to.write_all(text.as_bytes()).await.unwrap();
        self.to.write_all(b"\n").await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()).await;
        let answer = self.hear().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    async fn open(&mut self) -> Value {
        let who =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let answer = self.ask(0, "initialize", who).await;
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        answer
    }
}

#[tokio::test]
async fn tools_are_listed_with_their_schema_and_called() {
    let (mut client, server) = Client::new();
    let info = client.open().await["result"].clone();
    assert_eq!((&info["serverInfo"]["name"], &info["instructions"]), (&json!("echo"), &json!("Echoes.")));
    let tools = client.ask(1, "tools/list", json!({})).await["result"]["tools"].clone();
    assert_eq!(tools[0]["inputSchema"].to_string(), SCHEMA, "the order of keys, too, is ours");
    assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
    assert_eq!(tools[1]["annotations"]["readOnlyHint"], false);
    let mut call = async |id, name: &str, arguments: Value| {
        client.ask(id, "tools/call", json!({"name": name, "arguments": arguments})).await["result"].clone()
    };
    let plain = call(2, "echo", json!({"text": "a [1]"})).await;
    assert_eq!(plain, json!({"content": [{"type": "text", "text": "a [1]"}], "isError": false}));
    let object = call(3, "echo", json!({"text": "{\"b\": 1, \"a\": 2}"})).await;
    assert_eq!(object["structuredContent"].to_string(), r#"{"b":1,"a":2}"#);
    assert_eq!(object["content"][0]["text"], "{\"b\": 1, \"a\": 2}");
    let wrong = call(4, "echo", json!({})).await;
    assert_eq!((&wrong["isError"], &wrong["content"][0]["text"]), (&json!(true), &json!("echo: `text` is missing")));
    let unknown = call(5, "sing", json!({})).await;
    assert_eq!(unknown["isError"], true);
    drop(client);
    server.await.unwrap();
}

#[tokio::test]
async fn nonsense_before_and_within_a_session_ends_nothing() {
    let (mut client, server) = Client::new();
    let nonsense = [
        "nonsense",
        "{",
        "[]",
        "\u{0}\u{1b}",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
        r#"{"jsonrpc":"2.0","id":3,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":4,"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":7}}"#,
        r#"{"jsonrpc":"2.0","id":6,"method":"no/such","params":{}}"#,
        r#"{"id":8}"#,
    ];
    for round in 0..2 {
        for line in nonsense {
            client.say(line).await;
        }
        client.to.write_all(b"\xff\xfe\xff\n").await.unwrap();
        if round == 0 {
            let who = json!({"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
            client.say(&json!({"jsonrpc": "2.0", "id": 100, "method": "initialize", "params": who}).to_string()).await;
        } else {
            client.say(r#"{"jsonrpc":"2.0","id":100,"method":"tools/call","params":{"name":"echo","arguments":{"text":"here"}}}"#).await;
        }
        let mut errors = 0;
        let answer = loop {
            let answer = client.hear().await;
            if answer["id"] == 100 {
                break answer;
            }
            assert!(answer["error"]["message"].is_string(), "{answer}");
            errors += 1;
        };
        assert!(answer["result"].is_object() && errors >= 2, "{errors} {answer}");
    }
    drop(client);
    server.await.unwrap();
}

async fn post(address: SocketAddr, headers: &str, body: &Value) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = body.to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Connection: close\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut text = String::new();
    let _ = tokio::time::timeout(Duration::from_secs(10), stream.read_to_string(&mut text)).await.unwrap();
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_the_loopback_alone_is_served_and_no_page_of_a_browser() {
    let (stopper, mut stop) = Stop::by_hand();
    let refused = http(served(), "0.0.0.0:0".parse().unwrap(), &mut stop, Box::new(|_| {})).await.unwrap_err();
    assert!(
        refused.to_string().starts_with("expected a loopback address such as 127.0.0.1:0, got 0.0.0.0:0"),
        "{refused}"
    );
    let (tell, told) = tokio::sync::oneshot::channel();
    let serving = tokio::spawn(async move {
        let bound = |address| tell.send(address).unwrap();
        http(served(), "127.0.0.1:0".parse().unwrap(), &mut stop, Box::new(bound)).await.unwrap();
    });
    let address = told.await.unwrap();
    assert_eq!(announcement("casebook mcp", address), format!("casebook mcp http://{address}/mcp"));
    let who = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": who});
    let host = format!("Host: {address}\r\n");
    let answer = post(address, &host, &open).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"Echoes.\""), "{answer}");
    let page = post(address, &format!("{host}Origin: http://evil.example\r\n"), &open).await;
    assert!(page.starts_with("HTTP/1.1 403"), "{page}");
    let rebound = post(address, "Host: evil.example\r\n", &open).await;
    assert!(rebound.starts_with("HTTP/1.1 403"), "{rebound}");
    let nonsense = post(address, &host, &json!("nonsense")).await;
    assert!(nonsense.starts_with("HTTP/1.1 4"), "{nonsense}");
    assert!(post(address, &host, &open).await.starts_with("HTTP/1.1 200"));
    stopper.stop();
    serving.await.unwrap();
}
