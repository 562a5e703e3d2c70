use std::collections::{BTreeMap, BTreeSet};

use super::tie::{shows, tied};
use super::{TIMELINE_THRESHOLD, credible, guard};
use crate::account::{self, urls_are_trusted};
use crate::claim::{self, has_word};
use casebook_protocol::{
    Acts, Bearing, CheckedFinding, Citation, Claim, Conclusion, FindingId, FindingKind, Guard, RecordRef, Reviewed,
    Rule, Ruling, SourceInfo, Verdict, Weight, one_line, one_sentence,
};

#[derive(Debug, Clone, Copy)]
pub struct Docket<'a> {
    pub known: &'a BTreeMap<FindingId, Reviewed>,
    pub submitted: &'a [&'a CheckedFinding],
    pub sources: &'a BTreeMap<String, SourceInfo>,
    pub alert: &'a str,
    /// The acts that a dismissal must account for. None if no Expert listed them.
    pub acts: Option<&'a Acts>,
    /// The records of the queries whose number a finding cites.
    pub rows: &'a BTreeMap<FindingId, Vec<RecordRef>>,
    /// Tasks that failed, as a reader of the report knows them.
    pub failed: &'a [String],
    /// Findings of the built-in analyst. No text in the evidence can influence them.
    pub by_code: &'a BTreeSet<FindingId>,
}

/// The verdict rule. It is asymmetric. One credible incriminating finding is enough to escalate. A dismissal
/// needs:
/// - two independent, checked sources that the subject does not control, quoted from fields that it cannot choose
/// - no valid strong finding against it, at any score
/// - no text in the evidence that addresses the investigator
/// - an explanation of each act
/// - no failed task
///
/// An accusation rests on what happened to a process, account, host, address or record of the alert. An absence is not a
/// ground. Whether a record of the claimed act exists decides between the two dismissals.
pub fn verdict(proposed: Verdict, docket: &Docket<'_>) -> (Ruling, Vec<Guard>) {
    let credible: Vec<&Reviewed> = docket.known.values().filter(|f| credible(f)).collect();
    let accounting = docket.acts.map(|acts| account::account(acts, docket.known, docket.rows));
    let mut ruling = Ruling { verdict: proposed, proposed, grounds: Vec::new(), missing: Vec::new(), accounting };
    let rule = match proposed {
        Verdict::Inconclusive => return (ruling, Vec::new()),
        Verdict::TruePositive => {
            let grave: Vec<&Reviewed> = credible.iter().filter(|f| accuses(f)).copied().collect();
            let tied: Vec<&Reviewed> = tied(&credible, docket);
            let grounded: Vec<&Reviewed> =
                grave.iter().filter(|f| tied.iter().any(|t| t.finding.id == f.finding.id)).copied().collect();
            ruling.grounds = grounds(&grounded);
            if grave.is_empty() {
                ruling.missing.push(format!(
                    "a finding of {TIMELINE_THRESHOLD:.2} or more that points to an attack and is not an absence"
                ));
            } else if grounded.is_empty() {
                ruling.missing.push(format!(
                    "a process, account, host, address or record that {} shares with the alert",
                    listed(grave.iter().map(|f| &f.finding.id))
                ));
            }
            Rule::AccusationUnsupported
        }
        Verdict::BenignPositive | Verdict::FalsePositive => {
            let doubts = dismissal(&credible, docket, &mut ruling);
            ruling.missing.extend(against(&credible, docket));
            ruling.missing.extend(addressed(docket));
            ruling.missing.extend(account::doubts(ruling.accounting.as_ref()));
            ruling.missing.extend(docket.failed.iter().map(|task| format!("the answer of a task that failed: {task}")));
            if !ruling.missing.is_empty() {
                ruling.missing.extend(doubts.reasons());
            }
            Rule::DismissalUnsupported
        }
    };
    if ruling.missing.is_empty() {
        let guards = by_claim(&mut ruling).into_iter().collect();
        return (ruling, guards);
    }
    ruling.verdict = Verdict::Inconclusive;
    let effect = format!("{} becomes inconclusive: missing {}", proposed.name(), ruling.missing.join("; "));
    (ruling, vec![guard(rule, "verdict", effect)])
}

/// A dismissal is a false positive if the claimed act did not happen, and benign if it did.
fn by_claim(ruling: &mut Ruling) -> Option<Guard> {
    let claim = ruling.accounting.as_ref()?.claim.as_ref().filter(|_| ruling.verdict.dismisses())?;
    let right = if claim.found > 0 { Verdict::BenignPositive } else { Verdict::FalsePositive };
    ruling.grounds.push(what_happened(claim));
    if right == ruling.verdict {
        return None;
    }
    let effect = format!("{} becomes {}: {}", ruling.verdict.name(), right.name(), what_happened(claim));
    ruling.verdict = right;
    Some(guard(Rule::VerdictByClaim, "verdict", effect))
}

