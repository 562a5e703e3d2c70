//! The conclusion of the analyst. It accuses if the evidence is rarely or never legitimate. It proposes a
//! dismissal only if the activity is explained and no serious finding contradicts that. Otherwise it answers
//! `inconclusive` and lists what a person should check. The Hub then applies its rules.

use std::collections::BTreeSet;

use casebook_protocol::{
    ActPart, Answer, Conclusion, DirectorView, EntryDraft, EntryKind, FindingId, Priority, Verdict, Weight,
};
use casebook_trust::claim::{FIRST_COMMAND, JUDGEMENT};

use super::memory::{Memory, Note};

const ABSENT: &str = "What the alert claims did not happen, and what did happen has an ordinary explanation.";

/// In one sentence: what led to the alerted activity and, if nothing of what the alert claims was recorded, what the
/// rule met instead.
fn story(view: &DirectorView) -> Option<String> {
    let events = view.timeline.iter().flat_map(|timeline| &timeline.events);
    let mut first = events.filter_map(|event| {
        let (told, _) = event.description.split_once(FIRST_COMMAND)?;
        let ids: Vec<&str> = event.findings.iter().take(3).map(FindingId::as_str).collect();
        Some(format!("{}, which led to the alerted process ({})", told.trim_end_matches(": "), ids.join(", ")))
    });
    let first = first.next_back();
    let rule = view.accounting.as_ref().and_then(|accounting| {
        let claim = accounting.claim.as_ref().filter(|claim| claim.found == 0 && !claim.watched_by.is_empty())?;
        let alerted = accounting.acts.iter().map(|one| &one.act).find(|act| act.part == ActPart::Alerted)?;
        let (sensors, kind) = (claim.watched_by.join(", "), claim.kind.name().replace('_', " "));
        Some(format!("rule met `{}`, but {sensors}, which records every {kind}, recorded none", alerted.what))
    });
    match (first, rule) {
        (Some(first), Some(rule)) => Some(format!("{first}; the {rule}. ")),
        (Some(first), None) => Some(format!("{first}. ")),
        (None, rule) => rule.map(|rule| format!("The {rule}. ")),
    }
}

pub(super) fn report(view: &DirectorView) -> (Vec<EntryDraft>, Answer) {
    let mut memory = Memory::of(view);
    memory.take_in(view.review.as_ref());
    let mut notes = memory.notes;
    notes.sort_by_key(|n| (std::cmp::Reverse(n.weight), !n.about_alert, n.finding.clone()));
    let (mut verdict, mut because) = judge(&notes);
    let claim = view.accounting.as_ref().and_then(|accounting| accounting.claim.as_ref());
    let absent = claim.is_some_and(|claim| claim.found == 0 && !claim.watched_by.is_empty());
    if verdict == Verdict::BenignPositive && absent {
        (verdict, because) = (Verdict::FalsePositive, ABSENT.to_owned());
    }
    if let (Verdict::Inconclusive, Some(reason)) = (verdict, &view.stop_reason) {
        because = format!("The investigation was stopped early ({reason}). {because}");
    }
    let against: Vec<&Note> = notes.iter().filter(|n| n.against && n.weight >= Weight::Moderate).collect();
    let explaining: Vec<&Note> = notes.iter().filter(|n| !n.against && n.about_alert).collect();
    let rests: Vec<&Note> = match verdict {
        Verdict::TruePositive => against.clone(),
        Verdict::BenignPositive | Verdict::FalsePositive => explaining.clone(),
        Verdict::Inconclusive => against.iter().chain(&explaining).copied().collect(),
    };
    let dismissed = matches!(verdict, Verdict::BenignPositive | Verdict::FalsePositive);
    let narrative = view.timeline.as_ref().map(|t| t.narrative.clone()).unwrap_or_default();
    let conclusion = Conclusion {
        verdict,
        summary: format!("{}{because} {narrative}", story(view).filter(|_| dismissed).unwrap_or_default())
            .trim()
            .to_owned(),
        root_cause: root_cause(verdict, &against, &explaining),
        actions: actions(verdict, &against),
        open_questions: open_questions(view, verdict),
        findings: rests.iter().map(|n| n.finding.clone()).take(40).collect(),
    };
    let entry =
        EntryDraft::new(EntryKind::Decision, Priority::Critical, format!("Conclude: {}. {because}", verdict.name()));
    (vec![entry], Answer::Report(conclusion))
}

