//! Renders a report as one self-contained page (`templates/report.html`): it loads nothing and runs no script.
//! Statements link to findings, findings to citations, and citations to the record and to the tool call that
//! returned it.

use askama::Template;
use askama::filters::HtmlSafe;
use casebook_protocol::report::{ReportCitation, ReportFinding};
use casebook_protocol::{
    CallStatus, Citation, Credibility, EventTime, FindingId, RecordRef, Report, Score, TimeBasis, Verdict,
};

use casebook_trust::Backing;

use crate::finished;
use crate::record::{self, Part};
use crate::words::{self, Piece, cut, pieces};

const STYLE: &str = include_str!("../templates/style.css");

/// Allows only the style with this hash. Even text that escaping missed could not load or run anything.
const POLICY: &str = "default-src 'none'; style-src 'sha256-pZre5+pFiTkuqnocuvBsxkT1+ENavuFRmGpZqoZjCvA='; base-uri 'none'; form-action 'none'";

/// In characters. Longer texts are cut, with a note; the JSON report has them whole.
const MOST: usize = 6_000;

pub fn render(report: &Report, backing: &Backing) -> String {
    finished(&Page { report, backing }.to_string())
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    report: &'a Report,
    backing: &'a Backing,
}

/// A sentence or a list of findings, with evidence names marked and findings linked.
#[derive(Template)]
#[template(path = "text.html")]
struct Text<'a> {
    pieces: Vec<Piece<'a>>,
}

#[derive(Template)]
#[template(ext = "html", source = r#"<span class="chip s{{ step }}"><b>{{ score }}</b> {{ label }}</span>"#)]
struct Chip {
    step: usize,
    score: Score,
    label: &'static str,
}

/// How a time is known, with its field.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<span class="basis">{{ basis }}{% if !field.is_empty() %} <code>{{ field }}</code>{% endif %}</span>"#
)]
struct Basis<'a> {
    basis: &'static str,
    field: &'a str,
}

#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<pre>{{ shown }}{% if more > 0 %}<b class="cut">… {{ words::thousands(*more) }} more characters</b>{% endif %}</pre>"#
)]
struct Quoted {
    shown: String,
    more: u64,
}

/// Text with what a claim used marked.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"{% for part in parts %}{% if part.marked %}<mark>{{ part.text }}</mark>{% else %}{{ part.text }}{% endif %}{% endfor %}"#
)]
struct Marked<'a> {
    parts: &'a [Part],
}

/// A record with a link to its citation.
#[derive(Template)]
#[template(
    ext = "html",
    source = r##"{% if let Some(anchor) = anchor %}<a class="place" href="#{{ anchor }}">{{ place }}</a>{% else %}<span class="place">{{ place }}</span>{% endif %}"##
)]
struct Place {
    place: String,
    anchor: Option<String>,
}

/// The number of a Journal entry, linked if the report has the entry.
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
impl HtmlSafe for Marked<'_> {}
impl HtmlSafe for Place {}
impl HtmlSafe for Entry {}

impl<'a> Page<'a> {
    /// The CSS class for the colour of the verdict.
    const fn tone(&self) -> &'static str {
        match self.report.verdict {
            Verdict::TruePositive => "bad",
            Verdict::BenignPositive | Verdict::FalsePositive => "good",
            Verdict::Inconclusive => "open",
        }
    }

    const fn has_doubts(&self) -> bool {
        !(self.report.disagreements.is_empty() && self.report.guards.is_empty())
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

    /// Links the id of a finding at the start of a word.
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

    fn record(&self, found: &ReportFinding, cited: &ReportCitation) -> Option<record::Shown> {
        let Citation::Literal { quote, .. } = &cited.citation else { return None };
        let record = self.backing.record(&cited.citation)?;
        Some(record::shown(&record, &found.finding.draft.claim, quote))
    }

    fn marked<'t>(&self, parts: &'t [Part]) -> Marked<'t> {
        Marked { parts }
    }

    fn json(&self, text: &str) -> Quoted {
        let value: Option<serde_json::Value> = serde_json::from_str(text).ok();
        let pretty = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
        self.quoted(pretty.as_deref().unwrap_or(text))
    }

    fn place(&self, ids: &[FindingId], record: &RecordRef) -> Place {
        let mut among = self.report.findings.iter().filter(|f| ids.contains(&f.finding.id));
        Place { place: words::record(record), anchor: among.find_map(|found| citation(found, record)) }
    }

    /// Findings that may support the Timeline come first.
    fn findings(&self) -> Vec<&'a ReportFinding> {
        let (mut credible, others): (Vec<_>, Vec<_>) = self.report.findings.iter().partition(|f| words::credible(f));
        credible.extend(others);
        credible
    }

    fn credible(&self) -> usize {
        self.report.findings.iter().filter(|f| words::credible(f)).count()
    }

    fn events(&self, id: &FindingId) -> Vec<usize> {
        let events = (1..).zip(&self.report.timeline.events);
        events.filter(|(_, event)| event.findings.contains(id)).map(|(n, _)| n).collect()
    }
}

const fn in_id(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
}

fn citation(found: &ReportFinding, record: &RecordRef) -> Option<String> {
    let holds = |r: &RecordRef| r.file == record.file && r.line == record.line;
    let n = found.citations.iter().position(|c| c.holds && c.records.iter().any(holds))?;
    Some(format!("c-{}-{}", found.finding.id, n + 1))
}
