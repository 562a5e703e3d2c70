//! Prints the measurement.

use std::fmt::Write;

use super::Calibrated;
use super::kind::{By, Expect};
use super::measure::{Calibration, Measure, Row, Share};

pub fn table(result: &Calibrated) -> String {
    let mut out = format!(
        "{} planted findings, {} true ones in hard forms and {} real ones, from {} rounds of {} investigations; seed {}\n",
        result.planted, result.hard, result.real, result.rounds, result.investigations, result.seed
    );
    for measure in &result.measures {
        part(&mut out, measure);
    }
    let _ = match result.failures.len() {
        0 => {
            writeln!(out, "\nNo falsehood that code can detect was believed, and the checks rejected no true finding.")
        }
        n => writeln!(out, "\n{n} trials in which code failed:"),
    };
    for failed in result.failures.iter().take(40) {
        let claim = casebook_protocol::one_line(&failed.claim, 140);
        let _ = writeln!(out, "  {} ({}): {claim}", failed.kind.row().words, failed.critic);
        if !failed.why.is_empty() {
            let _ = writeln!(out, "    {}", casebook_protocol::one_line(&failed.why, 160));
        }
    }
    out
}

fn part(out: &mut String, measure: &Measure) {
    let _ = writeln!(out, "\nCritic: {}", measure.critic);
    let _ = writeln!(
        out,
        "  {:<40} {:<9} {:>6} {:>8} {:>9} {:>9}  as required (95%)",
        "kind", "found by", "trials", "stopped", "believed", "Timeline"
    );
    for expect in [Expect::Refused, Expect::OneEvent, Expect::Marked, Expect::Kept] {
        let _ = writeln!(out, " {}", heading(expect));
        for row in measure.rows.iter().filter(|r| r.expect == expect) {
            line(out, row);
        }
    }
    calibration(out, "all findings", &measure.all);
    calibration(out, "those that passed the checks", &measure.passed);
    if measure.unscored > 0 {
        let _ = writeln!(out, "  {} trials have no score: the Critic failed", measure.unscored);
    }
}

const fn heading(expect: Expect) -> &'static str {
    match expect {
        Expect::Refused => "false: must not be believed",
        Expect::OneEvent => "reported twice: one event, not two",
        Expect::Marked => "contradicted: both must not be believed unless marked",
        Expect::Kept => "true: must not be lost",
    }
}

fn line(out: &mut String, row: &Row) {
    let by = match row.by {
        By::Code => "code",
        By::Judgement => "judgement",
    };
    let _ = writeln!(
        out,
        "  {:<40} {by:<9} {:>6} {:>8} {:>9} {:>9}  {}",
        row.kind.row().words,
        row.trials,
        row.stopped,
        row.believed,
        row.on_timeline,
        share(row.right)
    );
}

fn share(share: Share) -> String {
    format!("{:>5.1}% ({:.1} to {:.1})", share.value() * 100.0, share.low * 100.0, share.high * 100.0)
}

fn calibration(out: &mut String, of: &str, c: &Calibration) {
    let number = |n: Option<f64>| n.map_or_else(|| "-".to_owned(), |n| format!("{n:.3}"));
    let _ = writeln!(
        out,
        "  over {of} ({} true, {} false): AUROC {} ± {}, Brier score {}",
        c.truths,
        c.falsehoods,
        number(c.auroc),
        number(c.auroc_half),
        number(c.brier)
    );
    for (band, within) in c.bands.iter().filter(|(_, s)| s.of > 0) {
        let _ = writeln!(out, "    {band:<17} {:>5} findings, true {}", within.of, share(*within));
    }
}
