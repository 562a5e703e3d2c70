//! One search for the texts that rules need gives the same hits as the evaluation of each rule.

use std::collections::BTreeMap;

use memchr::memmem::Finder;

use super::super::pass::{Evaluator, may_be_coded};
use super::recordings::recordings;
use super::*;

type Fields = Vec<(String, String)>;

/// Rules of kinds that ours may not have.
const UNUSUAL: &str = r"
title: No text
logsource: {product: linux}
detection:
  selection:
    program|re: '.'
  condition: selection
---
title: Absence
logsource: {category: process_creation}
detection:
  selection:
    ParentImage: null
  condition: selection
---
title: Negation only
logsource: {category: process_creation}
detection:
  selection:
    CommandLine|contains: c
  condition: not selection
---
title: Two of three
logsource: {category: process_creation}
detection:
  a: {CommandLine|contains: powershell}
  b: {CommandLine|cased|contains: Invoke}
  c: {Image|endswith: [.exe, sh]}
  condition: 2 of them
---
title: Words and wildcards
logsource: {category: process_creation}
detection:
  words: [whoami, '*\system32\*']
  other:
    CommandLine: ['*passw?rd*', 'ſkript*']
  condition: words or other
---
title: Numbers and existence
logsource: {product: windows}
detection:
  number: {EventID: 4688}
  there: {TargetUserName|exists: true}
  gone: {TargetUserName|exists: false}
  condition: number or (there and not gone)
---
title: Patterns without case
logsource: {category: webserver}
detection:
  selection:
    cs-uri-query|re: '(?i)(union|k(ey|ill))\s*=?select|\.\./'
    sc-status: [200, 404]
  condition: 1 of selection*
";

/// Always the same numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// Changes case, letters and fields.
fn changed(fields: &Fields, others: &[Fields], dice: &mut Dice) -> Fields {
    let mut fields = fields.clone();
    for _ in 0..=dice.below(3) {
        let place = dice.below(fields.len());
        let other = &others[dice.below(others.len())];
        let (path, value) = other[dice.below(other.len())].clone();
        let from = fields[place].1.char_indices().nth(dice.below(12)).map_or(0, |(at, _)| at);
        match dice.below(7) {
            0 => fields[place].1 = fields[place].1.to_uppercase(),
            1 => fields[place].1 = fields[place].1.to_lowercase().replace('s', "\u{17f}").replace('k', "\u{212a}"),
            2 => fields[place].1.insert(from, ['É', 'x', '\u{130}', ' '][dice.below(4)]),
            3 => fields[place].1.truncate(from),
            4 => fields[place].1.push_str(&value),
            5 => fields[place] = (path, value),
            _ => drop(fields.remove(place)),
        }
        if fields.is_empty() {
            fields.push((String::new(), String::new()));
        }
    }
    fields
}

#[test]
fn a_search_for_texts_hides_no_hit() {
    let files: Vec<RuleFile> = built_in_rules().into_iter().chain([user(UNUSUAL)]).collect();
    let rules = Arc::new(RuleSet::read(&files).unwrap());
    let mut logs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in recordings() {
        logs.entry(one.file.clone()).or_default().extend(one.texts());
    }
    let (mut dice, mut records, mut hits) = (Dice(7), 0, BTreeMap::<usize, usize>::new());
    for (file, lines) in logs {
        let loaded = Loaded::new(&[(&file, lines.join("\n") + "\n")]);
        let catalog = loaded.catalog(None);
        let source = &catalog.sources()[0];
        let Some(mut evaluator) = Evaluator::new(&rules, &source.sensor, &file, source.format) else { continue };
        let read: Vec<_> = (1..=lines.len() as u64).filter_map(|line| catalog.record(&file, line).ok()).collect();
        let read: Vec<_> = read.iter().filter(|record| !record.fields().is_empty()).collect();
        let all: Vec<Fields> = read.iter().map(|record| record.fields()).collect();
        for (fields, record) in all.iter().zip(&read) {
            for nth in 0..12 {
                let fields = if nth == 0 { fields.clone() } else { changed(fields, &all, &mut dice) };
                let values: Vec<&str> = fields.iter().map(|(_, value)| value.as_str()).collect();
                let bytes = if nth == 0 { record.bytes.to_vec() } else { values.join(" ").into_bytes() };
                let (quickly, slowly) = evaluator.met_twice(&fields, &bytes);
                assert_eq!(quickly, slowly, "{file}: {fields:?}");
                records += 1;
                slowly.iter().for_each(|rule| *hits.entry(*rule).or_default() += 1);
            }
        }
    }
    let unusual = rules.rules.iter().enumerate().filter(|(_, rule)| rule.origin == Origin::User);
    let silent: Vec<&str> =
        unusual.filter(|(number, _)| !hits.contains_key(number)).map(|(_, rule)| rule.title.as_str()).collect();
    assert!(records > 10_000 && hits.len() > 500 && silent.is_empty(), "{records} {} {silent:?}", hits.len());
}

/// The bytes of a record need not have the `%` of a value that is encoded twice.
#[test]
fn a_percent_in_a_value_comes_from_what_is_looked_for() {
    let records = [
        ("a.ndjson", r#"{"time":"2026-03-01T10:00:00Z","url":"/a\u00252541"}"#),
        ("audit.log", "type=EXECVE msg=audit(1772359200.123:7): argc=1 a0=2532353431"),
        ("access.log", r#"10.0.0.9 - - [01/Mar/2026:10:00:00 +0000] "GET /a%2541 HTTP/1.1" 200 12"#),
    ];
    for (file, text) in records {
        let loaded = Loaded::new(&[(file, format!("{text}\n"))]);
        let catalog = loaded.catalog(None);
        let record = catalog.record(file, 1).unwrap();
        assert!(record.fields().iter().any(|(_, value)| value.contains("%2541")), "{file}: {:?}", record.fields());
        assert!(may_be_coded(&record.bytes, &Finder::new("audit(")), "{file}");
    }
}
