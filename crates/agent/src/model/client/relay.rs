//! How the library is kept to writing and reading. It can only send what it writes, and reads a
//! reply to its end however long it is. So each exchange has a loopback connection of its own, at
//! whose other end we are: the library sends its request there, we send it on to the provider with
//! our limits, and hand back a reply that we have seen whole. No key comes here: the library has a
//! word in its place, which also keeps other processes of this machine out.

use std::future::Future;
use std::net::Ipv4Addr;
use std::pin::pin;
use std::time::Duration;

use genai::ServiceTarget;
use genai::chat::{ChatOptions, ChatRequest, ChatResponse};
use genai::resolver::{AuthData, Endpoint};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::model::Fault;
use crate::model::client::encode::Written;
use crate::model::config::{Profile, Provider};
use crate::model::retry::Failed;

/// A request as the library wrote it, with the provider's name of the model restored.
pub(super) struct Draft {
    /// What follows the base URL.
    pub(super) path: String,
    /// Headers that the provider's form asks for; where the key belongs stands [`Draft::word`].
    pub(super) headers: Vec<(String, String)>,
    /// The JSON body.
    pub(super) body: Vec<u8>,
    /// What stands for the key.
    pub(super) word: String,
}

/// The library's client: it reaches nothing but our end of the connection.
pub(super) fn forms() -> Result<genai::Client, genai::Error> {
    let http = reqwest::Client::builder().no_proxy().no_gzip().redirect(reqwest::redirect::Policy::none());
    let http = http.build().map_err(|error| genai::Error::ClientBuildFail { cause: error.to_string() })?;
    genai::Client::builder().with_reqwest(http).build()
}

/// Has the library write `written`, `send`s it, and has the library read what came back.
pub(super) async fn through(
    forms: &genai::Client,
    profile: &Profile,
    written: Written,
    send: impl AsyncFnOnce(Draft) -> Result<Vec<u8>, Failed>,
) -> Result<ChatResponse, Failed> {
    let local =
        |error: std::io::Error| Failed::final_(Fault::Unavailable, format!("no loopback connection: {}", error.kind()));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(local)?;
    let address = listener.local_addr().map_err(local)?;
    let word = uuid::Uuid::now_v7().simple().to_string();
    let Written { name, request, options } = written;
    let target = ServiceTarget {
        endpoint: Endpoint::from_owned(format!("http://{address}/{word}/")),
        auth: AuthData::from_single(word.clone()),
        model: genai::ModelIden::new(kind(profile.provider), name.as_str()),
    };
    let mut reads = pin!(chat(forms, target, request, options));
    let serve = async {
        let (mut stream, head) = accept(&listener, &word).await;
        let draft = draft(&mut stream, &head, &word, profile, &name).await.map_err(local)?;
        let body = send(draft).await?;
        reply(&mut stream, &body).await.map_err(local)
    };
    tokio::select! {
        early = &mut reads => early,
        served = serve => {
            served?;
            reads.await
        }
    }
}

/// What the library says when it fails is never passed on: whole prompts stand in it.
async fn chat(
    forms: &genai::Client,
    target: ServiceTarget,
    request: ChatRequest,
    options: ChatOptions,
) -> Result<ChatResponse, Failed> {
    forms.exec_chat(target, request, Some(&options)).await.map_err(|error| match error {
        genai::Error::ChatResponseGeneration { .. } | genai::Error::ChatResponse { .. } => {
            Failed::final_(Fault::Unreadable, "the reply does not have this provider's form")
        }
        _ => Failed::final_(Fault::Rejected, "the request cannot be put into this provider's form"),
    })
}

const fn kind(provider: Provider) -> genai::adapter::AdapterKind {
    use genai::adapter::AdapterKind as Kind;
    match provider {
        Provider::Anthropic => Kind::Anthropic,
        Provider::Openai | Provider::OpenaiCompatible => Kind::OpenAI,
        Provider::OpenaiResponses => Kind::OpenAIResp,
        Provider::Gemini => Kind::Gemini,
        Provider::Bedrock => Kind::BedrockApi,
    }
}

/// Bytes of a request's head: the library's are far smaller.
const MAX_HEAD: usize = 16 * 1024;

/// The connection that knows the word, with its head. Others are dropped, slow ones too: the library
/// is on this machine.
async fn accept(listener: &TcpListener, word: &str) -> (TcpStream, String) {
    let known = format!("POST /{word}/");
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let head = tokio::time::timeout(Duration::from_secs(2), head(&mut stream)).await;
        if let Ok(Some(head)) = head
            && head.starts_with(&known)
        {
            return (stream, head);
        }
    }
}

/// The head up to its empty line, byte by byte, so that none of the body is taken.
async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::with_capacity(1024);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == MAX_HEAD {
            return None;
        }
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

async fn draft(
    stream: &mut TcpStream,
    head: &str,
    word: &str,
    profile: &Profile,
    name: &str,
) -> std::io::Result<Draft> {
    let wrong = || std::io::Error::from(std::io::ErrorKind::InvalidData);
    let mut lines = head.split("\r\n");
    let path = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|path| path.split_once(word));
    let path = path.ok_or_else(wrong)?.1.trim_start_matches('/').replace(name, &profile.provider_model);
    let headers: Vec<_> = lines.filter_map(|line| line.split_once(':')).collect();
    let header =
        |name: &str| headers.iter().find(|(had, _)| had.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim());
    let length = header("content-length").and_then(|n| n.parse::<usize>().ok()).ok_or_else(wrong)?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let body = body_of(profile, &body).ok_or_else(wrong)?;
    let headers = headers
        .iter()
        .filter(|(name, value)| value.contains(word) || name.to_ascii_lowercase().starts_with("anthropic-"))
        .filter(|(name, _)| !name.eq_ignore_ascii_case("host"))
        .map(|(name, value)| ((*name).to_owned(), value.trim().to_owned()))
        .collect();
    Ok(Draft { path, headers, body, word: word.to_owned() })
}

/// The body with what the library cannot say: the model's name exactly, and OpenAI's newer name for
/// the limit, which all its models take.
fn body_of(profile: &Profile, body: &[u8]) -> Option<Vec<u8>> {
    let mut body: Value = serde_json::from_slice(body).ok()?;
    let map = body.as_object_mut()?;
    if let Some(model) = map.get_mut("model") {
        *model = Value::String(profile.provider_model.clone());
    }
    if profile.provider == Provider::Openai
        && let Some(limit) = map.remove("max_tokens")
    {
        map.insert("max_completion_tokens".into(), limit);
    }
    serde_json::to_vec(&body).ok()
}

fn reply<'a>(stream: &'a mut TcpStream, body: &'a [u8]) -> impl Future<Output = std::io::Result<()>> + 'a {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    async move {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        stream.flush().await
    }
}
