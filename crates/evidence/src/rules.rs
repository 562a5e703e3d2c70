//! Rules in Sigma: which there are, what they say, and which records they match. `rules/sigma.rs` is the only file
//! that knows the library; what a field or a log source is in our records is data (`taxonomy.toml`).

mod correlate;
pub(crate) mod events;
mod explain;
mod folder;
pub(crate) mod hits;
mod judgement;
mod matching;
mod needs;
pub(crate) mod pass;
pub(crate) mod pattern;
mod plan;
mod route;
mod sigma;
mod taxonomy;
mod text;
mod view;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use ahash::AHashMap;
use casebook_protocol::hash::sha256_hex;
use serde::{Deserialize, Serialize};

pub(crate) use correlate::Place;
use correlate::Plan;
pub use explain::{Explained, ExplainedPart};
pub use folder::rule_files;
pub use hits::{Group, GroupPart};
pub use judgement::{Judgement, Pattern};
use matching::Matchers;
use sigma::{Body, Document, Matcher};
use taxonomy::LogSources;
use view::Slots;

/// Raise it when equal rules would give other hits.
const VERSION: u32 = 2;
/// Files with rules, and rules, of one set.
const RULES_MAX: usize = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Informational,
    Low,
    Medium,
    High,
    Critical,
}

impl Level {
    pub const ALL: [(&'static str, Self); 5] = [
        ("informational", Self::Informational),
        ("low", Self::Low),
        ("medium", Self::Medium),
        ("high", Self::High),
        ("critical", Self::Critical),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, level)| *level == self).map_or("medium", |(name, _)| name)
    }
}

/// Who wrote a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    BuiltIn,
    /// It may be planted, so it cannot clear an alert.
    User,
}

/// A file with rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFile {
    pub origin: Origin,
    pub path: PathBuf,
    pub text: String,
}

/// Why a rule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{}:{line}: {what}", file.display())]
pub struct RuleFault {
    pub file: PathBuf,
    pub line: usize,
    pub what: String,
}

/// What is known of a rule beside how it matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Unique in its set: the id of the file, or else its name or title.
    pub id: String,
    pub title: String,
    pub level: Level,
    pub origin: Origin,
    pub file: PathBuf,
    pub line: usize,
    pub author: Option<String>,
    pub references: Vec<String>,
    pub tags: Vec<String>,
    pub falsepositives: Vec<String>,
    pub judgement: Judgement,
    /// The records that it is for, such as `windows/process_creation`; empty for a correlation.
    pub logsource: String,
    /// The kind of a correlation, such as `event_count`.
    pub correlation: Option<String>,
    /// Only a part of correlations: its hits do not count on their own.
    pub part: bool,
}

impl Rule {
    /// The first technique of ATT&CK among its tags: `T1110.001` for `attack.t1110.001`.
    pub fn technique(&self) -> Option<String> {
        self.tags.iter().find_map(|tag| {
            let id = tag.strip_prefix("attack.")?.to_ascii_uppercase();
            let digits = id.strip_prefix('T')?;
            (digits.len() >= 4 && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.')).then_some(id)
        })
    }
}

/// Rules that are evaluated together.
pub struct RuleSet {
    rules: Vec<Rule>,
    /// Those of single records, by number.
    matchers: AHashMap<usize, Matcher>,
    plans: Vec<Plan>,
    /// For each rule that correlations read, the fields that they need, with their slots.
    carried: AHashMap<usize, Vec<(String, usize)>>,
    slots: Slots,
    routes: Mutex<HashMap<LogSources, Option<Arc<Matchers>>>>,
    hash: String,
}

impl fmt::Debug for RuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleSet").field("rules", &self.rules.len()).field("hash", &self.hash).finish_non_exhaustive()
    }
}

impl PartialEq for RuleSet {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for RuleSet {}

const BUILT_IN: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/rules.rs"));

/// The rules that Casebook comes with.
pub fn built_in_rules() -> Vec<RuleFile> {
    let file = |(name, text): &(&str, &str)| RuleFile {
        origin: Origin::BuiltIn,
        path: PathBuf::from("rules").join(name),
        text: (*text).to_owned(),
    };
    BUILT_IN.iter().map(file).collect()
}

impl RuleSet {
    /// The rules that Casebook comes with.
    pub fn built_in() -> Arc<Self> {
        #[allow(clippy::expect_used, reason = "the rules are constants that the tests read")]
        static SET: LazyLock<Arc<RuleSet>> =
            LazyLock::new(|| Arc::new(RuleSet::read(&built_in_rules()).expect("the rules of Casebook are valid")));
        Arc::clone(&SET)
    }

