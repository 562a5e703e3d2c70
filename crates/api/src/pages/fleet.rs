//! The list of all investigations.

use casebook_index::{Brief, Sort, Status, Wanted};
use casebook_protocol::{Severity, Verdict};
use casebook_report::words;
use jiff::civil::Date;
use maud::{Markup, html};
use serde::Deserialize;

use super::frame::{Frame, Live};
use super::icon::Icon;
use super::parts;
use crate::cases::Listed;
use crate::chart::bars::{self, Bar};
use crate::model::row::{Row, Standing};

/// Cases on one page.
pub const PAGE: u32 = 50;
/// Cases that the numbers and the chart count.
pub const NEWEST: u32 = 1_000;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Filter {
    pub status: String,
    pub severity: String,
    pub verdict: String,
    pub q: String,
    /// The cursor of the page before.
    pub after: String,
}

impl Filter {
    /// # Errors
    /// The name of a value that does not exist.
    pub fn wanted(&self, sort: Sort, limit: u32) -> Result<Wanted, &'static str> {
        fn of<T: Copy>(all: &[T], name: fn(T) -> &'static str, text: &str) -> Option<Vec<T>> {
            if text.is_empty() {
                return Some(Vec::new());
            }
            all.iter().find(|one| name(**one) == text).map(|one| vec![*one])
        }
        let text = self.q.trim();
        Ok(Wanted {
            statuses: of(&Status::ALL, Status::name, &self.status).ok_or("status")?,
            severities: of(&Severity::ALL, Severity::name, &self.severity).ok_or("severity")?,
            verdicts: of(&Verdict::ALL, Verdict::name, &self.verdict).ok_or("verdict")?,
            search: (!text.is_empty()).then(|| text.to_owned()),
            sort,
            limit,
            cursor: (!self.after.is_empty()).then(|| self.after.clone()),
            ..Wanted::default()
        })
    }

    /// The query of this filter with another status.
    fn with(&self, status: &str) -> String {
        self.query(status, "")
    }

    fn query(&self, status: &str, after: &str) -> String {
        let pairs = [
            ("status", status),
            ("severity", &self.severity),
            ("verdict", &self.verdict),
            ("q", &self.q),
            ("after", after),
        ];
        let set =
            pairs.iter().filter(|(_, value)| !value.is_empty()).map(|(key, value)| format!("{key}={}", encoded(value)));
        format!("/?{}", set.collect::<Vec<_>>().join("&"))
    }

    fn is_set(&self) -> bool {
        ![&self.status, &self.severity, &self.verdict, &self.q].into_iter().all(String::is_empty)
    }
}

