//! Compares what a claim states (times, addresses, hashes, quoted names, numbers) with its evidence (citation
//! check).

use std::net::IpAddr;

use casebook_protocol::Timestamp;

mod amount;
mod clock;
mod corpus;
mod count;

pub use corpus::Corpus;

/// A claim about an alert of another product begins like this. Such a claim is a judgement, not a record; text
/// of the evidence follows in backquotes.
pub const JUDGEMENT: &str = "Alert `";

/// The claim about the command with which everything began ends like this.
pub const FIRST_COMMAND: &str = "the first command on the way to the alerted process";

/// Lists what `claim` states and `corpus` does not. A duration must lie between two of the cited `times`, or a
/// record must state it, in any unit.
pub fn faults(claim: &str, corpus: &Corpus, times: &[Timestamp]) -> Vec<String> {
    let (names, rest) = quoted(claim, corpus);
    let mut faults: Vec<String> = names
        .iter()
        .filter(|name| !corpus.has_name(name))
        .map(|name| format!("`{name}` does not occur in what is cited"))
        .collect();
    let words: Vec<&str> = rest
        .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ';' | '"' | '“' | '”'))
        .flat_map(listed)
        .filter(|w| !w.is_empty())
        .collect();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let ahead = words.get(at..).unwrap_or_default();
        if let Some((fault, used)) = clock::fault(ahead, corpus, times) {
            faults.extend(fault);
            at += used;
            continue;
        }
        let word = word.trim_end_matches(['.', ':', '!', '?', '\'']).trim_start_matches('\'');
        let before = at.checked_sub(1).and_then(|at| words.get(at)).copied().unwrap_or_default();
        faults.extend(word_fault(word, before, ahead.get(1..).unwrap_or_default(), corpus, times));
        at += 1;
    }
    faults
}

/// The names that the claim has in backquotes.
pub fn names(claim: &str) -> impl Iterator<Item = &str> {
    claim.split('`').skip(1).step_by(2)
}

/// What the claim says around the names in backquotes, in lower case.
#[must_use]
pub fn plain(claim: &str) -> String {
    claim.split('`').step_by(2).collect::<Vec<_>>().join(" ").to_lowercase()
}

/// True if `word` occurs in `text` and is not part of a longer number or name.
pub fn has_word(text: &str, word: &str) -> bool {
    if word.is_empty() {
        return false;
    }
    let open = |edge: Option<char>, beyond: Option<char>| match (edge, beyond) {
        (Some(a), Some(b)) => a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric(),
        _ => false,
    };
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|t| t.chars().next_back());
        let rest = text.get(at + word.len()..).unwrap_or_default();
        let number_goes_on = word.ends_with(|c: char| c.is_ascii_digit())
            && rest.starts_with('.')
            && rest.chars().nth(1).is_some_and(|c| c.is_ascii_digit());
        !open(word.chars().next(), before) && !open(word.chars().next_back(), rest.chars().next()) && !number_goes_on
    })
}

/// Where a claim begins to say what it excepts from an absence, in bytes.
pub fn exception(claim: &str) -> Option<usize> {
    const WORDS: [&str; 7] =
        ["other than", "except", "apart from", "besides", "aside from", "beyond", "different from"];
    let lower = claim.to_ascii_lowercase();
    WORDS.iter().filter_map(|word| lower.find(word)).chain(compared(&lower)).min()
}

/// Where "another … than" or "elsewhere than" begins.
fn compared(lower: &str) -> Option<usize> {
    const FIRST: [&str; 5] = ["other", "another", "others", "elsewhere", "otherwise"];
    const MORE: [&str; 16] = [
        "more", "less", "fewer", "later", "earlier", "longer", "shorter", "greater", "larger", "smaller", "higher",
        "lower", "older", "newer", "sooner", "rather",
    ];
    /// Words between the two.
    const BETWEEN: usize = 6;
    let words: Vec<(usize, &str)> = lower
        .split_whitespace()
        .map(|word| {
            (word.as_ptr() as usize - lower.as_ptr() as usize, word.trim_matches(|c: char| !c.is_alphanumeric()))
        })
        .collect();
    // "no other logon lasted longer than" excepts nothing.
    let ends = |from: usize| {
        let near = words.iter().skip(from).take(BETWEEN + 2).map(|(_, word)| *word).collect::<Vec<_>>();
        near.windows(2).any(|pair| matches!(pair, [before, "than"] if !MORE.contains(before)))
    };
    words.iter().enumerate().find(|(n, (_, word))| FIRST.contains(word) && ends(*n)).map(|(_, (at, _))| *at)
}

