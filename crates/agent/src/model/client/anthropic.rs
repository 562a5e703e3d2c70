//! Anthropic's form for what most calls are: no thoughts asked for and none to go back. Written and
//! read straight, since the way through the library costs as much as all else that a call takes
//! (decision 13); whatever is not plain takes that way. A test holds both to the same bodies.

use casebook_protocol::one_line;
use genai::chat::{ContentPart, StopReason, ToolCall};
use serde_json::Value;

use super::decode::{self, MAX_TOKENS};
use super::encode::{Marks, unreadable};
use super::relay::Draft;
use crate::model::config::{Profile, Provider};
use crate::model::retry::Failed;
use crate::model::schema::Schema;
use crate::model::{Ask, Called, Choice, Fault, Message, Part, Reply, ToolAnswer};
use casebook_protocol::Tokens;

/// The version of the form.
const VERSION: &str = "2023-06-01";
/// Stands for the key in a draft.
const WORD: &str = "<key>";

/// Whether `ask` can be written here.
pub(super) fn plain(profile: &Profile, ask: &Ask) -> bool {
    let message = |message: &Message| match message {
        Message::User(parts) => parts.iter().any(|part| !part.text.is_empty()),
        Message::Assistant(reply) => reply.kept.is_none(),
        Message::Results(_) => true,
    };
    profile.provider == Provider::Anthropic
        && profile.parameters.effort.is_none()
        && !matches!(ask.choice, Choice::Only(_))
        && ask.messages.iter().all(message)
}

/// The request for `ask`.
pub(super) fn draft(profile: &Profile, ask: &Ask) -> Draft {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Draft {
        path: "messages".to_owned(),
        headers: vec![header("x-api-key", WORD), header("anthropic-version", VERSION)],
        body: body(profile, ask),
        word: WORD.to_owned(),
    }
}

fn body(profile: &Profile, ask: &Ask) -> Vec<u8> {
    let marks = Marks::of(profile.provider, ask);
    let mut seen = 0;
    let mut out = Body(Vec::with_capacity(ask.length() * 9 / 8 + 4096));
    out.raw("{\"model\":").text(&profile.provider_model).raw(",\"stream\":false");
    out.system(&ask.system, &marks, &mut seen);
    if !ask.tools.is_empty() {
        out.raw(",\"tools\":").list(ask.tools.iter(), |out, tool| {
            out.raw("{\"name\":").text(&tool.name).raw(",\"input_schema\":").schema(&tool.schema);
            out.raw(if tool.strict { ",\"strict\":true" } else { ",\"strict\":false" });
            out.raw(",\"description\":").text(&tool.description).raw("}");
        });
        if ask.choice == Choice::Nothing {
            out.raw(",\"tool_choice\":{\"type\":\"none\"}");
        }
    }
    let messages = ask.messages.iter().zip((0..ask.messages.len()).rev());
    out.raw(",\"messages\":").list(messages, |out, (message, left)| out.message(message, &marks, &mut seen, left == 0));
    if let Some(format) = &ask.format {
        out.raw(",\"output_config\":{\"format\":{\"type\":\"json_schema\",\"schema\":")
            .schema(&format.schema)
            .raw("}}");
    }
    for (name, value) in [("temperature", profile.parameters.temperature), ("top_p", profile.parameters.top_p)] {
        if let Some(value) = value {
            out.raw(",").text(name).raw(":").raw(&Value::from(value).to_string());
        }
    }
    out.raw(",\"max_tokens\":").raw(&ask.max_output.min(profile.max_output).to_string()).raw("}");
    out.0
}

/// A body while it is written.
struct Body(Vec<u8>);

const MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";

impl Body {
    fn raw(&mut self, json: &str) -> &mut Self {
        self.0.extend_from_slice(json.as_bytes());
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        // Nothing fails when a text is written into memory.
        let _ = serde_json::to_writer(&mut self.0, text);
        self
    }

    fn schema(&mut self, schema: &Schema) -> &mut Self {
        self.raw(schema.text())
    }

    fn list<T>(&mut self, items: impl Iterator<Item = T>, mut one: impl FnMut(&mut Self, T)) -> &mut Self {
        self.raw("[");
        for (n, item) in items.enumerate() {
            if n > 0 {
                self.raw(",");
            }
            one(self, item);
        }
        self.raw("]")
    }

    fn block(&mut self, text: &str, mark: bool) {
        self.raw("{\"type\":\"text\",\"text\":").text(text).raw(if mark { MARK } else { "" }).raw("}");
    }

    fn system(&mut self, parts: &[Part], marks: &Marks, seen: &mut usize) {
        let parts: Vec<(&str, bool)> = parts
            .iter()
            .filter(|part| !part.text.is_empty())
            .map(|part| (part.text.as_str(), marks.take(part, seen)))
            .collect();
        if parts.is_empty() {
            return;
        }
        self.raw(",\"system\":");
        if parts.iter().any(|(_, mark)| *mark) {
            self.list(parts.into_iter(), |out, (text, mark)| out.block(text, mark));
        } else {
            let texts: Vec<&str> = parts.iter().map(|(text, _)| *text).collect();
            self.text(&texts.join("\n\n"));
        }
    }

    fn message(&mut self, message: &Message, marks: &Marks, seen: &mut usize, last: bool) {
        let tail = marks.tail && last;
        match message {
            Message::User(parts) => {
                let parts: Vec<&Part> = parts.iter().filter(|part| !part.text.is_empty()).collect();
                let left = (0..parts.len()).rev();
                self.raw("{\"role\":\"user\",\"content\":").list(parts.iter().zip(left), |out, (part, left)| {
                    out.block(&part.text, marks.take(part, seen) || (tail && left == 0));
                });
            }
            Message::Assistant(reply) => self.assistant(reply),
            Message::Results(answers) => {
                let left = (0..answers.len()).rev();
                self.raw("{\"role\":\"user\",\"content\":").list(answers.iter().zip(left), |out, (answer, left)| {
                    out.result(answer, tail && left == 0);
                });
            }
        }
        self.raw("}");
    }

