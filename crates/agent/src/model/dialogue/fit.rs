//! Fits a conversation into the window of a model. What is left out is reported in its place.

use std::sync::Arc;

use casebook_protocol::tool::RESULT_TOOLS;

use super::{Briefing, Dialogue, Entry, Frame, Message, Profile, Shown, ToolAnswer, Walk};
use crate::model::{data, tokens};

/// The shown bytes of a tool result at first: about sixty log records.
pub(super) const RESULT_BYTES: usize = 24 * 1024;
const LEAST_BYTES: usize = 512;
/// Overhead of a message in bytes: roles, ids, braces.
const FRAME_BYTES: usize = 200;

/// Bytes of a thousand tokens, as long as the provider has counted none.
const ESTIMATED: u64 = 2500;

fn window_bytes(profile: &Profile, bytes_of_1000: u64) -> usize {
    let tokens = u64::from(profile.window.saturating_sub(profile.max_output));
    usize::try_from(tokens.saturating_mul(bytes_of_1000) / 1000).unwrap_or(usize::MAX)
}

/// Bytes of a thousand tokens as this model's provider counted them in the turn before, less a tenth for texts that take
/// more tokens.
fn counted(dialogue: &Dialogue<'_>, profile: &Profile) -> u64 {
    let calls = dialogue.past.asked.iter().rev().map(|exchange| &exchange.call);
    let mut of_model = calls.filter(|call| call.model == profile.name && !call.estimated);
    let last = of_model.find(|call| call.usage.input_tokens > 0 && call.request_bytes > 0);
    let bytes = last.and_then(|call| call.request_bytes.saturating_mul(900).checked_div(call.usage.input_tokens));
    bytes.map_or(ESTIMATED, |bytes| bytes.clamp(1500, 4500))
}

/// Bytes of a request beside the prompt and the messages.
fn fixed_bytes(frame: &Frame) -> usize {
    let tools: usize = frame.tools.iter().map(|t| t.description.len() + t.schema.text().len() + FRAME_BYTES).sum();
    tools + frame.format.as_ref().map_or(0, |f| f.schema.text().len()) + FRAME_BYTES
}

/// The bytes that the briefing may take. With tools, most of the window is kept for their results. The room must not
/// depend on the length of the conversation, or the start of the prompt would change from call to call.
pub(super) fn room(dialogue: &Dialogue<'_>, profile: &Profile, frame: &Frame) -> usize {
    let whole = window_bytes(profile, ESTIMATED).saturating_sub(fixed_bytes(frame));
    if dialogue.turn.toolset.tools.is_empty() { whole } else { whole / 5 * 2 }
}

/// The briefing and the messages in the model's window. Fails if even the shortest form is too large.
pub(super) fn fit(
    dialogue: &Dialogue<'_>,
    walk: &Walk,
    profile: &Profile,
    frame: &Frame,
) -> Result<(Arc<Briefing>, Vec<Message>), String> {
    let fixed = fixed_bytes(frame);
    let counted = window_bytes(profile, counted(dialogue, profile)).saturating_sub(fixed);
    let room = room(dialogue, profile, frame);
    let briefing = dialogue.turn.prompt_cache.briefing(room, || dialogue.brief.brief(dialogue.task, room));
    let opening = briefing.system.len() + briefing.parts.iter().map(|p| p.text.len()).sum::<usize>();
    let mut limits = vec![RESULT_BYTES; walk.messages.len()];
    let looks = dialogue.turn.toolset.tools.iter().any(|tool| RESULT_TOOLS.contains(&tool.name.as_str()));
    loop {
        let shown = walk.messages.iter().zip(&limits).map(|(m, limit)| message(m, *limit, looks));
        let messages: Vec<Message> = shown.collect();
        let bytes = opening + messages.iter().map(size).sum::<usize>();
        if bytes <= counted {
            let opening = std::iter::once(Message::User(briefing.parts.clone()));
            return Ok((Arc::clone(&briefing), opening.chain(messages).collect()));
        }
        // The oldest results are cut first, since the model works on the latest ones.
        let next = walk
            .messages
            .iter()
            .zip(limits.iter_mut())
            .find(|(m, limit)| matches!(m, Entry::Results(_)) && **limit > LEAST_BYTES);
        match next {
            Some((_, limit)) => *limit /= 2,
            None => {
                return Err(format!(
                    "expected a prompt of at most {1} tokens for model {2} (window {3}, longest reply {4}), got about {0} with its tools; use a model with a larger window",
                    tokens(bytes + fixed),
                    profile.window.saturating_sub(profile.max_output),
                    profile.name,
                    profile.window,
                    profile.max_output,
                ));
            }
        }
    }
}

fn message(entry: &Entry, limit: usize, looks: bool) -> Message {
    match entry {
        Entry::Reply(reply) => Message::Assistant(reply.clone()),
        Entry::Ours(text) => Message::User(vec![crate::model::Part { text: text.clone(), cache: false }]),
        Entry::Results(all) => Message::Results(all.iter().map(|shown| answer(shown, limit, looks)).collect()),
    }
}

fn answer(shown: &Shown, limit: usize, looks: bool) -> ToolAnswer {
    match shown {
        Shown::Made { id, done } => ToolAnswer {
            id: id.clone(),
            tool: done.call.tool.clone(),
            text: shown_at(done, limit, looks),
            failed: done.call.status == casebook_protocol::CallStatus::Failed,
        },
        Shown::Note { id, tool, text } => {
            ToolAnswer { id: id.clone(), tool: tool.clone(), text: text.clone(), failed: true }
        }
    }
}

/// What is as short as its cut form with the notice is never cut.
pub(super) fn shown_at(done: &crate::reasoner::Done, limit: usize, looks: bool) -> String {
    let cut = data::result(&done.call, &done.result, limit, looks);
    if limit >= RESULT_BYTES || done.result.len() > cut.len() {
        return cut;
    }
    let whole = data::result(&done.call, &done.result, RESULT_BYTES, looks);
    if whole.len() <= cut.len() { whole } else { cut }
}

fn size(message: &Message) -> usize {
    FRAME_BYTES
        + match message {
            Message::User(parts) => parts.iter().map(|p| p.text.len()).sum(),
            Message::Assistant(reply) => {
                reply.text.len()
                    + reply.kept.as_ref().map_or(0, String::len)
                    + reply.calls.iter().map(|c| c.arguments.len() + FRAME_BYTES).sum::<usize>()
            }
            Message::Results(all) => all.iter().map(|a| a.text.len() + FRAME_BYTES).sum(),
        }
}
