//! The second chance: findings that code would cap for their form go back to the Expert once.

use std::collections::BTreeSet;
use std::fmt::Write;

use casebook_agent::reasoner::Done;
use casebook_protocol::{FindingDraft, one_line};
use casebook_trust::Exhibits;
use casebook_trust::rule::CAP_UNSUPPORTED;

use super::read::Taken;

/// Characters of a claim, and of the reasons for one finding.
const CLAIM: usize = 120;
const REASONS: usize = 900;

/// The results that the findings cite. Code does not repeat the queries before the answer counts.
fn exhibits<'f>(findings: impl Iterator<Item = &'f FindingDraft>, done: &[Done]) -> Exhibits {
    let cited: BTreeSet<_> = findings.flat_map(|f| &f.citations).map(|citation| citation.call()).collect();
    let mut exhibits = Exhibits::default();
    for done in done.iter().filter(|done| cited.contains(&done.call.id)) {
        exhibits.add(done.call.clone(), false, done.result.as_bytes());
    }
    exhibits
}

/// For each finding, what is wrong with its form.
fn faults(taken: &[Taken], done: &[Done], alerted: Option<&str>) -> Vec<Vec<String>> {
    let exhibits = exhibits(taken.iter().map(|taken| &taken.draft), done);
    let of = |taken: &Taken| {
        let mut all = taken.faults.clone();
        all.extend(exhibits.objections(&exhibits.based(&taken.draft), alerted));
        all
    };
    taken.iter().map(of).collect()
}

/// What to say about the faulty findings; empty if there are none.
pub(super) fn returned(taken: &[Taken], done: &[Done], alerted: Option<&str>) -> String {
    let mut list = String::new();
    for ((finding, faults), n) in
        taken.iter().zip(faults(taken, done, alerted)).zip(1..).filter(|((_, f), _)| !f.is_empty())
    {
        let (claim, why) = (one_line(&finding.draft.claim, CLAIM), one_line(&faults.join("; "), REASONS));
        let _ = writeln!(list, "- finding {n} ({claim:?}): {why}");
    }
    if list.is_empty() {
        return list;
    }
    format!(
        "Code has checked your findings. For their form, these would score at most {CAP_UNSUPPORTED} or lose their time:\n{list}Your other findings stand: do not give them again. Answer once more with only these findings, corrected, in this order; leave out what you withdraw. Tools may be called first while you have turns. This is the only second chance."
    )
}

/// The findings that stand, with the corrections in the place of the faulty ones, and how many of these are right now.
pub(super) fn mended(
    first: Vec<Taken>,
    second: Vec<Taken>,
    done: &[Done],
    alerted: Option<&str>,
) -> (Vec<FindingDraft>, u32) {
    let faulty: Vec<bool> = faults(&first, done, alerted).iter().map(|faults| !faults.is_empty()).collect();
    let stands = |draft: &FindingDraft| first.iter().zip(&faulty).any(|(f, faulty)| !faulty && f.draft == *draft);
    let second: Vec<Taken> = second.into_iter().filter(|taken| !stands(&taken.draft)).collect();
    let returned = faulty.iter().filter(|faulty| **faulty).count();
    let right = faults(&second, done, alerted).iter().filter(|faults| faults.is_empty()).count().min(returned);
    let in_place = second.len() == returned;
    let mut corrected = second.into_iter().map(|taken| taken.draft);
    let mut all = Vec::new();
    for (taken, faulty) in first.into_iter().zip(faulty) {
        match faulty {
            false => all.push(taken.draft),
            true if in_place => all.extend(corrected.next()),
            true => {}
        }
    }
    all.extend(corrected);
    (all, u32::try_from(right).unwrap_or(u32::MAX))
}
