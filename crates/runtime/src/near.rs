//! Suggestions for misspelled names.

/// The entry of `known` that is most similar to `name`, if one is similar. Letter case is ignored, and hyphens equal
/// underscores.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.chars().take(64).collect::<String>().to_lowercase().replace('-', "_");
    let name = plain(name);
    let near = known.into_iter().map(|known| (strsim::osa_distance(&name, &plain(known)), known));
    let (distance, known) = near.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + known.chars().count() / 4).then_some(known)
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
