//! The known name that somebody meant.

/// That of `known` which `name` is most likely a misspelling of; none where none is near.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.chars().take(64).flat_map(char::to_lowercase).collect();
    let near = known.into_iter().map(|known| (distance(&name, known), known));
    let (distance, known) = near.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + known.chars().count() / 4).then_some(known)
}

/// How many characters are to be written, left out or replaced to come from `a` to `b`; hyphens and
/// underscores are the same.
fn distance(a: &[char], b: &str) -> usize {
    let same = |x: char, y: char| x == y || (matches!(x, '-' | '_') && matches!(y, '-' | '_'));
    let mut row: Vec<usize> = (0..=a.len()).collect();
    for (i, y) in b.chars().flat_map(char::to_lowercase).enumerate() {
        let mut next = vec![i + 1];
        for (&x, above) in a.iter().zip(row.windows(2)) {
            let [diagonal, above] = above else { continue };
            let left = next.last().copied().unwrap_or_default();
            next.push((diagonal + usize::from(!same(x, y))).min(above + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_misspelling_is_near_and_another_word_is_not() {
        let known = ["read_only", "timeout", "start_timeout", "secrets"];
        let check = |name: &str, expect: Option<&str>| assert_eq!(nearest(name, known), expect, "{name}");
        check("readonly", Some("read_only"));
        check("read-only", Some("read_only"));
        check("Timeout", Some("timeout"));
        check("tiemout", Some("timeout"));
        check("secret", Some("secrets"));
        check("colour", None);
        check("", None);
        assert_eq!(nearest("x", []), None);
    }
}