fn techniques<'a>(notes: impl Iterator<Item = &'a Note>) -> BTreeSet<&'a str> {
    notes.map(|n| n.technique.split('.').next().unwrap_or_default()).filter(|t| *t != "-").collect()
}

fn ids(notes: &[&Note]) -> String {
    notes.iter().take(3).map(|n| n.finding.as_str()).collect::<Vec<_>>().join(", ")
}

/// The kind of behaviour, which the Expert puts at the end of a claim. Text in backquotes comes from the
/// evidence and is ignored. A claim that was cut has no kind.
fn kind(note: &Note) -> Option<&str> {
    let (_, kind) = note.claim.rsplit_once(": ")?;
    (!kind.contains(['`', '…'])).then_some(kind)
}

fn judge(notes: &[Note]) -> (Verdict, String) {
    let of = |weight: Weight| notes.iter().filter(move |n| n.against && n.weight == weight);
    let decisive: Vec<&Note> = of(Weight::Decisive).collect();
    let strong: Vec<&Note> = of(Weight::Strong).collect();
    let distinct = techniques(notes.iter().filter(|n| n.against && n.weight >= Weight::Moderate));
    let on_alert = notes.iter().any(|n| n.against && n.about_alert && n.weight >= Weight::Moderate);
    if !decisive.is_empty() {
        let because = format!("Behaviour was recorded that is practically never legitimate ({}).", ids(&decisive));
        return (Verdict::TruePositive, because);
    }
    // Judgements of other products are not records, so three kinds must agree.
    let records: Vec<&Note> = strong.iter().copied().filter(|n| !n.claim.starts_with(JUDGEMENT)).collect();
    let several = distinct.len() >= if records.is_empty() { 3 } else { 2 } && (on_alert || strong.len() >= 2);
    // A record and a count of one technique are as strong as two techniques.
    let on_it = |counted: bool| -> BTreeSet<&str> {
        let those = records.iter().filter(|n| n.about_alert && n.counted == counted && n.technique != "-");
        those.map(|n| n.technique.as_str()).collect()
    };
    let signs = !on_it(true).is_disjoint(&on_it(false));
    // The same holds for three findings with two kinds of behaviour.
    let kinds: BTreeSet<&str> = records.iter().filter_map(|n| kind(n)).collect();
    let often = records.len() >= 3 && kinds.len() >= 2 && records.iter().any(|n| n.about_alert);
    if !strong.is_empty() && (several || signs || often) {
        let because = format!(
            "Several kinds of behaviour that are rarely legitimate were recorded together around the alerted activity \
             ({}).",
            ids(&strong)
        );
        return (Verdict::TruePositive, because);
    }
    let grave = notes
        .iter()
        .any(|n| n.against && (n.weight >= Weight::Strong || (n.about_alert && n.weight >= Weight::Moderate)));
    let explained = notes.iter().filter(|n| !n.against && n.about_alert && n.weight >= Weight::Moderate);
    if !grave && explained.clone().count() > 0 {
        let absent = explained.clone().any(|n| n.absence);
        return if absent {
            (Verdict::FalsePositive, ABSENT.into())
        } else {
            (
                Verdict::BenignPositive,
                "The alerted activity has an ordinary explanation, and nothing serious was recorded with it.".into(),
            )
        };
    }
    let because = if grave {
        "Unusual behaviour was recorded, but none that settles the matter: a person must judge whether it was intended."
    } else {
        "Nothing in the evidence settles whether the alerted activity was harmful."
    };
    (Verdict::Inconclusive, because.into())
}

fn root_cause(verdict: Verdict, against: &[&Note], explaining: &[&Note]) -> String {
    let first =
        |notes: &[&Note]| notes.iter().find(|n| n.about_alert).or_else(|| notes.first()).map(|n| claim_with_id(n));
    match verdict {
        Verdict::TruePositive => first(against),
        Verdict::BenignPositive | Verdict::FalsePositive => earliest(explaining),
        Verdict::Inconclusive => None,
    }
    .unwrap_or_else(|| "Not established.".into())
}

