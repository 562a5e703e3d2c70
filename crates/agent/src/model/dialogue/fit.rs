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

/// The briefing and the messages in the model's window. Fails if even the shortest form is too large.
pub(super) fn fit(
    dialogue: &Dialogue<'_>,
    walk: &Walk,
    profile: &Profile,
    frame: &Frame,
) -> Result<(Arc<Briefing>, Vec<Message>), String> {
    let window = profile.window.saturating_sub(profile.max_output) as usize * 5 / 2;
    let fixed: usize = frame.tools.iter().map(|t| t.description.len() + t.schema.text().len() + FRAME_BYTES).sum();
    let fixed = fixed + frame.format.as_ref().map_or(0, |f| f.schema.text().len()) + FRAME_BYTES;
    let whole = window.saturating_sub(fixed);
    // With tools, most of the room is kept for their results. The room must not depend on the length of the
    // conversation, or the start of the prompt would change from call to call.
    let room = if dialogue.turn.toolset.tools.is_empty() { whole } else { whole / 5 * 2 };
    let briefing = dialogue.turn.prompt_cache.briefing(room, || dialogue.brief.brief(dialogue.task, room));
    let opening = briefing.system.len() + briefing.parts.iter().map(|p| p.text.len()).sum::<usize>();
    let mut limits = vec![RESULT_BYTES; walk.messages.len()];
    let looks = dialogue.turn.toolset.tools.iter().any(|tool| RESULT_TOOLS.contains(&tool.name.as_str()));
    loop {
        let shown = walk.messages.iter().zip(&limits).map(|(m, limit)| message(m, *limit, looks));
        let messages: Vec<Message> = shown.collect();
        let bytes = opening + messages.iter().map(size).sum::<usize>();
        if bytes <= whole {
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
            text: data::result(&done.call, &done.result, limit, looks),
            failed: done.call.status == casebook_protocol::CallStatus::Failed,
        },
        Shown::Note { id, tool, text } => {
            ToolAnswer { id: id.clone(), tool: tool.clone(), text: text.clone(), failed: true }
        }
    }
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
