//! What is asked, in the library's terms.

use casebook_protocol::Purpose;
use genai::chat::{
    CacheControl, ChatMessage, ChatOptions, ChatRequest, ChatResponseFormat, ContentPart, JsonSpec, MessageContent,
    ReasoningEffort, Tool, ToolCall, ToolChoice, ToolResponse,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::config::{Effort, Profile, Provider};
use crate::model::{Ask, Called, Choice, Message, Part, Reply, ToolAnswer};

/// A request in the library's terms.
pub(super) struct Written {
    /// The model's name as the library gets it; [`super::relay`] restores the provider's.
    pub(super) name: String,
    pub(super) request: ChatRequest,
    pub(super) options: ChatOptions,
}

/// Cache marks that Anthropic takes in one request.
const MAX_MARKS: usize = 4;

/// Writes `ask` for the model of `profile`.
pub(super) fn request(profile: &Profile, ask: &Ask) -> Written {
    let marks = Marks::of(profile.provider, ask);
    let mut messages = Vec::with_capacity(ask.messages.len() + 1);
    let mut seen = 0;
    system(&mut messages, profile.provider, &ask.system, &marks, &mut seen);
    for (message, left) in ask.messages.iter().zip((0..ask.messages.len()).rev()) {
        let tail = marks.tail && left == 0;
        messages.push(match message {
            Message::User(parts) => user(profile.provider, parts, &marks, &mut seen, tail),
            Message::Assistant(reply) => assistant(profile, reply),
            Message::Results(answers) => results(profile.provider, answers, tail),
        });
    }
    let mut request = ChatRequest::new(messages);
    if !ask.tools.is_empty() {
        request = request.with_tools(ask.tools.iter().map(|offer| {
            let tool = Tool::new(offer.name.as_str()).with_description(offer.description.as_str());
            tool.with_schema(offer.schema.value().clone()).with_strict(offer.strict)
        }));
    }
    Written { name: name(profile), request, options: options(profile, ask) }
}

/// The name for the library. It takes what follows `::` for the name, and a last word such as
/// `-high` for an effort to cut off and send, unless an effort is given.
fn name(profile: &Profile) -> String {
    let name = profile.provider_model.replace("::", ":");
    let last = name.rsplit_once('-').map(|(_, last)| last);
    match last {
        Some(last) if ReasoningEffort::from_keyword(last).is_some() => format!("{name}-exact"),
        _ => name,
    }
}

fn options(profile: &Profile, ask: &Ask) -> ChatOptions {
    let mut options = ChatOptions::default().with_max_tokens(ask.max_output.min(profile.max_output));
    let parameters = profile.parameters;
    options.temperature = parameters.temperature;
    options.top_p = parameters.top_p;
    options.seed = parameters.seed;
    options.reasoning_effort = parameters.effort.map(effort);
    if ask.choice == Choice::Nothing && !ask.tools.is_empty() {
        options.tool_choice = Some(ToolChoice::None);
    }
    if let Choice::Only(tool) = &ask.choice {
        options.tool_choice = Some(ToolChoice::tool(tool.as_str()));
        if profile.provider == Provider::Anthropic {
            // It takes no forced call while it thinks.
            options.reasoning_effort = Some(ReasoningEffort::Zero);
        }
    }
    if let Some(format) = &ask.format {
        let spec = JsonSpec::new(format.name.as_str(), format.schema.value().clone());
        options.response_format = Some(ChatResponseFormat::JsonSpec(spec));
    }
    if matches!(profile.provider, Provider::Openai | Provider::OpenaiResponses) {
        // Requests of one prompt begin alike: the key brings them to the same cache.
        options.prompt_cache_key = Some(cache_key(&ask.prompt));
    }
    let thinks = parameters.effort.is_some_and(|effort| effort != Effort::None);
    if profile.provider == Provider::OpenaiResponses && thinks {
        // Nothing is stored there, so thoughts come to us sealed and go back with the conversation.
        options.extra_body = Some(json!({"include": ["reasoning.encrypted_content"]}));
    }
    options
}

fn cache_key(prompt: &str) -> String {
    let word: String = prompt.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(48).collect();
    format!("casebook-{word}")
}

const fn effort(effort: Effort) -> ReasoningEffort {
    match effort {
        Effort::None => ReasoningEffort::Zero,
        Effort::Minimal => ReasoningEffort::Minimal,
        Effort::Low => ReasoningEffort::Low,
        Effort::Medium => ReasoningEffort::Medium,
        Effort::High => ReasoningEffort::High,
        Effort::Xhigh => ReasoningEffort::XHigh,
        Effort::Max => ReasoningEffort::Max,
    }
}

/// Which of a request's marked parts get a mark, counted over all of them in order.
pub(super) struct Marks {
    marked: usize,
    provider: Provider,
    /// The end of the conversation gets one, too: the next turn begins with all of it.
    pub(super) tail: bool,
}

impl Marks {
    pub(super) fn of(provider: Provider, ask: &Ask) -> Self {
        let user = ask.messages.iter().filter_map(|message| match message {
            Message::User(parts) => Some(parts),
            _ => None,
        });
        let marked = ask.system.iter().chain(user.flatten()).filter(|part| marked(part)).count();
        let goes_on = ask.purpose == Purpose::Turn && ask.choice == Choice::Free && !ask.tools.is_empty();
        Self { marked, provider, tail: provider == Provider::Anthropic && goes_on }
    }

    /// Whether the `n`th marked part gets its mark: the first, behind which lie tools and system, and
    /// the last ones, which reach furthest.
    const fn keeps(&self, n: usize) -> bool {
        let most = if self.tail { MAX_MARKS - 1 } else { MAX_MARKS };
        matches!(self.provider, Provider::Anthropic) && (n == 0 || n + most > self.marked)
    }

    /// Whether `part` gets a mark; `seen` counts the marked ones so far.
    pub(super) fn take(&self, part: &Part, seen: &mut usize) -> bool {
        let keeps = marked(part) && self.keeps(*seen);
        *seen += usize::from(marked(part));
        keeps
    }
}

fn marked(part: &Part) -> bool {
    part.cache && !part.text.is_empty()
}

fn system(messages: &mut Vec<ChatMessage>, provider: Provider, parts: &[Part], marks: &Marks, seen: &mut usize) {
    if provider != Provider::Anthropic {
        if !parts.is_empty() {
            messages.push(ChatMessage::system(joined(parts)));
        }
        return;
    }
    for part in parts.iter().filter(|part| !part.text.is_empty()) {
        let message = ChatMessage::system(part.text.as_str());
        let mark = marks.take(part, seen);
        messages.push(if mark { message.with_options(CacheControl::Ephemeral) } else { message });
    }
}

fn user(provider: Provider, parts: &[Part], marks: &Marks, seen: &mut usize, tail: bool) -> ChatMessage {
    if provider != Provider::Anthropic {
        return ChatMessage::user(joined(parts));
    }
    // As blocks of Anthropic's own form: the library would join the texts and lose the marks.
    let parts: Vec<&Part> = parts.iter().filter(|part| !part.text.is_empty()).collect();
    let blocks = parts.iter().zip((0..parts.len()).rev()).map(|(part, left)| {
        let block = match marks.take(part, seen) || (tail && left == 0) {
            true => json!({"type": "text", "text": part.text, "cache_control": {"type": "ephemeral"}}),
            false => json!({"type": "text", "text": part.text}),
        };
        ContentPart::from_custom(block, None)
    });
    ChatMessage::user(blocks.collect::<MessageContent>())
}

/// The texts in one, each beginning on a line of its own.
fn joined(parts: &[Part]) -> String {
    let mut all = String::with_capacity(parts.iter().map(|part| part.text.len() + 1).sum());
    for part in parts {
        if !all.is_empty() && !all.ends_with('\n') {
            all.push('\n');
        }
        all.push_str(&part.text);
    }
    all
}

/// What a provider wants back, with whose it is: another provider would refuse it.
#[derive(Serialize, Deserialize)]
struct Kept {
    provider: String,
    model: String,
    parts: Vec<ContentPart>,
}

/// `parts` of a reply in the form of [`Reply::kept`].
pub(super) fn keep(profile: &Profile, parts: Vec<ContentPart>) -> Option<String> {
    let (provider, model) = (profile.provider.name().to_owned(), profile.provider_model.clone());
    serde_json::to_string(&Kept { provider, model, parts }).ok()
}

fn assistant(profile: &Profile, reply: &Reply) -> ChatMessage {
    let kept = reply.kept.as_deref().and_then(|kept| serde_json::from_str::<Kept>(kept).ok());
    let own = |kept: &Kept| kept.provider == profile.provider.name() && kept.model == profile.provider_model;
    let mut parts = match kept.filter(own) {
        Some(kept) => kept.parts,
        None => {
            let text = Some(ContentPart::from_text(reply.text.as_str())).filter(|_| !reply.text.trim().is_empty());
            text.into_iter().chain(reply.calls.iter().map(|call| ContentPart::ToolCall(called(call)))).collect()
        }
    };
    for part in &mut parts {
        if let ContentPart::ToolCall(call) = part
            && !call.fn_arguments.is_object()
        {
            call.fn_arguments = unreadable(call.fn_arguments.as_str().unwrap_or_default());
        }
    }
    if parts.is_empty() {
        // Providers refuse an empty message.
        parts.push(ContentPart::from_text("(no answer)"));
    }
    ChatMessage::assistant(parts.into_iter().collect::<MessageContent>())
}

fn called(call: &Called) -> ToolCall {
    let fn_arguments = serde_json::from_str(&call.arguments).ok().filter(Value::is_object);
    ToolCall {
        call_id: call.id.clone(),
        fn_name: call.tool.clone(),
        fn_arguments: fn_arguments.unwrap_or_else(|| unreadable(&call.arguments)),
        thought_signatures: None,
    }
}

/// Arguments that are no object, in one: providers take nothing else back.
pub(super) fn unreadable(arguments: &str) -> Value {
    json!({"unreadable_arguments": arguments})
}

fn results(provider: Provider, answers: &[ToolAnswer], tail: bool) -> ChatMessage {
    let parts = answers.iter().zip((0..answers.len()).rev()).map(|(answer, left)| match provider {
        // As a block of Anthropic's own form: the library has no flag for a failure.
        Provider::Anthropic => {
            let ToolAnswer { id, text, .. } = answer;
            let mut block = json!({"type": "tool_result", "tool_use_id": id, "content": text});
            if let Some(block) = block.as_object_mut() {
                if answer.failed {
                    block.insert("is_error".into(), true.into());
                }
                if tail && left == 0 {
                    block.insert("cache_control".into(), json!({"type": "ephemeral"}));
                }
            }
            ContentPart::from_custom(block, None)
        }
        _ => {
            let response = ToolResponse::new(answer.id.as_str(), failed_in_words(answer));
            ContentPart::ToolResponse(response.with_fn_name(answer.tool.as_str()))
        }
    });
    ChatMessage::tool(parts.collect::<MessageContent>())
}

/// The text of a result. That the call failed is said in its first line, where the form has no flag.
fn failed_in_words(answer: &ToolAnswer) -> String {
    let says = answer.text.lines().next().is_some_and(|line| line.contains("failed"));
    if answer.failed && !says {
        format!("call of {} failed\n{}", answer.tool, answer.text)
    } else {
        answer.text.clone()
    }
}
