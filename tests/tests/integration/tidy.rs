//! Words that make a text hard to read stay out of the documents and out of the program's code and texts.

use std::path::{Path, PathBuf};

use regex::Regex;

/// Each has a plainer form, such as "not a" for "is no", and "show", "report" or "log" for "tell".
const BANNED: &str = r"\b(whoever|nobody|somebody|seldom|for ever|is told|are told|was told|in words|at the most|at the least|so often)\b";
const ENDINGS: [&str; 3] = ["md", "rs", "html"];
/// Folders that no reader of the product meets. Prompts are written for models and change with their version.
const LEFT_OUT: [&str; 5] = ["target", "tests", "prompts", "fixtures", "benches"];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() && !name.starts_with('.') && !LEFT_OUT.contains(&name.as_str()) {
            files(&path, found);
        } else if path.extension().is_some_and(|e| ENDINGS.iter().any(|ending| e == *ending)) && name != "tests.rs" {
            found.push(path);
        }
    }
}

#[test]
fn documents_and_product_have_no_banned_word() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let banned = Regex::new(BANNED).unwrap();
    assert!(banned.is_match("what nobody told it of"));
    let mut all = Vec::new();
    for part in std::fs::read_dir(root).unwrap().flatten().map(|entry| entry.path()) {
        let known = ["crates", "cli", "critic", "deploy", "director", "docs", "expert", "hub", "protocol"];
        if known.iter().any(|name| part.ends_with(name)) {
            files(&part, &mut all);
        } else if part.extension().is_some_and(|e| e == "md") {
            all.push(part);
        }
    }
    assert!(all.len() > 350, "only {} files are found", all.len());
    let mut found = Vec::new();
    for path in &all {
        let text = std::fs::read_to_string(path).unwrap();
        let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
        // `words::` is the module with the words of reports.
        let lines = (1..).zip(text[..end].lines()).filter(|(_, line)| banned.is_match(&line.replace("words::", "")));
        found.extend(lines.map(|(n, line)| format!("{}:{n}: {}", path.display(), line.trim())));
    }
    assert!(found.is_empty(), "write these in plain English:\n{}", found.join("\n"));
}

fn sources(folder: &Path, all: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, all);
        } else if path.extension().is_some_and(|e| e == "rs") {
            all.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn threat_model_and_models_name_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = |name: &str| std::fs::read_to_string(root.join("docs").join(name)).unwrap();
    let (threats, models) = (page("threat-model.md"), page("models.md"));
    let part = |page: &str, from: &str, to: &str| page.split(from).nth(1).unwrap().split(to).next().unwrap().to_owned();
    let promises = part(&threats, "## Promises", "## Not promised");
    let sent = part(&models, "## What is sent", "## Roles");
    let mut code = String::new();
    sources(root, &mut code);
    let (test, suite) = (Regex::new("`([a-z0-9_]+)`").unwrap(), Regex::new("`casebook-lab ([a-z]+)`").unwrap());
    let mut named = 0;
    let heads = ["| promise", "| |", "|---"];
    let rows = promises.lines().chain(sent.lines()).filter(|line| line.starts_with("| "));
    for row in rows.filter(|row| !heads.iter().any(|head| row.starts_with(head))) {
        let shown = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap();
        for name in test.captures_iter(shown).map(|found| found[1].to_owned()) {
            let declared = code.match_indices(&format!("fn {name}(")).any(|(at, _)| {
                let before = code[..at].trim_end_matches("async ").trim_end();
                before.ends_with("#[test]") || before.rsplit("#[").next().is_some_and(|last| last.contains("::test"))
            });
            assert!(declared, "no test has the name {name}");
            named += 1;
        }
        for name in suite.captures_iter(shown).map(|found| found[1].to_owned()) {
            let file = root.join(format!("tests/src/bin/casebook-lab/{name}.rs"));
            assert!(file.exists(), "casebook-lab has no command {name}");
        }
    }
    assert!(named > 55, "only {named} tests are found");
    assert!(threats.lines().count() <= 150);
}

/// The messages of all error types, and of refusals in the command line and the API, in one file for a reader.
#[test]
fn messages_of_errors_are_lower_case_without_a_full_stop() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let message = Regex::new(
        r#"(?s)(?:#\[error\(|Failure::(?:usage|failed|unfinished)\(\s*(?:format!\()?|Problem::new\(\s*Kind::\w+,\s*(?:format!\()?)"((?:[^"\\]|\\.)*)""#,
    );
    let (message, broken) = (message.unwrap(), Regex::new(r"\\\n\s*").unwrap());
    // Names and quoted code may begin with a capital.
    let sentence = Regex::new(r"^[A-Z][a-z]+ [a-z]").unwrap();
    let mut paths = Vec::new();
    for part in ["crates", "cli", "critic", "director", "expert", "hub", "protocol"] {
        files(&root.join(part), &mut paths);
    }
    paths.sort();
    let mut list = String::from("# Error messages by file, for review. `UPDATE_EXPECT=1` writes this file.\n");
    let mut wrong = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|e| e == "rs")) {
        let text = std::fs::read_to_string(path).unwrap();
        let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
        let found: Vec<String> = message
            .captures_iter(&text[..end])
            .map(|one| broken.replace_all(&one[1], "").replace("\\\"", "\""))
            .collect();
        if found.is_empty() {
            continue;
        }
        list += &format!("\n{}\n", path.strip_prefix(root).unwrap().display());
        for one in found {
            list += &format!("  {one}\n");
            if one.ends_with('.')
                || (sentence.is_match(&one) && !one.starts_with("Expert"))
                || one.chars().count() > 300
            {
                wrong.push(one);
            }
        }
    }
    assert!(wrong.is_empty(), "expected lower case, no full stop, at most 300 characters:\n{}", wrong.join("\n"));
    casebook_table::expect_file!["errors.txt"].assert_eq(&list);
}