    fn assistant(&mut self, reply: &Reply) {
        self.raw("{\"role\":\"assistant\",\"content\":");
        let said = !reply.text.trim().is_empty();
        if reply.calls.is_empty() {
            // Providers refuse an empty message.
            self.text(if said { &reply.text } else { "(no answer)" });
            return;
        }
        self.raw("[");
        if said {
            self.block(&reply.text, false);
            self.raw(",");
        }
        for (n, call) in reply.calls.iter().enumerate() {
            self.raw(if n > 0 { "," } else { "" });
            self.raw("{\"type\":\"tool_use\",\"id\":").text(&call.id).raw(",\"name\":").text(&call.tool);
            let read = serde_json::from_str(&call.arguments).ok().filter(Value::is_object);
            let input = read.unwrap_or_else(|| unreadable(&call.arguments));
            self.raw(",\"input\":").raw(&input.to_string()).raw("}");
        }
        self.raw("]");
    }

    fn result(&mut self, answer: &ToolAnswer, mark: bool) {
        self.raw("{\"type\":\"tool_result\",\"tool_use_id\":").text(&answer.id);
        self.raw(",\"content\":").text(&answer.text);
        self.raw(if answer.failed { ",\"is_error\":true" } else { "" });
        self.raw(if mark { MARK } else { "" }).raw("}");
    }
}

/// What the provider answered: the model as it names it, the reply, and what was counted.
pub(super) fn read(profile: &Profile, body: &[u8]) -> Result<(String, Reply, Tokens), Failed> {
    let wrong = |what: &str| Failed::final_(Fault::Unreadable, what);
    let form = || wrong("the reply does not have this provider's form");
    let mut json: Value = serde_json::from_slice(body).map_err(|_| wrong("the reply is not JSON: check base_url"))?;
    let Some(Value::Array(blocks)) = json.get_mut("content").map(Value::take) else { return Err(form()) };
    let calls = blocks.iter().any(|block| kind(block) == Some("tool_use"));
    let kept = if blocks.iter().all(|block| matches!(kind(block), Some("text" | "tool_use"))) {
        None
    } else {
        decode::kept(profile, parts(&blocks).ok_or_else(form)?, None, calls)
    };
    let mut reply = Reply { text: String::new(), calls: Vec::new(), stop: decode::stop(stop(&json)), kept };
    for mut block in blocks {
        match kind(&block) {
            Some("text") => reply.text.push_str(text(&block, "text").ok_or_else(form)?),
            Some("tool_use") => {
                let arguments = decode::arguments(&block.get_mut("input").map(Value::take).unwrap_or_default());
                let (id, tool) = (text(&block, "id").ok_or_else(form)?, text(&block, "name").ok_or_else(form)?);
                reply.calls.push(Called { id: id.to_owned(), tool: tool.to_owned(), arguments });
            }
            _ => {}
        }
    }
    let version = text(&json, "model").unwrap_or(&profile.provider_model);
    Ok((one_line(version, 128), reply, tokens(json.get("usage"))))
}

fn text<'a>(json: &'a Value, key: &str) -> Option<&'a str> {
    json.get(key).and_then(Value::as_str)
}

fn kind(block: &Value) -> Option<&str> {
    text(block, "type")
}

fn stop(json: &Value) -> Option<StopReason> {
    text(json, "stop_reason").map(|reason| StopReason::from(reason.to_owned()))
}

/// The blocks as the library keeps them to give them back.
fn parts(blocks: &[Value]) -> Option<Vec<ContentPart>> {
    let mut parts = Vec::new();
    let mut signatures = Vec::new();
    for block in blocks {
        match kind(block)? {
            "text" => parts.push(ContentPart::from_text(text(block, "text")?)),
            "thinking" => {
                let signature = text(block, "signature")?.to_owned();
                signatures.push(signature.clone());
                parts.push(ContentPart::ThoughtSignature(signature));
                parts.push(ContentPart::ReasoningContent(text(block, "thinking")?.to_owned()));
            }
            "tool_use" => parts.push(ContentPart::ToolCall(ToolCall {
                call_id: text(block, "id")?.to_owned(),
                fn_name: text(block, "name")?.to_owned(),
                fn_arguments: block.get("input").cloned().unwrap_or_default(),
                thought_signatures: None,
            })),
            _ => parts.push(ContentPart::from_custom(block.clone(), None)),
        }
    }
    let first = parts.iter_mut().find_map(|part| match part {
        ContentPart::ToolCall(call) => Some(call),
        _ => None,
    });
    if let Some(call) = first.filter(|_| !signatures.is_empty()) {
        call.thought_signatures = Some(signatures);
    }
    Some(parts)
}

/// Anthropic counts what the cache served and took beside the rest.
fn tokens(usage: Option<&Value>) -> Tokens {
    let most = u64::from(MAX_TOKENS);
    let count = |name: &str| {
        let found = usage.and_then(|usage| usage.get(name));
        let whole = found.and_then(Value::as_u64);
        let large = || found.and_then(Value::as_f64).is_some_and(|n| n > f64::from(MAX_TOKENS));
        whole.or_else(|| large().then_some(most)).unwrap_or(0).min(most)
    };
    let (cached, cache_written) = (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
    Tokens {
        input: count("input_tokens") + cached + cache_written,
        cached,
        cache_written,
        output: count("output_tokens"),
    }
}
