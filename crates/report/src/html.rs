//! A report as one self-contained page: nothing is loaded from anywhere, no script runs, and every
//! statement leads to findings, every finding to citations, every citation to a record and to the
//! tool call that returned it. The page itself is `templates/report.html`, with the files that it includes.

use askama::Template;
use askama::filters::HtmlSafe;
use casebook_protocol::report::ReportFinding;
use casebook_protocol::{CallStatus, Citation, Credibility, EventTime, FindingId, RecordRef, Report, Score, Verdict};

use crate::finished;
use crate::words::{self, Piece, cut, pieces};

const STYLE: &str = include_str!("../templates/style.css");

/// Nothing may be loaded or run, and no style applies but the one with this hash: hostile
/// text that got past all escaping would still find nothing to start.
const POLICY: &str = "default-src 'none'; style-src 'sha256-84D9CNN/Dj3/h/JnNN4e0d+z/dOcXlBynGdG3SSeu9w='; base-uri 'none'; form-action 'none'";

/// Longer texts are cut, and say so; the report as JSON has them whole.
const MOST: usize = 6_000;

#[must_use]
pub fn render(report: &Report) -> String {
    finished(&Page { report }.to_string())
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    report: &'a Report,
}

/// A sentence or a list of findings: names from the evidence set apart, findings linked.
#[derive(Template)]
#[template(path = "text.html")]
struct Text<'a> {
    pieces: Vec<Piece<'a>>,
}

/// A score with its label.
#[derive(Template)]
#[template(ext = "html", source = r#"<span class="chip s{{ step }}"><b>{{ score }}</b> {{ label }}</span>"#)]
struct Chip {
    step: usize,
    score: Score,
    label: &'static str,
}

/// How the time of something is known, with the field that it was read from.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<span class="basis">{{ basis }}{% if !field.is_empty() %} <code>{{ field }}</code>{% endif %}</span>"#
)]
struct Basis<'a> {
    basis: &'static str,
    field: &'a str,
}

/// Text as it stands in the evidence.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<pre>{{ shown }}{% if more > 0 %}<b class="cut">… {{ words::thousands(*more) }} more characters</b>{% endif %}</pre>"#
)]
struct Quoted {
    shown: String,
    more: u64,
}

/// A record, with the anchor of the citation that holds it.
#[derive(Template)]
#[template(
    ext = "html",
    source = r##"{% if let Some(anchor) = anchor %}<a class="place" href="#{{ anchor }}">{{ place }}</a>{% else %}<span class="place">{{ place }}</span>{% endif %}"##
)]
struct Place {
    place: String,
    anchor: Option<String>,
}

/// An entry of the Journal by its number, linked if the report has it.
#[derive(Template)]
#[template(
    ext = "html",
    source = r##"{% if known %}<a href="#j-{{ seq }}">#{{ seq }}</a>{% else %}#{{ seq }}{% endif %}"##
)]
struct Entry {
    seq: u32,
    known: bool,
}

impl HtmlSafe for Text<'_> {}
impl HtmlSafe for Chip {}
impl HtmlSafe for Basis<'_> {}
impl HtmlSafe for Quoted {}
impl HtmlSafe for Place {}
impl HtmlSafe for Entry {}