/// A text as part of a query.
#[must_use]
pub fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The numbers and the chart count the newest cases.
#[must_use]
pub fn page(frame: &Frame, newest: &[Brief], listed: &Listed, all: u64, filter: &Filter) -> String {
    let shown = &listed.rows;
    let counted = newest.len() as u64;
    let body = html! {
        div.top {
            div { h1 { "Investigations" } p.facts { (words::count(all, "case")) @if counted < all { ", numbers of the newest " (counted) } } }
            @if frame.investigates { a.btn.main href="/launch" { (Icon::Launch.show()) "Investigate an alert" } }
        }
        div #tiles data-part { (tiles(frame, newest, filter)) (severities(newest)) }
        @if let Some(days) = days(frame, newest) { section.card aria-labelledby="night" data-part #days { (days) } }
        section.stack aria-label="Cases" {
            (controls(filter))
            div.news { button.main #news type="button" hidden { "Show new cases" } }
            div.card #cases data-rows {
                @if shown.is_empty() { (none(frame, filter)) } @else { ul.list { @for row in shown { (line(frame, row)) } } }
            }
            @if !filter.after.is_empty() || listed.next.is_some() {
                nav.pages aria-label="Pages" {
                    @if filter.after.is_empty() { span {} } @else { a.btn href=(filter.with(&filter.status)) { (Icon::Back.show()) "First page" } }
                    @if let Some(next) = &listed.next { a.btn href=(filter.query(&filter.status, next)) { "More" (Icon::Next.show()) } }
                }
            }
        }
    };
    frame.page("Investigations", "/", Live::All, &body)
}

fn tiles(frame: &Frame, newest: &[Brief], filter: &Filter) -> Markup {
    let standing = |wanted: Standing| newest.iter().filter(|one| Standing::of(one, frame.now) == wanted).count();
    let verdict = |wanted: Verdict| newest.iter().filter(|one| one.verdict == Some(wanted)).count();
    let tile = |count: usize, name: &str, icon: Icon, tone: &str, href: &str, on: bool| {
        let tone = if count > 0 { tone } else { "ts" };
        html! {
            a.card.tile href=(href) aria-current=[on.then_some("true")] { b { (count) } span { span.(tone) { (icon.show()) } (name) } }
        }
    };
    let by_status = |name: &str| (filter.with(name), filter.status == name);
    let by_verdict = |wanted: Verdict| (format!("/?verdict={}", wanted.name()), filter.verdict == wanted.name());
    let (running, on_running) = by_status("open");
    let (stuck, on_stuck) = by_status("quiet");
    let (attack, on_attack) = by_verdict(Verdict::TruePositive);
    let (unclear, on_unclear) = by_verdict(Verdict::Inconclusive);
    let dismissed = verdict(Verdict::BenignPositive) + verdict(Verdict::FalsePositive);
    html! {
        div.tiles {
            (tile(verdict(Verdict::TruePositive), "True positive", Icon::Flame, "tb", &attack, on_attack))
            (tile(verdict(Verdict::Inconclusive), "Inconclusive: needs a person", Icon::Question, "to", &unclear, on_unclear))
            (tile(standing(Standing::Quiet) + standing(Standing::NotInvestigated) + standing(Standing::Broken), "Stuck or not intact", Icon::Pause, "to", &stuck, on_stuck))
            (tile(standing(Standing::Running), "Running", Icon::Spinner, "tc", &running, on_running))
            (tile(dismissed, "Benign or false", Icon::Shield, "tg", &filter.with("closed"), filter.status == "closed"))
        }
    }
}

/// How many of each severity.
fn severities(newest: &[Brief]) -> Markup {
    let number = |wanted| newest.iter().filter(|one| one.severity == Some(wanted)).count();
    let counts = Severity::ALL.iter().rev().map(|one| (*one, number(*one))).filter(|(_, n)| *n > 0);
    html! {
        @if !newest.is_empty() { p.facts { "By severity:" @for (one, n) in counts {
            a href={ "/?severity=" (one.name()) } { (parts::severity_look(one).0) " " b { (n) } }
        } } }
    }
}

const TONES: [&str; 4] = ["tg", "to", "tb", "tc"];

/// Cases by day of opening, the last two weeks with cases; none for a single day.
fn days(frame: &Frame, newest: &[Brief]) -> Option<Markup> {
    let mut days: std::collections::BTreeMap<Date, [f64; 4]> = std::collections::BTreeMap::new();
    for one in newest {
        let Some(opened) = one.opened else { continue };
        let place = match one.verdict {
            Some(Verdict::BenignPositive | Verdict::FalsePositive) => 0,
            Some(Verdict::Inconclusive) => 1,
            Some(Verdict::TruePositive) => 2,
            None => 3,
        };
        if let Some(count) = days.entry(frame.zone.date(opened)).or_default().get_mut(place) {
            *count += 1.0;
        }
    }
    let names = ["benign or false", "inconclusive", "true positive", "open"];
    if days.len() < 2 {
        return None;
    }
    let recent = days.len().saturating_sub(14);
    let chart: Vec<Bar> = days
        .into_iter()
        .skip(recent)
        .map(|(day, counts)| {
            let shown: Vec<String> =
                names.iter().zip(counts).filter(|(_, n)| *n > 0.0).map(|(name, n)| format!("{n} {name}")).collect();
            let name = day.strftime("%m-%d").to_string();
            Bar { name, values: counts.to_vec(), label: format!("{day}: {}", shown.join(", ")), href: None }
        })
        .collect();
    Some(html! {
        header { h2 #night { "Cases by day" } div.legend { @for (name, tone) in names.iter().zip(TONES) { span.(tone) { i {} b { (name) } } } } }
        div.pad { (bars::bars("Cases by day and verdict", bars::WHOLE, &chart, &TONES, &|n| format!("{n:.0}"))) }
    })
}

fn controls(filter: &Filter) -> Markup {
    let choice = |name: &str, title: &str, chosen: &str, values: &[(&str, &str)]| {
        html! {
            select name=(name) aria-label=(title) {
                option value="" { (title) ": all" }
                @for (value, word) in values { option value=(value) selected[*value == chosen] { (word) } }
            }
        }
    };
    let severities: Vec<(&str, &str)> =
        Severity::ALL.iter().rev().map(|one| (one.name(), parts::severity_look(*one).0)).collect();
    let verdicts: Vec<(&str, &str)> = Verdict::ALL.iter().map(|one| (one.name(), words::verdict(*one))).collect();
    let states = [("open", "Open"), ("quiet", "Stuck"), ("closed", "Closed"), ("broken", "Not intact")];
    html! {
        form.filter method="get" action="/" role="search" {
            input type="search" name="q" value=(filter.q) placeholder="Search title, host, user, alert, id" aria-label="Search cases" data-key="/";
            (choice("status", "State", &filter.status, &states))
            (choice("severity", "Severity", &filter.severity, &severities))
            (choice("verdict", "Verdict", &filter.verdict, &verdicts))
            button { "Filter" }
            @if filter.is_set() { a.btn href="/" { "Clear" } }
        }
    }
}

fn none(frame: &Frame, filter: &Filter) -> Markup {
    if filter.is_set() {
        return parts::empty(Icon::Search, "No case matches", "Change the search, or clear the filter.");
    }
    let how = if frame.investigates {
        "Paste an alert under Launch, and watch the team investigate it."
    } else {
        "Run `casebook demo --serve` for an example, start `casebook serve` with --evidence DIR, or send an alert to a team with `casebook alert`."
    };
    parts::empty(Icon::Book, "No investigations yet", how)
}

fn line(frame: &Frame, row: &Row) -> Markup {
    let (word, tone, icon) = row.severity.map_or(("Unknown severity", "none", Icon::Question), parts::severity_look);
    html! {
        li #{ "c-" (row.id) } {
            a.case href={ "/i/" (row.id) } {
                span.sev.(tone) title=(word) { (icon.show()) span.sr { (word) } }
                div {
                    div.name { (row.title) }
                    div.meta {
                        span { (word) }
                        @if let Some(host) = &row.host { span { (Icon::Host.show()) " " (host) } }
                        @if let Some(user) = &row.user { span { (Icon::User.show()) " " (user) } }
                        span { (words::count(row.findings as u64, "finding")) }
                        @if let Some(trouble) = &row.trouble { span.no { (trouble) } }
                    }
                }
                div { (parts::standing(row, frame.now)) }
                div { @if let Some(score) = row.score { (parts::score(score, "")) } @else { span.soft.small { "no Timeline yet" } } }
                div.right.soft.small {
                    @if let Some(opened) = row.opened { (parts::ago(frame, opened)) }
                    @if row.usage.cost_micros > 0 { div.num { (words::money(row.usage.cost_micros)) } }
                }
            }
        }
    }
}
