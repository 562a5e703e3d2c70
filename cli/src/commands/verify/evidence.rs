//! Compares cited records and evidence files with the hashes in the report.

use std::collections::BTreeSet;
use std::path::Path;

use casebook_evidence::kept::{Kept, compare as compare_file};
use casebook_evidence::{Catalog, Declared};
use casebook_protocol::hash::sha256_hex;
use casebook_protocol::report::ReportCitation;
use casebook_protocol::{Citation, FindingId, RecordHash, RecordRef, Report};
use casebook_report::words::count;

use super::Told;
use crate::failure::Failure;
use crate::progress::loaded;
use crate::stop;

/// Maximum number of files to name if the folder contains none of them.
const NAMED: usize = 3;

pub(super) async fn compare(report: &Report, folder: &Path, data: &Path, told: &mut Told) -> Result<(), Failure> {
    let mut stop = stop::listen()?;
    let catalog = loaded(folder, data, None, &Declared::default(), &mut stop).await?;
    let hashes = report.proof.as_ref().map_or(&[][..], |proof| &proof.records);
    let quoted: Vec<_> = quoted(report).collect();
    let cited = quoted.iter().map(|(_, _, record)| record.file.as_str());
    let cited: BTreeSet<&str> = cited.chain(hashes.iter().map(|record| record.file.as_str())).collect();
    let there: BTreeSet<&str> = catalog.sources().iter().map(|source| source.file.as_str()).collect();
    if !cited.is_empty() && cited.is_disjoint(&there) {
        let some: Vec<&str> = cited.into_iter().take(NAMED).collect();
        return Err(Failure::usage(
            format!("{} contains none of the cited files, such as {}", folder.display(), some.join(", ")),
            "name the folder that was investigated; `casebook list` shows it",
        ));
    }
    records(&catalog, hashes, &quoted, told);
    let hashed: BTreeSet<(&str, u64)> = hashes.iter().map(|record| (record.file.as_str(), record.line)).collect();
    let rest: Vec<_> =
        quoted.iter().filter(|(_, _, record)| !hashed.contains(&(record.file.as_str(), record.line))).collect();
    for (finding, cited, record) in &rest {
        let why = match catalog.record(&record.file, record.line) {
            Ok(there) if contains(cited, &there) => continue,
            Ok(_) => "that line does not contain the quotation".to_owned(),
            Err(error) => error.to_string(),
        };
        told.problems.push(format!("{finding} cites {}:{}: {why}", record.file, record.line));
    }
    if !rest.is_empty() {
        let number = count(rest.len() as u64, "cited record");
        told.checked.push(format!("{number} without a hash: only the quoted text was compared"));
        told.unknown.push(format!("whether the rest of {number} is unchanged: the report has no hash of them"));
    }
    files(report, folder, told);
    Ok(())
}

type Quoted<'a> = (&'a FindingId, &'a ReportCitation, &'a RecordRef);

/// Each record of a file that a valid citation leads to, with its finding. Results of tools are not in a file;
/// they were compared with the recorded result.
fn quoted(report: &Report) -> impl Iterator<Item = Quoted<'_>> {
    report
        .findings
        .iter()
        .flat_map(|found| found.citations.iter().map(|cited| (&found.finding.id, cited)))
        .filter(|(_, cited)| cited.holds)
        .flat_map(|(finding, cited)| cited.records.iter().map(move |record| (finding, cited, record)))
        .filter(|(_, _, record)| record.artifact().is_none())
}

fn records(catalog: &Catalog, hashes: &[RecordHash], quoted: &[Quoted<'_>], told: &mut Told) {
    let mut differ = BTreeSet::new();
    for known in hashes {
        let length = known.cut.then_some(known.bytes);
        let why = match catalog.text_of(&known.file, known.line, known.nth, length) {
            Ok(text) if same(known, &text) => continue,
            Ok(_) => "that record is not what was cited".to_owned(),
            Err(error) => error.to_string(),
        };
        differ.insert((&known.file, known.line, known.nth));
        let place = (&known.file, known.line);
        let by = quoted.iter().find(|(_, _, record)| (&record.file, record.line) == place);
        let who = by.map_or_else(|| "a number that a finding".to_owned(), |(finding, ..)| finding.to_string());
        told.problems.push(format!("{who} cites {}:{}: {why}", known.file, known.line));
    }
    let places: BTreeSet<_> = hashes.iter().map(|record| (&record.file, record.line, record.nth)).collect();
    if places.is_empty() {
        return;
    }
    let same = places.difference(&differ).count() as u64;
    told.checked.push(format!(
        "{} of {}: the hash is the recorded one",
        same,
        count(places.len() as u64, "cited record")
    ));
    let cut: BTreeSet<_> =
        hashes.iter().filter(|record| record.cut).map(|record| (&record.file, record.line, record.nth)).collect();
    if !cut.is_empty() {
        let number = count(cut.len() as u64, "long record");
        told.unknown
            .push(format!("whether the end of {number} is unchanged: only the part that was returned has a hash"));
    }
}

/// The start of the text if the record was cut, else the whole.
fn same(known: &RecordHash, text: &str) -> bool {
    let text = match known.cut {
        true => usize::try_from(known.bytes).ok().and_then(|bytes| text.get(..bytes)),
        false => Some(text),
    };
    text.is_some_and(|text| sha256_hex(text.as_bytes()) == known.sha256)
}

fn files(report: &Report, folder: &Path, told: &mut Told) {
    let Some(proof) = report.proof.as_ref().filter(|proof| !proof.files.is_empty()) else {
        told.unknown.push(
            "whether the evidence files are unchanged beyond what was cited: the report has no hash of them".into(),
        );
        return;
    };
    let (mut grown, mut same) = (0, 0);
    for known in &proof.files {
        match compare_file(folder, known) {
            Ok(Kept::Same) => same += 1,
            Ok(Kept::Grown) => grown += 1,
            Ok(Kept::Changed) => told.problems.push(format!("evidence file {} was changed", known.file)),
            Err(error) => told.problems.push(format!("evidence file {} cannot be read: {error}", known.file)),
        }
    }
    let number = count(proof.files.len() as u64, "evidence file");
    told.checked.push(match grown {
        0 => format!("{same} of {number}: the hash is the recorded one"),
        _ => format!(
            "{} of {number}: the hash is the recorded one; {grown} have grown, but the part that was read is unchanged",
            same + grown
        ),
    });
    if proof.more_files > 0 {
        let more = count(proof.more_files, "further evidence file");
        told.unknown.push(format!("whether {more} are unchanged: there were too many to list"));
    }
}

/// The quotation occurs in the raw record or in one of its fields.
fn contains(cited: &ReportCitation, record: &casebook_evidence::Record) -> bool {
    let Citation::Literal { quote, .. } = &cited.citation else { return true };
    let quote = squeezed(quote.strip_suffix('…').unwrap_or(quote));
    squeezed(&record.text()).contains(&quote)
        || record.fields().iter().any(|(_, value)| squeezed(value).contains(&quote))
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