impl<'a> Page<'a> {
    /// The class that gives the verdict its colour.
    const fn tone(&self) -> &'static str {
        match self.report.verdict {
            Verdict::TruePositive => "bad",
            Verdict::BenignPositive | Verdict::FalsePositive => "good",
            Verdict::Inconclusive => "open",
        }
    }

    const fn has_doubts(&self) -> bool {
        let Report { disagreements, blind_spots, guards, .. } = self.report;
        !(disagreements.is_empty() && blind_spots.is_empty() && guards.is_empty())
    }

    fn sentence<'t>(&self, text: &'t str) -> Text<'t> {
        let mut all = Vec::new();
        for piece in pieces(text) {
            match piece {
                Piece::Plain(plain) => {
                    all.extend(plain.split_inclusive(|c| !in_id(c)).flat_map(|word| self.word(word)))
                }
                piece => all.push(piece),
            }
        }
        Text { pieces: all }
    }

    /// A word, with the id of a finding at its beginning linked.
    fn word<'t>(&self, word: &'t str) -> impl Iterator<Item = Piece<'t>> {
        let (id, rest) = word.split_at(word.trim_end_matches(|c| !in_id(c)).len());
        if self.knows(id) {
            [Some(Piece::Finding(id)), Some(Piece::Plain(rest))]
        } else {
            [Some(Piece::Plain(word)), None]
        }
        .into_iter()
        .flatten()
    }

    fn knows(&self, id: &str) -> bool {
        id.starts_with('r') && self.report.findings.iter().any(|f| f.finding.id.as_str() == id)
    }

    fn link<'t>(&self, id: &'t FindingId) -> Text<'t> {
        self.links(std::slice::from_ref(id))
    }

    /// Links to findings. One that the report does not have is named without a link.
    fn links<'t>(&self, ids: &'t [FindingId]) -> Text<'t> {
        let link = |id: &'t FindingId| {
            let id = id.as_str();
            [Piece::Plain(", "), if self.knows(id) { Piece::Finding(id) } else { Piece::Plain(id) }]
        };
        Text { pieces: ids.iter().flat_map(link).skip(1).collect() }
    }

    fn entry(&self, seq: u32) -> Entry {
        Entry { seq, known: self.report.journal.iter().any(|entry| entry.seq == seq) }
    }

    fn chip(&self, score: Score, label: &'static str) -> Chip {
        let band = Credibility::of(score);
        Chip { step: Credibility::BANDS.iter().position(|one| *one == band).unwrap_or(0), score, label }
    }

    fn basis<'t>(&self, time: &'t EventTime) -> Basis<'t> {
        Basis { basis: time.basis.meaning(), field: &time.field }
    }

    fn quoted(&self, text: &str) -> Quoted {
        let (shown, more) = cut(text, MOST);
        Quoted { shown: shown.to_owned(), more: more as u64 }
    }

    /// JSON over several lines. Other text is shown as it is.
    fn json(&self, text: &str) -> Quoted {
        let value: Option<serde_json::Value> = serde_json::from_str(text).ok();
        let pretty = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
        self.quoted(pretty.as_deref().unwrap_or(text))
    }

    /// A record, leading to the citation among these findings that holds it.
    fn place(&self, ids: &[FindingId], record: &RecordRef) -> Place {
        let mut among = self.report.findings.iter().filter(|f| ids.contains(&f.finding.id));
        Place { place: words::record(record), anchor: among.find_map(|found| citation(found, record)) }
    }

    /// The findings, those that may carry the Timeline first.
    fn findings(&self) -> Vec<&'a ReportFinding> {
        let (mut credible, others): (Vec<_>, Vec<_>) = self.report.findings.iter().partition(|f| words::credible(f));
        credible.extend(others);
        credible
    }

    fn credible(&self) -> usize {
        self.report.findings.iter().filter(|f| words::credible(f)).count()
    }

    /// The numbers of the events on the Timeline that rest on a finding.
    fn events(&self, id: &FindingId) -> Vec<usize> {
        let events = (1..).zip(&self.report.timeline.events);
        events.filter(|(_, event)| event.findings.contains(id)).map(|(n, _)| n).collect()
    }
}

/// A character that an id of a finding may have.
const fn in_id(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
}

/// The anchor of the citation of `record`.
fn citation(found: &ReportFinding, record: &RecordRef) -> Option<String> {
    let holds = |r: &RecordRef| r.file == record.file && r.line == record.line;
    let n = found.citations.iter().position(|c| c.holds && c.records.iter().any(holds))?;
    Some(format!("c-{}-{}", found.finding.id, n + 1))
}