/// The explanation with the earliest start: findings of an Expert are numbered in order of time.
fn earliest(explaining: &[&Note]) -> Option<String> {
    let number =
        |n: &Note| n.finding.as_str().rsplit('-').next().and_then(|n| n.parse::<u32>().ok()).unwrap_or(u32::MAX);
    let round = |n: &Note| n.finding.as_str().split('-').next().unwrap_or_default().to_owned();
    explaining.iter().min_by_key(|n| (round(n), number(n), n.finding.clone())).map(|n| claim_with_id(n))
}

fn claim_with_id(note: &Note) -> String {
    format!("{} ({})", note.claim, note.finding)
}

fn actions(verdict: Verdict, against: &[&Note]) -> Vec<String> {
    let mut actions: Vec<String> = match verdict {
        Verdict::TruePositive => vec![
            "Contain what the Timeline names: isolate the hosts, disable the accounts, withdraw their keys, block the addresses."
                .into(),
            "Keep volatile evidence (memory, sessions, cloud logs) before it is gone.".into(),
        ],
        Verdict::FalsePositive => vec![
            "Narrow the rule so that it tests for the operation itself and not for a name that goes with it.".into(),
        ],
        Verdict::BenignPositive => {
            vec!["Confirm with the owner of the activity, and record the exception with an end date.".into()]
        }
        Verdict::Inconclusive => {
            vec!["Have a person look at the open questions below before this alert is closed.".into()]
        }
    };
    actions.extend(against.iter().take(3).map(|n| format!("Look into {}: {}", n.finding, n.claim)));
    actions
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
    use super::*;

    fn note(number: u32, technique: &str, claim: &str, counted: bool) -> Note {
        Note {
            finding: FindingId::new(format!("r1-network-{number}")).unwrap(),
            against: true,
            about_alert: true,
            weight: Weight::Strong,
            technique: technique.into(),
            absence: false,
            counted,
            claim: claim.into(),
        }
    }

    #[test]
    fn a_record_and_a_count_of_one_technique_settle_it_and_two_records_of_it_do_not() {
        let record = note(1, "T1071.004", "DNS query: coded label", false);
        let count = note(2, "T1071.004", "222 look-ups: so many", true);
        let again = note(3, "T1071.004", "DNS query: of a type that tunnels use", false);
        let other = note(4, "T1046", "300 connections: searched through", true);
        let of = |notes: &[&Note]| judge(&notes.iter().map(|n| (*n).clone()).collect::<Vec<_>>()).0;
        assert_eq!(of(&[&record, &count]), Verdict::TruePositive);
        assert_eq!(of(&[&record, &again]), Verdict::Inconclusive);
        assert_eq!(of(&[&count]), Verdict::Inconclusive);
        let third = note(5, "T1071.004", "DNS query: of a type that tunnels use", false);
        assert_eq!(of(&[&record, &again, &third]), Verdict::TruePositive, "three findings of two kinds");
        assert_eq!(of(&[&third, &again, &third]), Verdict::Inconclusive, "all of one kind");
        assert_eq!(of(&[&record, &other]), Verdict::TruePositive, "two techniques");
    }

    #[test]
    fn judgements_of_other_products_settle_it_where_three_kinds_agree() {
        let alert = |number, technique| note(number, technique, &format!("{JUDGEMENT}Spray`: of high severity"), false);
        let (one, two, three) = (alert(1, "T1078"), alert(2, "T1110"), alert(3, "T1566"));
        assert_eq!(judge(&[one.clone(), two.clone()]).0, Verdict::Inconclusive);
        assert_eq!(judge(&[one, two, three]).0, Verdict::TruePositive);
        // Nobody makes a record a judgement by what he writes into it.
        let ran = |number, technique| note(number, technique, "`sh` started `echo Alert `: shell", false);
        assert_eq!(judge(&[ran(1, "T1078"), ran(2, "T1110")]).0, Verdict::TruePositive);
    }

    #[test]
    fn what_the_evidence_says_is_no_kind_of_behaviour() {
        let of = |claim: &str| kind(&note(1, "T1", claim, false)).map(str::to_owned);
        assert_eq!(of("Ran `a: b`: shell started").as_deref(), Some("shell started"));
        assert_eq!(of("Ran `a: b`"), None);
        assert_eq!(of("Ran `a`: shell sta…"), None);
    }
}
