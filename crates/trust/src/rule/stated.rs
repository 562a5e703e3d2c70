use casebook_protocol::{FindingDraft, TimelineEvent, Timestamp};

use crate::claim::{self, Corpus};

/// What findings state. A description and a narrative may state nothing else.
#[derive(Debug, Default)]
pub struct Stated {
    corpus: Corpus,
    times: Vec<Timestamp>,
}

impl Stated {
    pub fn finding(&mut self, draft: &FindingDraft) {
        self.corpus.add_text(&draft.claim);
        draft.entities.iter().for_each(|entity| self.corpus.add_text(&entity.value));
        self.times.extend(draft.time.iter().flat_map(|time| std::iter::once(time.at).chain(time.until)));
    }

    /// An event whose description was checked.
    pub fn event(&mut self, event: &TimelineEvent) {
        self.corpus.add_text(&event.description);
        self.times.extend(std::iter::once(event.time.at).chain(event.time.until));
    }

    pub fn text(&mut self, text: &str) {
        self.corpus.add_text(text);
    }

    pub fn number(&mut self, number: usize) {
        self.corpus.add_number(number as u64);
    }

    pub fn faults(&self, text: &str) -> Vec<String> {
        claim::faults(text, &self.corpus, &self.times)
    }

    /// The sentences of `text` without a fault, and the faults of the others.
    pub fn kept(&self, text: &str) -> (String, Vec<String>) {
        let mut faults = Vec::new();
        let kept = sentences(text).into_iter().filter(|sentence| {
            let found = self.faults(sentence);
            let fine = found.is_empty();
            faults.extend(found);
            fine
        });
        (kept.collect::<Vec<_>>().join(" "), faults)
    }
}

/// Splits at a full stop before white space. A name in backquotes is not split.
fn sentences(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut from = 0;
    let mut name = false;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        name ^= c == '`';
        let ends = matches!(c, '.' | '!' | '?') && chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        if ends && !name {
            out.extend(text.get(from..=at));
            from = at + c.len_utf8();
        }
    }
    out.extend(text.get(from..));
    out.into_iter().map(str::trim).filter(|sentence| !sentence.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_with_a_fact_of_no_finding_is_dropped() {
        let mut stated = Stated::default();
        stated.text("`mara` ran `a. b.exe` 7 times from 10.0.0.9");
        stated.times.push("2026-01-02T03:04:05Z".parse().unwrap());
        stated.number(2);
        let text =
            "At 03:04:05 `mara` ran `a. b.exe` 7 times. It came from 10.0.0.8! Then `eve` did it. 2 events show it";
        let (kept, faults) = stated.kept(text);
        assert_eq!(kept, "At 03:04:05 `mara` ran `a. b.exe` 7 times. 2 events show it");
        assert_eq!(
            faults,
            ["the address 10.0.0.8 does not occur in what is cited", "`eve` does not occur in what is cited"]
        );
    }
}
