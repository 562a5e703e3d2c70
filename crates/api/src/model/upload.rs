//! Which names an uploaded file may have.

use casebook_protocol::alert::hidden;

/// Parts of a path, at most.
const DEEP: usize = 8;
const LONG: usize = 200;

/// The parts of a path below the folder of the upload.
///
/// # Errors
/// What a name must not have.
pub fn parts(path: &str) -> Result<Vec<&str>, &'static str> {
    let parts: Vec<&str> = path.split('/').collect();
    if parts.len() > DEEP {
        return Err("a path has at most 8 parts");
    }
    for part in &parts {
        if part.is_empty() || *part == "." || *part == ".." {
            return Err("a path has no empty part, no `.` and no `..`");
        }
        if part.len() > LONG || part.starts_with('.') {
            return Err("a name has at most 200 bytes and does not begin with a dot");
        }
        if part.chars().any(|c| hidden(c) || c.is_control() || matches!(c, '\\' | ':')) {
            return Err("a name has no hidden or control character, no backslash and no colon");
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_the_folder() {
        for bad in [
            "",
            "..",
            "a/../b",
            "a//b",
            "/etc/passwd",
            "a\\b",
            "C:x",
            ".ssh/x",
            "a\u{0}b",
            "a\u{202e}b",
            "a\u{200b}b",
            "1/2/3/4/5/6/7/8/9",
            &"x".repeat(201),
        ] {
            assert!(parts(bad).is_err(), "{bad:?}");
        }
        assert_eq!(parts("logs/auth.log").unwrap(), ["logs", "auth.log"]);
    }
}