fn what_happened(claim: &Claim) -> String {
    let kind = claim.kind.name();
    match claim.found {
        0 => format!(
            "what the alert claims ({kind}) did not happen: {} records this kind, covered host and time, and has no such record",
            listed(claim.watched_by.iter())
        ),
        1 => format!("what the alert claims ({kind}) happened: 1 record"),
        found => format!("what the alert claims ({kind}) happened: {found} records"),
    }
}

fn accuses(finding: &Reviewed) -> bool {
    let draft = &finding.finding.draft;
    let seen = |citation: &Citation| match citation {
        Citation::Literal { .. } | Citation::Aggregate { .. } => true,
        Citation::Count { value, .. } => *value > 0,
        Citation::Absence { .. } => false,
    };
    draft.bearing == Bearing::Incriminating
        && draft.weight >= Weight::Moderate
        && draft.kind != FindingKind::Absence
        && draft.citations.iter().any(seen)
}

/// Marks the conclusion, so that a reader of the summary alone does not act on a rejected verdict.
pub fn not_accepted(conclusion: &mut Conclusion, ruling: &Ruling) {
    if ruling.verdict == ruling.proposed || ruling.verdict.dismisses() {
        return;
    }
    let proposed = ruling.proposed.name().replace('_', " ");
    conclusion.summary = format!("Proposed as {proposed}, and not accepted. {}", conclusion.summary);
    for action in &mut conclusion.actions {
        *action = format!("Once that is settled: {action}");
    }
    let first = "Let a person check what is missing before you act on this alert or close it.";
    conclusion.actions.insert(0, first.into());
}

/// The claims of the strongest findings, and the number of others.
fn grounds(grave: &[&Reviewed]) -> Vec<String> {
    let mut sorted: Vec<&&Reviewed> = grave.iter().collect();
    sorted.sort_by(|a, b| {
        let key = |f: &Reviewed| (f.finding.draft.weight, f.finding.draft.about_alert);
        key(b).cmp(&key(a)).then(b.score.get().total_cmp(&a.score.get())).then(a.finding.id.cmp(&b.finding.id))
    });
    let mut reasons: Vec<String> = sorted
        .iter()
        .take(LISTED_MAX)
        .map(|f| format!("{} ({}): {}", f.finding.id, f.score, one_sentence(&f.finding.draft.claim, 240)))
        .collect();
    if sorted.len() > LISTED_MAX {
        reasons.push(format!("and {} more findings that point to an attack", sorted.len() - LISTED_MAX));
    }
    reasons
}

#[derive(Debug, Default)]
struct Doubts<'a> {
    controlled: BTreeSet<&'a str>,
    unknown: BTreeSet<&'a str>,
    /// Findings with the quoted fields that the recorded party chose.
    chosen: BTreeMap<&'a FindingId, BTreeSet<&'a str>>,
    /// Findings that cite a number or an absence.
    counted: BTreeSet<&'a FindingId>,
    unrelated: BTreeSet<&'a FindingId>,
    /// Quotations of requests to addresses that no configuration trusts.
    fetched: BTreeSet<&'a str>,
}

/// The independent sources that explain the activity, and the reasons why others do not count.
fn dismissal<'a>(credible: &[&'a Reviewed], docket: &Docket<'a>, ruling: &mut Ruling) -> Doubts<'a> {
    let mut independent: BTreeMap<&str, &FindingId> = BTreeMap::new();
    let mut doubts = Doubts::default();
    let alert = docket.alert.to_lowercase();
    for finding in credible {
        let (id, draft) = (&finding.finding.id, &finding.finding.draft);
        if draft.bearing != Bearing::Exonerating || !draft.about_alert {
            continue;
        }
        let by_code = docket.by_code.contains(id);
        if docket.acts.is_some_and(|acts| !shows(finding, acts)) || !by_code && !names_some_of(finding, &alert) {
            doubts.unrelated.insert(id);
            continue;
        }
        for (citation, check) in draft.citations.iter().zip(&finding.checked.citations) {
            if !by_code && !matches!(citation, Citation::Literal { .. }) {
                doubts.counted.insert(id);
                continue;
            }
            if let Some(field) = check.chosen.as_deref().filter(|_| !by_code) {
                doubts.chosen.entry(id).or_default().insert(field);
                continue;
            }
            if let Some(url) = untrusted(citation, docket.acts) {
                doubts.fetched.insert(url);
                continue;
            }
            for source in check.sources.iter().map(String::as_str) {
                match docket.sources.get(source) {
                    Some(info) if !info.on_subject_host => {
                        independent.entry(&info.sensor).or_insert(id);
                    }
                    Some(_) => {
                        doubts.controlled.insert(source);
                    }
                    // Its writer is unknown.
                    None => {
                        doubts.unknown.insert(source);
                    }
                }
            }
        }
    }
    ruling.grounds = independent
        .iter()
        .map(|(sensor, id)| {
            format!("{id} explains the alerted activity from {sensor}, which its subject does not control")
        })
        .collect();
    if independent.len() < 2 {
        ruling.missing.push(format!(
            "two independent checked sources that the alert's subject does not control and that explain the activity: there {}",
            match independent.len() {
                0 => "is none".to_owned(),
                n => format!("is {n} ({})", independent.keys().copied().collect::<Vec<_>>().join(", ")),
            }
        ));
    }
    doubts
}

