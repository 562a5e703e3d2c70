//! Renders prompts: the system text from a prompt file, and the sections of the first message within a limit of bytes.

use casebook_protocol::tool::server_of;
use casebook_protocol::{Task, View};

use super::Part;
use super::data::text_section;

pub mod channels;

/// The text about the team, the Journal and the sections in every prompt.
const TEAM: &str = include_str!("../../prompts/team.md");

/// What an Expert with tools of other servers must know about them.
pub const SERVERS: &str = include_str!("../../prompts/servers.md");
/// The name of the placeholder that [`servers`] fills for each task.
pub(super) const SERVERS_PLACE: &str = "servers";

/// What fills `{{servers}}`: [`SERVERS`] for an Expert with tools of other servers, and nothing for others.
#[must_use]
pub fn servers(task: &Task) -> &'static str {
    match &task.view {
        View::Investigate(view) if view.toolset.tools.iter().any(|tool| server_of(&tool.name).is_some()) => SERVERS,
        _ => "",
    }
}

/// The room of a prompt, in bytes, for which the limits of sections are meant. A model with more room sees more.
const ROOM: usize = 200_000;

/// The limit `base` of a section in a prompt with this much room: more for a larger window, at most four times.
#[must_use]
pub fn scaled(base: usize, room: usize) -> usize {
    base.saturating_mul(room).checked_div(ROOM).unwrap_or(base).clamp(base, base.saturating_mul(4))
}

/// Bytes of the Journal for Experts and Critic, about fifteen notes of the highest priority. The Journal is in every
/// prompt, so this limit keeps the bytes of an investigation linear in its rounds. Measured: fifty rounds take at most
/// 10.5 times the bytes of five.
pub const JOURNAL_READ: usize = 2560;
/// Bytes of the Journal for the Director. It has more, since the Journal is its only memory, and it has few prompts.
pub const JOURNAL_OWN: usize = 4 * 1024;
/// Bytes of the alert. A larger one is shown without its long lists and texts.
pub const ALERT: usize = 16 * 1024;

/// A prompt file. Its first line is `Casebook task: KIND (prompt KIND VERSION)`.
#[derive(Debug, Clone, Copy)]
pub struct Prompt(&'static str);

impl Prompt {
    #[must_use]
    pub const fn new(text: &'static str) -> Self {
        Self(text)
    }

    /// Name and version, such as `plan 1`.
    pub fn name(&self) -> &'static str {
        let first = self.0.lines().next().unwrap_or_default();
        let after = first.split_once("(prompt ").map_or(first, |(_, after)| after);
        after.split_once(')').map_or(after, |(name, _)| name)
    }

    /// The system text, with `{{team}}` and each `{{name}}` of `fills` replaced. It contains nothing of a view, so it
    /// is equal for all tasks of a kind.
    pub fn render(&self, fills: &[(&str, &str)]) -> String {
        Self::filled(self.0, fills)
    }

    pub fn filled(text: &str, fills: &[(&str, &str)]) -> String {
        let mut text = text.replace("{{team}}", TEAM.trim_end());
        for (name, fill) in fills {
            text = text.replace(&format!("{{{{{name}}}}}"), fill);
        }
        text
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// The section with its tags; empty if it has no content.
    pub text: String,
    pub left_out: Option<String>,
}

/// A section of the first message with a variable length.
pub struct Section<'a> {
    most: usize,
    /// Sections with the lowest rank shrink first.
    rank: u8,
    cache: bool,
    write: Box<dyn Fn(usize) -> Written + 'a>,
}

impl std::fmt::Debug for Section<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Section").field("most", &self.most).field("rank", &self.rank).finish_non_exhaustive()
    }
}

impl<'a> Section<'a> {
    /// A section whose text comes from `write`, which gets the number of bytes but may exceed it. Sections of low
    /// `rank` shrink first.
    pub fn new(rank: u8, most: usize, write: impl Fn(usize) -> Written + 'a) -> Self {
        Self { most, rank, cache: false, write: Box::new(write) }
    }

    /// A section that never shrinks.
    pub fn fixed(text: String) -> Self {
        Self::new(u8::MAX, usize::MAX, move |_| Written { text: text.clone(), left_out: None })
    }

    /// Makes the section always use its most bytes.
    #[must_use]
    pub fn whole(self) -> Self {
        let (most, write) = (self.most, self.write);
        Self { write: Box::new(move |_| write(most)), ..Self::new(self.rank, most, |_| Written::default()) }
    }

