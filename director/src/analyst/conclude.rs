//! The conclusion of the analyst. It accuses if the evidence is rarely or never legitimate. It proposes a
//! dismissal only if the activity is explained and no serious finding contradicts that. Otherwise it answers
//! `inconclusive` and lists what a person should check. The Hub then applies its rules.

use std::collections::BTreeSet;

use casebook_protocol::{
    ActPart, Answer, Claim, Conclusion, DirectorView, EntryDraft, EntryKind, Finding, FindingDraft, FindingId,
    FindingKind, Priority, Verdict, Weight,
};
use casebook_trust::claim::{FIRST_COMMAND, JUDGEMENT};

use super::memory::{points_to_an_attack, started, telling};

/// What the alert claims, if sensors would have recorded it and did not.
fn refuted(view: &DirectorView) -> Option<&Claim> {
    let claim = view.accounting.as_ref().and_then(|accounting| accounting.claim.as_ref());
    claim.filter(|claim| claim.found == 0 && !claim.watched_by.is_empty())
}

/// In one sentence: what led to the alerted activity and, if nothing of what the alert claims was recorded, what the
/// rule met instead.
fn story(view: &DirectorView) -> Option<String> {
    let events = view.timeline.iter().flat_map(|timeline| &timeline.events);
    let mut first = events.filter_map(|event| {
        let (told, _) = event.description.split_once(FIRST_COMMAND)?;
        let cited = ids(&event.findings);
        Some(format!("{}, which led to the alerted process ({cited})", told.trim_end_matches(": ")))
    });
    let rule = refuted(view).zip(view.accounting.as_ref()).and_then(|(claim, accounting)| {
        let alerted = accounting.acts.iter().map(|one| &one.act).find(|act| act.part == ActPart::Alerted)?;
        let (sensors, kind) = (claim.watched_by.join(", "), claim.kind.name().replace('_', " "));
        Some(format!("rule met `{}`, but {sensors}, which records every {kind}, recorded none", alerted.what))
    });
    match (first.next_back(), rule) {
        (Some(first), Some(rule)) => Some(format!("{first}; the {rule}. ")),
        (Some(first), None) => Some(format!("{first}. ")),
        (None, rule) => rule.map(|rule| format!("The {rule}. ")),
    }
}

pub(super) fn report(view: &DirectorView) -> (Vec<EntryDraft>, Answer) {
    let findings = telling(&view.credible);
    let (verdict, mut because) = judge(&findings, refuted(view).is_some());
    if let (Verdict::Inconclusive, Some(reason)) = (verdict, &view.stop_reason) {
        because = format!("The investigation was stopped early ({reason}). {because}");
    }
    let against: Vec<&Finding> = findings.iter().copied().filter(|f| points_to_an_attack(f)).collect();
    let explaining: Vec<&Finding> =
        findings.iter().copied().filter(|f| !points_to_an_attack(f) && f.draft.about_alert).collect();
    let first = against.iter().find(|f| f.draft.about_alert).or(against.first());
    let earliest = explaining.iter().min_by_key(|f| (f.round, started(f)));
    let (rests, cause, story) = match verdict {
        Verdict::TruePositive => (against.clone(), first, None),
        Verdict::BenignPositive | Verdict::FalsePositive => (explaining.clone(), earliest, story(view)),
        Verdict::Inconclusive => ([&*against, &explaining].concat(), None, None),
    };
    let story = story.unwrap_or_default();
    let narrative = view.timeline.as_ref().map_or("", |t| t.narrative.as_str());
    let conclusion = Conclusion {
        verdict,
        summary: format!("{story}{because} {narrative}").trim().to_owned(),
        root_cause: cause.map_or("Not established.".into(), |f| format!("{} ({})", f.draft.claim, f.id)),
        actions: actions(verdict, &against),
        open_questions: open_questions(view, verdict),
        findings: rests.iter().map(|f| f.id.clone()).take(40).collect(),
    };
    let decision = format!("Conclude: {}. {because}", verdict.name());
    (vec![EntryDraft::new(EntryKind::Decision, Priority::Critical, decision)], Answer::Report(conclusion))
}

