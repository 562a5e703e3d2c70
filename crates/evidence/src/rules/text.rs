//! Sentences about rules that cannot be used: what is wrong, and what to write.

/// The sentence for an error of the library.
pub(super) fn advised(error: &str) -> String {
    let named = || error.split(['\'', '`', '"']).nth(1).unwrap_or_default().to_owned();
    let rest = |prefix: &str| error.strip_prefix(prefix).map(str::trim).unwrap_or_default().to_owned();
    let starts = |prefix: &str| error.starts_with(prefix);
    if starts("YAML parse error: ") {
        return format!("expected YAML: {}", rest("YAML parse error: "));
    }
    if starts("Document is not a YAML mapping") {
        return "expected a rule with keys such as title: and detection:".into();
    }
    if starts("Unknown modifier") {
        return modifier(&named());
    }
    if starts("Missing required field") {
        return format!("{}: missing; a rule needs title, logsource and detection with a condition", named());
    }
    if starts("Unknown collection action") || starts("collection 'action'") || starts("'action: repeat'") {
        return "action: not supported; write each rule as a whole document".into();
    }
    if let Some(name) = error.strip_prefix("unknown detection identifier: ") {
        return unknown_selection(name, &[]);
    }
    if starts("Condition parse error") {
        return "detection.condition: expected names of selections joined with and, or, not, 1 of, all of".into();
    }
    if let Some(why) = error.strip_prefix("invalid regex pattern: ") {
        let why = why.rsplit("error: ").next().unwrap_or(why).trim_end_matches('.');
        return format!("detection: expected a regular expression: {}; write a simpler one", one_line(why));
    }
    if starts("Invalid timespan") {
        return "correlation.timespan: expected a time; write one such as 10m".into();
    }
    if starts("invalid CIDR") {
        return "detection: expected a range of addresses; write one such as 10.0.0.0/8".into();
    }
    if let Some(got) = error.strip_prefix("expected numeric value: ") {
        return format!("detection: expected a number, got \"{}\"", one_line(got));
    }
    if starts("invalid modifier combination") || starts("incompatible value") {
        return format!("detection: {}; remove a modifier", one_line(error));
    }
    if starts("`not` is not a value modifier") {
        return "detection: there is no modifier \"not\"; write \"not\" in the condition".into();
    }
    if starts("Condition string too long") {
        return "condition: too long; write a shorter one".into();
    }
    if starts("Unknown correlation type") || error.contains("correlation type") {
        return "correlation.type: expected event_count, value_count, temporal or temporal_ordered".into();
    }
    if error.contains("must have an operator") || error.contains("requires a condition") {
        return "correlation.condition: expected a number; write one such as gte: 10".into();
    }
    if error.contains("logsource must be a mapping") {
        return "logsource: expected product, category or service below it".into();
    }
    let error = ["Invalid rule: ", "Invalid detection: ", "Invalid correlation rule: ", "Invalid value: "]
        .iter()
        .find_map(|prefix| error.strip_prefix(prefix))
        .unwrap_or(error);
    format!("{}; compare it with the examples in docs/rules.md", one_line(error))
}

fn modifier(name: &str) -> String {
    const KNOWN: [&str; 18] = [
        "contains",
        "startswith",
        "endswith",
        "all",
        "re",
        "cidr",
        "cased",
        "exists",
        "fieldref",
        "gt",
        "gte",
        "lt",
        "lte",
        "neq",
        "base64",
        "base64offset",
        "wide",
        "windash",
    ];
    let near = KNOWN.iter().min_by_key(|known| strsim::osa_distance(known, name)).copied().unwrap_or_default();
    format!("detection: unknown modifier \"{name}\"; the nearest is \"{near}\"; there are {}", KNOWN.join(", "))
}

pub(super) fn unknown_selection(name: &str, known: &[&str]) -> String {
    let mut known = known.to_vec();
    known.sort_unstable();
    let there = if known.is_empty() { String::new() } else { format!("; there are {}", known.join(", ")) };
    format!("condition: \"{name}\" selects nothing{there}")
}

fn one_line(text: &str) -> String {
    casebook_protocol::one_line(text, 300)
}

/// `sentence` without the place that a library names in it, which counts from the beginning of the document.
pub(super) fn without_place(sentence: &str) -> String {
    let mut parts = sentence.split(" at line ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let numbers = |c: char| c.is_ascii_digit() || c == ' ';
        text.push_str(part.trim_start_matches(numbers).trim_start_matches("column").trim_start_matches(numbers));
    }
    text
}

/// The line (from 1) of `text` that a sentence is about, by the key or the name that it begins with or quotes.
pub(super) fn line(text: &str, sentence: &str) -> usize {
    let of = |wanted: &dyn Fn(&str) -> bool| text.lines().position(wanted).map(|at| at + 1);
    if let Some(number) = sentence.split("at line ").nth(1) {
        let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
        if let Ok(number) = digits.parse::<usize>() {
            return number.clamp(1, text.lines().count().max(1));
        }
    }
    let quoted = sentence.split('"').nth(1).filter(|name| !name.is_empty());
    let key = sentence.split(':').next().unwrap_or_default().rsplit('.').next().unwrap_or_default();
    let has_key = |line: &str| line.trim_start().trim_start_matches("- ").starts_with(&format!("{key}:"));
    let both = |line: &str| has_key(line) && quoted.is_none_or(|name| line.contains(name));
    of(&both)
        .or_else(|| of(&|line: &str| quoted.is_some_and(|name| line.contains(name))))
        .or_else(|| of(&has_key))
        .or_else(|| of(&|line: &str| line.contains(&format!("{key}:"))))
        .or_else(|| of(&|line: &str| !line.trim().is_empty() && !line.starts_with('#')))
        .unwrap_or(1)
}