    /// Sets a cache mark at the end of this section.
    #[must_use]
    pub fn cached(mut self) -> Self {
        self.cache = true;
        self
    }
}

/// The parts of the first message in at most `room` bytes, in the order of `sections`. Sections shrink by rank until
/// all fit, or all have their shortest form. A last section lists what was left out.
pub fn lay_out(sections: &[Section<'_>], room: usize) -> Vec<Part> {
    let mut written: Vec<Written> = sections.iter().map(|s| (s.write)(s.most)).collect();
    let mut by_rank: Vec<usize> = (0..sections.len()).collect();
    by_rank.sort_by_key(|i| sections.get(*i).map(|s| s.rank));
    for place in by_rank {
        let (Some(section), total) = (sections.get(place), size(&written)) else { continue };
        if total <= room {
            break;
        }
        let excess = total - room;
        let length = written.get(place).map_or(0, |w| w.text.len());
        // The note about what was left out also takes room, and the length of escapes is unknown, so a few sizes are
        // tried before the shortest form.
        let tries = [excess + NOTE, 2 * excess + NOTE, 4 * excess + NOTE, usize::MAX];
        for less in tries {
            let shorter = (section.write)(section.most.min(length.saturating_sub(less)));
            if let Some(slot) = written.get_mut(place) {
                *slot = shorter;
            }
            if size(&written) <= room {
                break;
            }
        }
    }
    let note = left_out(&written);
    let marks = sections.iter().map(|s| s.cache);
    let mut parts: Vec<Part> = written
        .into_iter()
        .zip(marks)
        .filter(|(w, _)| !w.text.is_empty())
        .map(|(w, cache)| Part { text: w.text, cache })
        .collect();
    parts.extend(note.map(|text| Part { text, cache: false }));
    parts
}

const NOTE: usize = 160;

fn size(written: &[Written]) -> usize {
    written.iter().map(|w| w.text.len()).sum::<usize>() + left_out(written).map_or(0, |note| note.len())
}

fn left_out(written: &[Written]) -> Option<String> {
    let lines: Vec<&str> = written.iter().filter_map(|w| w.left_out.as_deref()).collect();
    (!lines.is_empty()).then(|| text_section("left_out", &lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(rank: u8, name: &'static str) -> Section<'static> {
        Section::new(rank, 100, move |limit| {
            let kept = limit.min(100) / 10;
            let text = format!("<{name}>\n{}\n</{name}>\n", "0123456789".repeat(kept));
            let left_out = (kept < 10).then(|| format!("{name}: {} left out", 10 - kept));
            Written { text, left_out }
        })
    }

    #[test]
    fn a_prompt_has_a_name_and_takes_what_is_filled_in() {
        let prompt = Prompt::new("Casebook task: plan (prompt plan 3)\n{{team}}\n{{rubric}}\n");
        assert_eq!(prompt.name(), "plan 3");
        let text = prompt.render(&[("rubric", "0.9 good")]);
        assert!(text.starts_with("Casebook task: plan (prompt plan 3)\n# The team\n"), "{text}");
        assert!(text.ends_with("\n0.9 good\n") && !text.contains("{{"), "{text}");
    }

    #[test]
    fn what_fits_is_laid_out_in_order_with_its_marks() {
        let parts = lay_out(&[Section::fixed("fixed\n".into()).cached(), numbers(1, "a")], 1000);
        assert_eq!(parts.iter().map(|p| p.cache).collect::<Vec<_>>(), [true, false]);
        assert_eq!(parts[0].text, "fixed\n");
    }

    #[test]
    fn sections_shrink_by_rank_and_it_is_said() {
        let sections = [numbers(2, "a"), numbers(1, "b"), Section::fixed("fixed\n".into())];
        let total = |room| lay_out(&sections, room).iter().map(|p| p.text.len()).sum::<usize>();
        let parts = lay_out(&sections, 215);
        assert!(parts[0].text.len() > 100 && parts[1].text.len() < 100, "{parts:?}");
        assert!(parts[3].text.starts_with("<left_out>\nb: "), "{parts:?}");
        for room in [150, 180, 215, 500] {
            assert!(total(room) <= room, "{room}");
        }
        let least = total(0);
        assert_eq!(total(least - 1), least, "the shortest form is the last resort");
    }
}
