use std::fmt;

/// A path relative to the evidence folder. `*` is any part of a name, `**` any characters, and `**/` any folders or
/// none. `\` takes the next character as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePattern {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Char(char),
    InName,
    Any,
    Folders,
}

impl FilePattern {
    /// Errors: The path is empty, absolute, or leaves the folder.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        let mut parts = Vec::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let begins = matches!(parts.last(), None | Some(Part::Char('/') | Part::Folders));
            let part = match c {
                '\\' => Part::Char(chars.next().ok_or("ends with \"\\\"; write \"\\\\\" for the character itself")?),
                '*' if chars.next_if_eq(&'*').is_some() => match begins && chars.next_if_eq(&'/').is_some() {
                    true => Part::Folders,
                    false => Part::Any,
                },
                '*' => Part::InName,
                c => Part::Char(c),
            };
            parts.push(part);
        }
        if text.is_empty() || text.starts_with('/') || text.split('/').any(|step| matches!(step, "" | "." | "..")) {
            return Err("expected a path below the evidence folder; write one such as audit/*.log");
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    /// The pattern that matches this file only.
    pub fn exact(file: &str) -> String {
        file.chars().flat_map(|c| matches!(c, '*' | '\\').then_some('\\').into_iter().chain([c])).collect()
    }

    pub fn matches(&self, file: &str) -> bool {
        let file: Vec<char> = file.chars().collect();
        // The ends of `file` that the parts so far may leave over: at[n] is true if they match the first n characters.
        let mut at = vec![false; file.len() + 1];
        if let Some(start) = at.first_mut() {
            *start = true;
        }
        for part in &self.parts {
            let mut next = vec![false; at.len()];
            let (mut before, mut begun) = (false, false);
            for (n, there) in at.iter().enumerate() {
                let c = n.checked_sub(1).and_then(|n| file.get(n)).copied();
                let earlier = n.checked_sub(1).and_then(|n| at.get(n)).copied().unwrap_or(false);
                before = match part {
                    Part::Char(wanted) => earlier && c == Some(*wanted),
                    Part::InName => *there || (before && c != Some('/')),
                    Part::Any => *there || before,
                    Part::Folders => *there || (begun && c == Some('/')),
                };
                begun |= *there;
                if let Some(next) = next.get_mut(n) {
                    *next = before;
                }
            }
            at = next;
        }
        at.last().copied().unwrap_or(false)
    }
}

impl fmt::Display for FilePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
