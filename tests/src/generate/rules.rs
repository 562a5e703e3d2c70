//! Further Sigma rules of the shapes that public packs have: programs and options of processes, paths in the registry
//! and of files, addresses, web requests, calls of a cloud. Many of their texts are in ordinary records.

use std::path::PathBuf;

use casebook_evidence::rules::{Origin, RuleFile};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const PROGRAMS: [&str; 12] = [
    "powershell",
    "cmd",
    "svchost",
    "chrome",
    "msiexec",
    "net",
    "git",
    "node",
    "rundll32",
    "regsvr32",
    "wmic",
    "mshta",
];
/// The first are in ordinary records.
const WORDS: [&str; 24] = [
    "-File",
    "--type=",
    "/c ",
    "http",
    "-Run",
    "share",
    "-Embedding",
    "ProgramData",
    "system32",
    "-enc",
    "hidden",
    "bypass",
    "DownloadString",
    "IEX",
    "vssadmin",
    "shadowcopy",
    "/transfer",
    "javascript:",
    "lsass",
    "-urlcache",
    "comsvcs",
    "ntds",
    "certutil",
    "mimikatz",
];

fn any<'a>(dice: &mut ChaCha8Rng, all: &[&'a str]) -> &'a str {
    all.get(dice.random_range(0..all.len())).copied().unwrap_or_default()
}

/// A word that is in some records or, with a number, in none.
fn word(dice: &mut ChaCha8Rng) -> String {
    let word = any(dice, &WORDS);
    if dice.random_range(0..3) == 0 { word.to_owned() } else { format!("{word}{:x}", dice.random_range(0..4096)) }
}

fn rule(number: usize, dice: &mut ChaCha8Rng) -> String {
    let [a, b, c, d] = [word(dice), word(dice), word(dice), word(dice)];
    let [one, two] = [any(dice, &PROGRAMS), any(dice, &PROGRAMS)];
    let (source, detection) = match number % 10 {
        0..=4 => (
            "{product: windows, category: process_creation}",
            format!(
                "  image:\n  - Image|endswith: ['\\{one}.exe', '\\{two}.exe']\n  - OriginalFileName: '{one}.exe'\n  words:\n    CommandLine|contains|all: ['{a}', '{b}']\n  other:\n    CommandLine|contains: ['{c}', '{d}']\n  pattern:\n    CommandLine|re: '(?i)\\s[-/]({a}|{d})\\s+\\S{{4,}}'\n  filter_known:\n    ParentImage|startswith: 'C:\\Program Files\\'\n  condition: image and (words or other or pattern) and not 1 of filter_*\n"
            ),
        ),
        5 => (
            "{product: windows, category: registry_set}",
            format!(
                "  key:\n    TargetObject|contains: ['\\Software\\Microsoft\\', '\\{c}\\']\n    Details|contains: ['{a}', '{b}']\n  filter_known:\n    Image|endswith: '\\{one}.exe'\n  condition: key and not 1 of filter_*\n"
            ),
        ),
        6 => (
            "{product: windows, category: file_event}",
            format!(
                "  place:\n    TargetFilename|contains: ['\\AppData\\Local\\Temp\\', '\\Users\\Public\\']\n  kind:\n    TargetFilename|endswith: ['.{one}', '{a}.dll', '{b}.exe']\n  condition: all of them\n"
            ),
        ),
        7 => (
            "{category: webserver}",
            format!(
                "  path:\n    cs-uri-stem|contains: ['/api/{a}', '/{b}.php']\n  query:\n    cs-uri-query|re: '(?i)(id|page)=[^&]*({c}|{d})'\n  agent:\n    cs-user-agent|contains: '{a}'\n  condition: 1 of them\n"
            ),
        ),
        8 => (
            "{product: aws, service: cloudtrail}",
            format!(
                "  call:\n    eventSource: ['iam.amazonaws.com', 's3.amazonaws.com']\n    eventName|startswith: ['Put{one}', 'Create{two}', 'Get{a}']\n  filter_known:\n    userIdentity.type: AWSService\n  condition: call and not 1 of filter_*\n"
            ),
        ),
        _ => (
            "{product: linux}",
            format!("  words:\n  - '{a}'\n  - 'session {b}'\n  - '*{c}*{d}*'\n  condition: words\n"),
        ),
    };
    format!(
        "title: Further rule {number}\nid: 00000000-0000-4000-8000-{number:012}\nstatus: test\nlogsource: {source}\ndetection:\n{detection}level: low\n"
    )
}

/// As many rules of a user, always the same.
pub fn further(many: usize) -> Vec<RuleFile> {
    let mut dice = ChaCha8Rng::seed_from_u64(7);
    let file = |number| RuleFile {
        origin: Origin::User,
        path: PathBuf::from(format!("further-{number}.yml")),
        text: rule(number, &mut dice),
    };
    (0..many).map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_rules_are_valid() {
        let faults = casebook_evidence::rules::RuleSet::read(&further(200)).err().unwrap_or_default();
        assert!(faults.is_empty(), "{faults:?}");
    }
}