/// Splits at commas, except inside a number such as `1,204`.
fn listed(word: &str) -> Vec<&str> {
    let groups: Vec<&str> = word.trim_end_matches(',').split(',').collect();
    let whole = |g: &str, most: usize| g.len() <= most && g.bytes().all(|b| b.is_ascii_digit()) && !g.is_empty();
    let thousands = groups.len() > 1
        && groups.first().is_some_and(|g| whole(g, 3))
        && groups.iter().skip(1).all(|g| g.len() == 3 && whole(g, 3));
    if thousands { vec![word.trim_end_matches(',')] } else { groups }
}

fn word_fault(word: &str, before: &str, ahead: &[&str], corpus: &Corpus, times: &[Timestamp]) -> Option<String> {
    let next = ahead.first().map_or("", |w| w.trim_end_matches(['.', ':']));
    let stated = |ok: bool, what: &str| (!ok).then(|| format!("{what} {word} does not occur in what is cited"));
    if !word.contains(|c: char| c.is_ascii_digit()) && !word.contains("::") {
        return None;
    }
    if let Some(found) = address(word, corpus) {
        return stated(found, "the address");
    }
    if is_hash(word) {
        return stated(corpus.has_hash(word), "the hash");
    }
    let (digits, unit) = match amount::with_unit(word) {
        Some((digits, unit)) => (digits, Some(unit)),
        None => (word, amount::unit(next)),
    };
    let (value, decimals) = amount::number(digits)?;
    let whole: Option<u64> = digits.chars().filter(char::is_ascii_digit).collect::<String>().parse().ok();
    let whole = whole.filter(|_| decimals == 0 && !digits.contains('.'));
    let as_written = whole.map_or_else(|| corpus.has_token(digits), |n| corpus.has_number(n));
    let sought = whole.is_some_and(|n| corpus.was_sought(n));
    match unit {
        Some(unit) => {
            let of_query = matches!(unit, amount::Unit::Time(_)) && whole.is_some_and(|n| corpus.was_asked(n));
            let found = as_written || sought || of_query || amount::is_stated(value, decimals, unit, corpus, times);
            stated(found, if matches!(unit, amount::Unit::Time(_)) { "the duration" } else { "the amount" })
        }
        // It may be a version.
        None => {
            let whole = whole?;
            // A number that was searched for is stated, but it is not a count.
            let sought = sought && (names_number(before, corpus) || !is_plural(next));
            match count::counted(ahead) {
                Some(noun) if as_written && !sought => stated(corpus.has_count(whole, noun), "as a count the number"),
                Some(_) => stated(as_written || (sought && names_number(before, corpus)), "the number"),
                None => stated(as_written || sought, "the number"),
            }
        }
    }
}

/// True if a number after this word is a name, as in `port 445`.
fn names_number(before: &str, corpus: &Corpus) -> bool {
    const WORDS: [&str; 9] = ["port", "ports", "id", "ids", "code", "type", "event", "number", "status"];
    let word = before.trim_end_matches([':', '=']).to_lowercase();
    WORDS.contains(&word.as_str()) || corpus.has_field(&word)
}

fn is_plural(word: &str) -> bool {
    word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") && word.chars().all(char::is_alphabetic)
}

/// Whether the address occurs in the corpus. None if the word is not an address, with or without port or prefix
/// length.
fn address(word: &str, corpus: &Corpus) -> Option<bool> {
    let bare = word.trim_matches(['[', ']']);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some(corpus.has_address(address));
    }
    if let Some((network, bits)) = bare.split_once('/')
        && let (Ok(network), Ok(bits)) = (network.parse::<IpAddr>(), bits.parse::<u32>())
    {
        return Some(corpus.addresses().any(|a| within(a, network, bits)));
    }
    let (host, port) = word.rsplit_once(':')?;
    let address: IpAddr = host.trim_matches(['[', ']']).parse().ok()?;
    let port: u64 = port.parse().ok()?;
    Some(corpus.has_address(address) && corpus.has_number(port))
}

fn within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    let same =
        |a: u128, b: u128, width: u32| bits <= width && (bits == 0 || a >> (width - bits) == b >> (width - bits));
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => same(u32::from(a).into(), u32::from(b).into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => same(a.into(), b.into(), 128),
        _ => false,
    }
}

fn is_hash(word: &str) -> bool {
    let mixed = word.contains(|c: char| c.is_ascii_digit()) && word.contains(|c: char| c.is_ascii_alphabetic());
    word.bytes().all(|b| b.is_ascii_hexdigit()) && (word.len() >= 32 || (word.len() >= 7 && mixed))
}

fn quoted(claim: &str, corpus: &Corpus) -> (Vec<String>, String) {
    let mut names = Vec::new();
    let mut rest = String::new();
    for (i, part) in claim.split('`').enumerate() {
        if i % 2 == 1 {
            names.push(part.to_owned());
            rest.push_str(if corpus.has_field(&part.to_lowercase()) { " id " } else { " " });
        } else {
            rest.push_str(part);
        }
    }
    (names, rest)
}

#[cfg(test)]
mod tests;
