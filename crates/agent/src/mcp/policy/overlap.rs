/// True if some name matches both patterns.
pub(super) fn overlap(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // `below` and `row` hold for each rest of `b` whether it overlaps with the rest of `a`.
    let mut below: Vec<bool> = Vec::new();
    for i in (0..=a.len()).rev() {
        let mut row = vec![false; b.len() + 1];
        for j in (0..=b.len()).rev() {
            let at = |row: &[bool], j: usize| row.get(j).copied().unwrap_or(false);
            let found = match (a.get(i), b.get(j)) {
                (None, None) => true,
                (Some('*'), _) if at(&below, j) => true,
                (_, Some('*')) if at(&row, j + 1) => true,
                (Some('*'), Some(_)) => at(&row, j + 1),
                (Some(_), Some('*')) => at(&below, j),
                (Some(x), Some(y)) => x == y && at(&below, j + 1),
                _ => false,
            };
            if let Some(cell) = row.get_mut(j) {
                *cell = found;
            }
        }
        below = row;
    }
    below.first().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_wildcards_overlap_where_one_name_is_both() {
        let check = |a: &str, b: &str, expect: bool| {
            assert_eq!((overlap(a, b), overlap(b, a)), (expect, expect), "{a} {b}");
        };
        check("search", "search", true);
        check("search", "find", false);
        check("*", "find", true);
        check("*", "", true);
        check("get_*", "*_issue", true);
        check("get_*", "list_*", false);
        check("a*c", "ab", false);
        check("a*c", "*b*", true);
        check("a", "", false);
    }
}