/// The first three, as a text.
fn ids<'f>(findings: impl IntoIterator<Item = &'f FindingId>) -> String {
    findings.into_iter().take(3).map(FindingId::as_str).collect::<Vec<_>>().join(", ")
}

/// The kind of behaviour, which the Expert puts at the end of a claim. Text in backquotes comes from the evidence and is
/// ignored.
fn kind(draft: &FindingDraft) -> Option<&str> {
    let (_, kind) = draft.claim.rsplit_once(": ")?;
    (!kind.contains(['`', '…'])).then_some(kind)
}

/// By [`telling`] findings. `refuted`: what the alert claims was not recorded.
fn judge(findings: &[&Finding], refuted: bool) -> (Verdict, String) {
    let all = |attack: bool| {
        let all = findings.iter().filter(move |f| points_to_an_attack(f) == attack);
        all.map(|f| (&f.id, &f.draft))
    };
    let of = |weight: Weight| all(true).filter(move |(_, draft)| draft.weight == weight);
    if of(Weight::Decisive).count() > 0 {
        let ids = ids(of(Weight::Decisive).map(|(id, _)| id));
        return (
            Verdict::TruePositive,
            format!("Behaviour was recorded that is practically never legitimate ({ids})."),
        );
    }
    let strong: Vec<&FindingDraft> = of(Weight::Strong).map(|(_, draft)| draft).collect();
    let techniques: BTreeSet<&str> =
        all(true).filter_map(|(_, draft)| draft.technique.as_deref()?.split('.').next()).collect();
    let on_alert = all(true).any(|(_, draft)| draft.about_alert);
    // Judgements of other products are not records, so three kinds must agree.
    let records: Vec<&FindingDraft> = strong.iter().copied().filter(|d| !d.claim.starts_with(JUDGEMENT)).collect();
    let several = techniques.len() >= if records.is_empty() { 3 } else { 2 } && (on_alert || strong.len() >= 2);
    // A record and a count of one technique are as strong as two techniques.
    let on_it = |counted: bool| -> BTreeSet<&str> {
        let those = records.iter().filter(|d| d.about_alert && (d.kind == FindingKind::Aggregate) == counted);
        those.filter_map(|d| d.technique.as_deref()).collect()
    };
    let signs = !on_it(true).is_disjoint(&on_it(false));
    // The same holds for three findings with two kinds of behaviour.
    let kinds: BTreeSet<&str> = records.iter().filter_map(|d| kind(d)).collect();
    let often = records.len() >= 3 && kinds.len() >= 2 && records.iter().any(|d| d.about_alert);
    if !strong.is_empty() && (several || signs || often) {
        let because = format!(
            "Several kinds of behaviour that are rarely legitimate were recorded together around the alerted activity \
             ({}).",
            ids(of(Weight::Strong).map(|(id, _)| id))
        );
        return (Verdict::TruePositive, because);
    }
    let grave = on_alert || !strong.is_empty();
    let mut explained = all(false).filter(|(_, draft)| draft.about_alert).peekable();
    let (verdict, because) = match (grave, explained.peek().is_some()) {
        (true, _) => (
            Verdict::Inconclusive,
            "Unusual behaviour was recorded, but none that settles the matter: a person must judge whether it was intended.",
        ),
        (false, false) => {
            (Verdict::Inconclusive, "Nothing in the evidence settles whether the alerted activity was harmful.")
        }
        (false, true) if refuted || explained.any(|(_, draft)| draft.kind == FindingKind::Absence) => (
            Verdict::FalsePositive,
            "What the alert claims did not happen, and what did happen has an ordinary explanation.",
        ),
        (false, true) => (
            Verdict::BenignPositive,
            "The alerted activity has an ordinary explanation, and nothing serious was recorded with it.",
        ),
    };
    (verdict, because.to_owned())
}

fn actions(verdict: Verdict, against: &[&Finding]) -> Vec<String> {
    let first: &[&str] = match verdict {
        Verdict::TruePositive => &[
            "Contain what the Timeline names: isolate the hosts, disable the accounts, withdraw their keys, block the addresses.",
            "Keep volatile evidence (memory, sessions, cloud logs) before it is gone.",
        ],
        Verdict::FalsePositive => {
            &["Narrow the rule so that it tests for the operation itself and not for a name that goes with it."]
        }
        Verdict::BenignPositive => {
            &["Confirm with the owner of the activity, and record the exception with an end date."]
        }
        Verdict::Inconclusive => &["Have a person look at the open questions below before this alert is closed."],
    };
    let looks = against.iter().take(3).map(|f| format!("Look into {}: {}", f.id, f.draft.claim));
    first.iter().map(|text| (*text).to_owned()).chain(looks).collect()
}