    /// Errors: Every rule that cannot be used, in order of file and line.
    pub fn read(files: &[RuleFile]) -> Result<Self, Vec<RuleFault>> {
        let mut faults = Vec::new();
        let mut read: Vec<(Rule, Document)> = Vec::new();
        let mut names: HashMap<String, (PathBuf, usize)> = HashMap::new();
        for file in files {
            for (start, yaml) in folder::documents(&file.text) {
                let fault = |what: String| {
                    let line = start + text::line(yaml, &what) - 1;
                    RuleFault { file: file.path.clone(), line, what: text::without_place(&what) }
                };
                let known = sigma::read(yaml).and_then(|document| {
                    let judgement = Judgement::of(document.casebook.as_ref(), document.level, &file.origin)?;
                    Ok((rule(&document, file, start, judgement)?, document))
                });
                match known {
                    Err(what) => faults.push(fault(what)),
                    Ok((rule, document)) => match names.insert(rule.id.clone(), (rule.file.clone(), rule.line)) {
                        Some((file, line)) => {
                            let what = format!(
                                "id: \"{}\" is also that of {}:{line}; give each rule its own",
                                rule.id,
                                file.display()
                            );
                            faults.push(fault(what));
                        }
                        None => read.push((rule, document)),
                    },
                }
            }
        }
        if read.len() > RULES_MAX {
            let what = format!("expected at most {RULES_MAX} rules, got {}; remove some", read.len());
            faults.push(RuleFault { file: PathBuf::from("rules"), line: 1, what });
        }
        let set = plan::joined(read, files).map_err(|found| faults.extend(found));
        match set {
            Ok(set) if faults.is_empty() => Ok(set),
            _ => {
                faults.sort();
                faults.dedup();
                Err(faults)
            }
        }
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// SHA-256 over the rules and how they are evaluated.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    pub(crate) fn files_of_users(&self) -> impl Iterator<Item = &Path> {
        self.rules.iter().filter(|rule| rule.origin == Origin::User).map(|rule| rule.file.as_path())
    }

    pub(crate) fn rule(&self, number: usize) -> Option<&Rule> {
        self.rules.get(number)
    }

    fn slot(&self, field: &str) -> Option<usize> {
        self.slots.number(field)
    }

    fn any_meets(&self, sources: &LogSources) -> bool {
        self.matchers.values().any(|matcher| matcher.logsource.meets(sources))
    }

    /// The rules that meet a record of these log sources; none if there are no such rules.
    fn matchers(&self, sources: &LogSources) -> Option<Arc<Matchers>> {
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = routes.get(sources) {
            return known.clone();
        }
        let mut meeting: Vec<(usize, &Matcher)> =
            self.matchers.iter().filter(|(_, m)| m.logsource.meets(sources)).map(|(n, m)| (*n, m)).collect();
        meeting.sort_unstable_by_key(|(number, _)| *number);
        let found = (!meeting.is_empty()).then(|| Arc::new(Matchers::new(&meeting, &self.slots)));
        routes.insert(sources.clone(), found.clone());
        found
    }

    /// Whether the taxonomy knows the log source of the rule. If not, no record ever meets it.
    pub fn has_log_source(&self, number: usize) -> bool {
        self.matchers.get(&number).is_none_or(|matcher| matcher.logsource.known())
    }
}

const TITLE_MAX: usize = 300;

fn rule(document: &Document, file: &RuleFile, line: usize, judgement: Judgement) -> Result<Rule, String> {
    let own = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let title = document.title.trim().to_owned();
    if title.is_empty() || title.len() > TITLE_MAX {
        return Err(format!("title: expected 1 to {TITLE_MAX} characters"));
    }
    let (logsource, correlation) = match &document.body {
        Body::Detection(matcher) => (matcher.logsource.to_string(), None),
        Body::Correlation(correlation) => (String::new(), Some(correlation.kind.name().to_owned())),
    };
    Ok(Rule {
        id: own(&document.id).or_else(|| own(&document.name)).unwrap_or_else(|| title.clone()),
        title,
        level: document.level,
        origin: file.origin,
        file: file.path.clone(),
        line,
        author: document.author.clone(),
        references: document.references.clone(),
        tags: document.tags.clone(),
        falsepositives: document.falsepositives.clone(),
        judgement,
        logsource,
        correlation,
        part: false,
    })
}

fn hash(files: &[RuleFile]) -> String {
    let mut lines = vec![format!("{VERSION}\n"), sha256_hex(include_bytes!("../taxonomy.toml"))];
    let mut texts: Vec<String> =
        files.iter().map(|file| format!("{:?}\t{}\n", file.origin, sha256_hex(file.text.as_bytes()))).collect();
    texts.sort_unstable();
    lines.extend(texts);
    sha256_hex(lines.concat().as_bytes())
}

/// The ids and names by which correlations find rules.
fn names(read: &[(Rule, Document)]) -> HashMap<&str, usize> {
    let mut names = HashMap::new();
    for (number, (rule, document)) in read.iter().enumerate() {
        for name in [Some(rule.id.as_str()), document.name.as_deref()].into_iter().flatten() {
            names.entry(name).or_insert(number);
        }
    }
    names
}

type Numbers = HashSet<usize>;

#[cfg(test)]
mod tests;
