//! From a prompt file and a view to a prompt: rendering of the system text, and the laying out of the
//! sections of the first message in the bytes that there are.

use super::Part;
use super::data::text_section;

pub mod channels;

/// What every prompt says of the team, the Journal and the sections.
const TEAM: &str = include_str!("../../prompts/team.md");

/// Bytes of the Journal that Experts and the Critic read. The Journal is in every prompt, so this
/// bound keeps the bytes of an investigation linear in its rounds; it is reached within the first
/// rounds, so that later rounds cost hardly more than early ones (measured: fifty rounds take at most
/// 10.5 times the bytes of five). Room for some fifteen notes, those of the highest priority.
pub const JOURNAL_READ: usize = 2560;
/// Bytes of the Journal that the Director itself reads: more, since it is all that the Director
/// remembers, and few prompts are the Director's.
pub const JOURNAL_OWN: usize = 4 * 1024;
/// Bytes of the alert: larger ones are shown without their long lists and texts.
pub const ALERT: usize = 16 * 1024;

/// A prompt file. Its first line is `Casebook task: KIND (prompt KIND VERSION)`.
#[derive(Debug, Clone, Copy)]
pub struct Prompt(&'static str);

impl Prompt {
    /// The prompt in the text of its file.
    #[must_use]
    pub const fn new(text: &'static str) -> Self {
        Self(text)
    }

    /// Its name and version, such as `plan 1`.
    pub fn name(&self) -> &'static str {
        let first = self.0.lines().next().unwrap_or_default();
        let after = first.split_once("(prompt ").map_or(first, |(_, after)| after);
        after.split_once(')').map_or(after, |(name, _)| name)
    }

    /// The system text: `{{team}}` and each `{{name}}` of `fills` replaced. No view goes into it, so
    /// that it is the same for every task of its kind.
    pub fn render(&self, fills: &[(&str, &str)]) -> String {
        Self::filled(self.0, fills)
    }

    /// As [`Prompt::render`], for the text of any prompt file.
    pub fn filled(text: &str, fills: &[(&str, &str)]) -> String {
        let mut text = text.replace("{{team}}", TEAM.trim_end());
        for (name, fill) in fills {
            text = text.replace(&format!("{{{{{name}}}}}"), fill);
        }
        text
    }
}

/// A section as written for some number of bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// The section with its marks; empty when there is nothing to say.
    pub text: String,
    /// What of it was left out, in words.
    pub left_out: Option<String>,
}

/// A section of the first message that can be written longer and shorter.
pub struct Section<'a> {
    /// Bytes that it may have at the most, however much room there is.
    most: usize,
    /// Sections of the lowest number shrink first.
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
    /// A section that `write` writes in about the bytes that it is given, and never in less than it
    /// needs; sections of low `rank` shrink first when room is short.
    pub fn new(rank: u8, most: usize, write: impl Fn(usize) -> Written + 'a) -> Self {
        Self { most, rank, cache: false, write: Box::new(write) }
    }

    /// A section that is always written whole.
    pub fn fixed(text: String) -> Self {
        Self::new(u8::MAX, usize::MAX, move |_| Written { text: text.clone(), left_out: None })
    }

    /// The section, always in the bytes that it may have at the most.
    #[must_use]
    pub fn whole(self) -> Self {
        let (most, write) = (self.most, self.write);
        Self { write: Box::new(move |_| write(most)), ..Self::new(self.rank, most, |_| Written::default()) }
    }

    /// The prompt up to the end of this section comes again soon.
    #[must_use]
    pub fn cached(mut self) -> Self {
        self.cache = true;
        self
    }
}

/// The parts of the first message in at most `room` bytes, in the order of `sections`. When room is
/// short, sections shrink one after another by rank; when even their shortest forms do not fit, those
/// are what comes back. A last section says what was left out.
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
        // What a shorter form says of what it left out takes room as well, and escapes are not known
        // beforehand: a few tries, then the shortest form.
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

/// Bytes that a line about what was left out may take.
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