fn open_questions(view: &DirectorView, verdict: Verdict) -> Vec<String> {
    let mut open: Vec<String> = view.timeline.iter().flat_map(|t| &t.gaps).map(|g| g.description.clone()).collect();
    if verdict == Verdict::Inconclusive {
        open.push("Was the activity expected by the account's owner? No log can answer this.".into());
    }
    let looks = view.review.iter().flat_map(|r| &r.findings).filter_map(|f| f.finding.draft.look_next.clone());
    let mut seen: BTreeSet<String> = open.iter().cloned().collect();
    open.extend(looks.filter(|l| seen.insert(l.clone())).take(5));
    open
}

#[cfg(test)]
mod tests {
    use casebook_protocol::{Bearing, Domain};

    use super::*;

    fn found(number: usize, technique: &str, claim: &str, kind: FindingKind) -> Finding {
        let domain = Domain::new("network").unwrap();
        let draft = FindingDraft {
            bearing: Bearing::Incriminating,
            weight: Weight::Strong,
            technique: Some(technique.into()),
            ..FindingDraft::neutral(kind, claim.into())
        };
        Finding { id: FindingId::of(1, &domain, number), domain, round: 1, draft }
    }

    fn judged(findings: &[&Finding]) -> Verdict {
        judge(findings, false).0
    }

    #[test]
    fn a_record_and_a_count_of_one_technique_settle_it_and_two_records_of_it_do_not() {
        let of_a_record = |number, claim| found(number, "T1071.004", claim, FindingKind::Occurrence);
        let record = of_a_record(1, "DNS query: coded label");
        let count = found(2, "T1071.004", "222 look-ups: so many", FindingKind::Aggregate);
        let again = of_a_record(3, "DNS query: of a type that tunnels use");
        let other = found(4, "T1046", "300 connections: searched through", FindingKind::Aggregate);
        assert_eq!(judged(&[&record, &count]), Verdict::TruePositive);
        assert_eq!(judged(&[&record, &again]), Verdict::Inconclusive);
        assert_eq!(judged(&[&count]), Verdict::Inconclusive);
        let third = of_a_record(5, "DNS query: of a type that tunnels use");
        assert_eq!(judged(&[&record, &again, &third]), Verdict::TruePositive, "three findings of two kinds");
        assert_eq!(judged(&[&third, &again, &third]), Verdict::Inconclusive, "all of one kind");
        assert_eq!(judged(&[&record, &other]), Verdict::TruePositive, "two techniques");
    }

    #[test]
    fn judgements_of_other_products_settle_it_where_three_kinds_agree() {
        let claim = format!("{JUDGEMENT}Spray`: of high severity");
        let alert = |number, technique| found(number, technique, &claim, FindingKind::Occurrence);
        let (one, two, three) = (alert(1, "T1078"), alert(2, "T1110"), alert(3, "T1566"));
        assert_eq!(judged(&[&one, &two]), Verdict::Inconclusive);
        assert_eq!(judged(&[&one, &two, &three]), Verdict::TruePositive);
        // Nobody makes a record a judgement by what he writes into it.
        let ran =
            |number, technique| found(number, technique, "`sh` started `echo Alert `: shell", FindingKind::Occurrence);
        assert_eq!(judged(&[&ran(1, "T1078"), &ran(2, "T1110")]), Verdict::TruePositive);
    }

    #[test]
    fn what_the_evidence_says_is_no_kind_of_behaviour() {
        let of = |claim: &str| kind(&found(1, "T1", claim, FindingKind::Occurrence).draft).map(str::to_owned);
        assert_eq!(of("Ran `a: b`: shell started").as_deref(), Some("shell started"));
        assert_eq!(of("Ran `a: b`"), None);
        assert_eq!(of("Ran `a`: shell sta…"), None);
    }
}