/// At most this many findings or fields are listed for one reason.
const LISTED_MAX: usize = 5;

fn listed<T: std::fmt::Display>(items: impl ExactSizeIterator<Item = T>) -> String {
    let more = items.len().saturating_sub(LISTED_MAX);
    let mut text = items.take(LISTED_MAX).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

impl Doubts<'_> {
    fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if !self.controlled.is_empty() {
            reasons.push(format!(
                "{} also explain it, but are written on the subject's own host and so prove nothing alone",
                listed(self.controlled.iter())
            ));
        }
        if !self.unknown.is_empty() {
            reasons.push(format!(
                "{} also explain it, but it is unknown what wrote them, so they prove nothing alone",
                listed(self.unknown.iter().map(|source| one_line(source, 80)).collect::<Vec<_>>().into_iter())
            ));
        }
        let mut by_field: BTreeMap<&str, BTreeSet<&FindingId>> = BTreeMap::new();
        for (id, fields) in &self.chosen {
            for field in fields {
                by_field.entry(field).or_default().insert(id);
            }
        }
        for (field, ids) in by_field {
            reasons.push(format!(
                "a quotation that an attacker could not have written: {} quotes `{}`, whose text the recorded party chooses",
                listed(ids.iter()),
                one_line(&field.replace('`', "'"), 80)
            ));
        }
        if !self.counted.is_empty() {
            reasons.push(format!(
                "a record: {} rests on a number or on nothing found, which shows only what was searched for",
                listed(self.counted.iter())
            ));
        }
        if !self.unrelated.is_empty() {
            reasons.push(format!(
                "a tie to the alert: {} shows no id, path, hash or package of the alerted occurrence or its cause",
                listed(self.unrelated.iter())
            ));
        }
        if !self.fetched.is_empty() {
            reasons.push(format!(
                "a package source that the configuration trusts: {}",
                listed(self.fetched.iter().map(|quote| one_line(quote, 120)).collect::<Vec<_>>().into_iter())
            ));
        }
        reasons
    }
}

/// The quotation, if it has an address that the configuration does not trust.
fn untrusted<'c>(citation: &'c Citation, acts: Option<&Acts>) -> Option<&'c str> {
    let Citation::Literal { quote, .. } = citation else { return None };
    let trusted = acts.map(|acts| &acts.trusted[..]).unwrap_or_default();
    (!urls_are_trusted(quote, trusted)).then_some(quote.as_str())
}

/// True if the finding and the alert share an entity or a name in `backquotes`. The check has found both in the
/// evidence.
fn names_some_of(finding: &Reviewed, alert: &str) -> bool {
    let draft = &finding.finding.draft;
    let names = claim::names(&draft.claim).chain(draft.entities.iter().map(|e| e.value.as_str()));
    names.map(str::trim).filter(|n| n.chars().count() >= 3).any(|n| has_word(alert, &n.to_lowercase()))
}

/// Findings that point to an attack and are not explained. The Critic may remove a doubt about unusual activity.
/// A strong finding with valid citations stays for a person, because the text of an attacker may have persuaded
/// the Critic.
fn against(credible: &[&Reviewed], docket: &Docket<'_>) -> Vec<String> {
    let incriminates = |f: &casebook_protocol::Finding| f.draft.bearing == Bearing::Incriminating;
    let mut reasons: BTreeMap<&FindingId, String> = BTreeMap::new();
    for f in credible.iter().filter(|f| incriminates(&f.finding)) {
        let draft = &f.finding.draft;
        if draft.weight >= Weight::Strong || (draft.about_alert && draft.weight >= Weight::Moderate) {
            let id = &f.finding.id;
            reasons.insert(id, format!("an innocent explanation of {id} ({}), which points to an attack", f.score));
        }
    }
    for f in docket.submitted.iter().filter(|f| incriminates(&f.finding) && f.checked.valid()) {
        let id = &f.finding.id;
        if f.finding.draft.weight >= Weight::Strong && f.finding.draft.kind != FindingKind::Instruction {
            reasons.entry(id).or_insert_with(|| {
                let scored = docket.known.get(id).map_or_else(
                    || "was never reviewed".to_owned(),
                    |k| format!("was scored {} by the Critic", k.score),
                );
                format!(
                    "a person's look at {id}, which points strongly to an attack, has valid citations, and {scored}"
                )
            });
        }
    }
    reasons.into_values().collect()
}

/// If text in the evidence addresses the investigator, its author may want a dismissal, so a person must decide.
fn addressed(docket: &Docket<'_>) -> Option<String> {
    let raised: Vec<&FindingId> = docket
        .submitted
        .iter()
        .filter(|f| f.finding.draft.kind == FindingKind::Instruction && f.checked.citations.iter().any(|c| c.holds))
        .map(|f| &f.finding.id)
        .collect();
    (!raised.is_empty())
        .then(|| format!("a person's look at {}: text in the evidence addresses the analyst", listed(raised.iter())))
}
