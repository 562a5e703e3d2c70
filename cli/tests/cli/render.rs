//! What the three forms of a report look like, and what hostile text in it can never do.

use std::collections::BTreeSet;

use casebook_report::{Form, html, markdown};
use casebook_trust::Backing;

use crate::fixture::{self, HOSTILE};
use crate::html::{Tag, tags};

fn nothing_hidden(text: &str) {
    let raw: Vec<char> =
        text.chars().filter(|&c| c != '\n' && c != '\t' && casebook_protocol::alert::hidden(c)).collect();
    assert!(raw.is_empty(), "{raw:?}");
    assert!(text.contains("⟨U+202E⟩") && text.contains("⟨U+001B⟩") && text.contains("⟨U+E0041⟩"));
}

/// The whole text, compared with the one on file. `UPDATE=1 cargo test` writes it anew.
fn on_file(name: &str, text: &str) {
    let path = format!("{}/tests/cli/expected/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(
        expected == text,
        "{name} is not as on file: look at the change after `UPDATE=1 cargo test -p casebook-cli`"
    );
}

#[test]
fn markdown_reads_as_on_file() {
    let text = markdown::render(&fixture::report(), &fixture::backing());
    nothing_hidden(&text);
    on_file("report.md", &text);
}

#[test]
fn markdown_tells_what_counts_in_its_first_ten_lines() {
    let text = markdown::render(&fixture::report(), &fixture::backing());
    let head: String = text.lines().take(10).collect::<Vec<_>>().join("\n");
    for needed in [
        "Inconclusive",
        "a person must look",
        "benign positive",
        "**Missing:** two independent",
        "Stopped early",
        "**Do first:** Ask the owner",
    ] {
        assert!(head.contains(needed), "{needed} is not in\n{head}");
    }
}

/// What is left of a Markdown text when its code is taken out.
fn without_code(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut rest = line;
        while let Some(start) = rest.find('`').filter(|&i| !rest[..i].ends_with('\\')) {
            let fence: String = rest[start..].chars().take_while(|&c| c == '`').collect();
            let inside = start + fence.len();
            let Some(end) = rest[inside..].find(&fence) else { break };
            out.push_str(&rest[..start]);
            rest = &rest[inside + end + fence.len()..];
        }
        out.push_str(rest);
        out.push('\n');
    }
    out
}

#[test]
fn hostile_text_stays_text_in_markdown() {
    let text = without_code(&markdown::render(&fixture::report(), &fixture::backing()));
    for syntax in ["<script", "](javascript", "![", "https://", "@admin"] {
        let bare = text.match_indices(syntax).filter(|(i, _)| !text[..*i].ends_with('\\')).count();
        assert_eq!(bare, 0, "{syntax} stands bare");
    }
}

#[test]
fn html_reads_as_on_file() {
    on_file("report.html", &html::render(&fixture::report(), &fixture::backing()));
}

fn page() -> (String, Vec<Tag>) {
    let page = html::render(&fixture::report(), &fixture::backing());
    let tags = tags(&page).unwrap();
    (page, tags)
}

#[test]
fn hostile_text_stays_text_in_html() {
    let (page, tags) = page();
    nothing_hidden(&page);
    for tag in &tags {
        assert!(
            !matches!(tag.name.as_str(), "script" | "img" | "iframe" | "link" | "base" | "form" | "object"),
            "{tag:?}"
        );
        for (key, value) in &tag.attributes {
            assert!(!key.starts_with("on") && key != "style" && key != "src", "{tag:?}");
            assert!(key != "href" || value.starts_with('#'), "{tag:?}");
        }
    }
    assert!(page.contains("&#60;script&#62;alert(1)&#60;/script&#62;"));
}

#[test]
fn every_link_has_its_end_and_every_end_is_one() {
    let (_, tags) = page();
    let ids: Vec<&str> = tags.iter().filter_map(|tag| tag.get("id")).collect();
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len());
    let links: Vec<&str> = tags.iter().filter_map(|tag| tag.get("href")?.strip_prefix('#')).collect();
    assert!(links.len() > 20);
    for link in links {
        assert!(unique.contains(link), "#{link} leads nowhere");
    }
}

#[test]
fn a_statement_leads_to_its_record_and_its_tool_call() {
    let (page, tags) = page();
    let has = |key: &str, value: &str| tags.iter().any(|tag| tag.get(key) == Some(value));
    assert!(has("href", "#f-r1-endpoint-1") && has("id", "f-r1-endpoint-1"), "event to finding");
    assert!(has("href", "#c-r1-endpoint-1-1") && has("id", "c-r1-endpoint-1-1"), "event to cited record");
    assert!(
        has("href", "#call-r1.investigate.endpoint.t1.0") && has("id", "call-r1.investigate.endpoint.t1.0"),
        "citation to call"
    );
    assert!(
        page.contains("endpoint_process.ndjson:4812") && page.contains("ParentImage"),
        "the record's place and text"
    );
    assert!(page.contains("record&#39;s own time") && page.contains("inferred"), "how the time is known");
}

#[test]
fn the_policy_allows_the_pages_own_style_and_nothing_else() {
    let (page, tags) = page();
    let policy = tags
        .iter()
        .find(|t| t.get("http-equiv") == Some("Content-Security-Policy"))
        .and_then(|t| t.get("content"))
        .unwrap();
    let style = page.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    let hash = base64(&casebook_protocol::hash::sha256_hex(style.as_bytes()));
    assert_eq!(policy, format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"));
}

fn base64(hex: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect();
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            out.push(if i > chunk.len() { '=' } else { char::from(LETTERS[(word >> (18 - 6 * i) & 63) as usize]) });
        }
    }
    out
}

#[test]
fn the_same_report_gives_the_same_text() {
    for form in Form::ALL {
        assert_eq!(
            form.render(&fixture::report(), &fixture::backing()).unwrap(),
            form.render(&fixture::report(), &fixture::backing()).unwrap()
        );
    }
}

#[test]
fn json_has_at_least_what_is_promised() {
    let text = Form::Json.render(&fixture::report(), &Backing::default()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    for pointer in [
        "/verdict",
        "/timeline/events/0/time",
        "/timeline/events/0/description",
        "/timeline/events/0/score",
        "/timeline/events/0/evidence/0/file",
        "/timeline/events/0/evidence/0/line",
        "/timeline/gaps/0/kind",
        "/timeline/gaps/0/description",
        "/timeline/score",
        "/findings/0",
        "/usage/total",
    ] {
        assert!(json.pointer(pointer).is_some(), "{pointer}");
    }
}

#[test]
fn an_empty_report_is_a_page_too() {
    let mut report = fixture::report();
    report.findings.clear();
    report.timeline.events.clear();
    report.timeline.gaps.clear();
    report.calls.clear();
    report.journal.clear();
    report.rests_on.clear();
    report.root_cause.clear();
    let page = html::render(&report, &Backing::default());
    assert!(tags(&page).is_ok(), "{:?}", tags(&page));
    assert!(markdown::render(&report, &Backing::default()).contains("No Expert submitted a finding."));
    assert!(page.contains(&HOSTILE[..0]));
}
