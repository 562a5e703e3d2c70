//! Fits a conversation into the window of a model before it is sent: what is left out is said where
//! it was.

use std::sync::Arc;

use casebook_protocol::tool::RESULT_TOOLS;

use super::{Briefing, Dialogue, Frame, Message, Profile, Said, Shown, ToolAnswer, Walk};
use crate::model::data;

/// Bytes of a tool result that are shown at first: enough for some sixty log records.
pub(super) const RESULT_BYTES: usize = 24 * 1024;
/// Bytes of a tool result that are shown at the least.
const LEAST_BYTES: usize = 512;
/// What a message costs besides its text, in bytes: roles, ids, braces.
const FRAME_BYTES: usize = 200;

/// Tokens that so many bytes take at the most. Measured on logs: 2.54 bytes a token in syslog, 2.65 in
/// JSON; prose takes more.
pub(super) const fn tokens(bytes: usize) -> u64 {
    (bytes as u64 * 2).div_ceil(5)
}

/// The briefing and the messages as they fit.
///
/// # Errors
/// What does not fit, and into which window.
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
    // With tools, the greater part is kept for what they return. It must not depend on how far the
    // conversation is, or the beginning of the prompt would change from call to call.
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
        // The oldest results are cut first: what came last is what the model is thinking about.
        let next = walk
            .messages
            .iter()
            .zip(limits.iter_mut())
            .find(|(m, limit)| matches!(m, Said::Results(_)) && **limit > LEAST_BYTES);
        match next {
            Some((_, limit)) => *limit /= 2,
            None => {
                return Err(format!(
                    "the prompt takes about {} tokens with its tools, more than the {} that model {} leaves for it (window {}, longest reply {}): use a model with a larger window",
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

fn message(said: &Said, limit: usize, looks: bool) -> Message {
    match said {
        Said::Reply(reply) => Message::Assistant(reply.clone()),
        Said::Us(text) => Message::User(vec![crate::model::Part { text: text.clone(), cache: false }]),
        Said::Results(all) => Message::Results(all.iter().map(|shown| answer(shown, limit, looks)).collect()),
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
