//! The audit log of ModSecurity. A transaction has parts between lines such as `--d67af501-A--`: A has client
//! and time, B the request, C its body, F the response, H the messages of the rules.

use super::ids;

type Fields = Vec<(String, String)>;

/// In characters.
const BODY_KEPT: usize = 8 << 10;
const SAID_MAX: usize = 32;

/// The id and part letter of a separator line. Version 3 writes `---n9wJcf8e---A--`.
pub(crate) fn boundary(line: &[u8]) -> Option<(&[u8], u8)> {
    let inner = line.trim_ascii_end().strip_prefix(b"--")?.strip_suffix(b"--")?;
    let inner = inner.strip_prefix(b"-").unwrap_or(inner);
    let [id @ .., b'-', part] = inner else { return None };
    let id = id.strip_suffix(b"--").unwrap_or(id);
    let plain = (6..=32).contains(&id.len()) && id.iter().all(u8::is_ascii_alphanumeric);
    (plain && part.is_ascii_uppercase()).then_some((id, *part))
}

pub(crate) fn fields(text: &str) -> Option<Fields> {
    let mut lines = text.lines();
    let (id, _) = lines.next().and_then(|line| boundary(line.as_bytes())).filter(|(_, part)| *part == b'A')?;
    let mut parts: Vec<(u8, Vec<&str>)> = vec![(b'A', Vec::new())];
    for line in lines {
        match boundary(line.as_bytes()).filter(|(of, _)| *of == id) {
            Some((_, part)) => parts.push((part, Vec::new())),
            None => parts.last_mut()?.1.push(line),
        }
    }
    let part = |wanted: u8| parts.iter().find(|(part, _)| *part == wanted).map(|(_, lines)| lines.as_slice());
    let mut out = Vec::new();
    whose(part(b'A')?.first()?, &mut out)?;
    if let Some(request) = part(b'B') {
        asked(request, &mut out);
    }
    if let Some(body) = part(b'C').map(|lines| lines.join("\n")).filter(|body| !body.trim().is_empty()) {
        out.push(("request_body".to_owned(), body.chars().take(BODY_KEPT).collect()));
    }
    let status = part(b'F').and_then(|lines| lines.first()).and_then(|line| line.split(' ').nth(1));
    out.extend(status.map(|status| ("status".to_owned(), status.to_owned())));
    if let Some(said) = part(b'H') {
        rules(said, &mut out);
    }
    Some(out)
}

/// `[time zone] id client port server port`.
fn whose(line: &str, out: &mut Fields) -> Option<()> {
    let (time, rest) = line.strip_prefix('[')?.split_once("] ")?;
    // Some versions write both signs of a zone.
    out.push(("timestamp".to_owned(), time.replace(" --", " -")));
    let names = ["transaction_id", "client_ip", "client_port", "dest_ip", "dest_port"];
    out.extend(names.iter().zip(rest.split_whitespace()).map(|(name, value)| ((*name).to_owned(), value.to_owned())));
    Some(())
}

fn asked(lines: &[&str], out: &mut Fields) {
    let mut add = |name: String, value: &str| out.push((name, value.to_owned()));
    let Some(first) = lines.first() else { return };
    add("request".to_owned(), first);
    let mut words = first.splitn(2, ' ');
    if let (Some(method), Some(rest)) = (words.next(), words.next()) {
        add("method".to_owned(), method);
        // A path that is not encoded may contain blanks.
        add("path".to_owned(), rest.rsplit_once(" HTTP/").map_or(rest, |(path, _)| path));
    }
    let headers = || lines.iter().skip(1).filter_map(|line| line.split_once(':'));
    for (header, field) in [("host", "vhost"), ("user-agent", "user_agent"), ("referer", "referer")] {
        let value = headers().find(|(name, _)| name.eq_ignore_ascii_case(header)).map(|(_, value)| value.trim());
        value.into_iter().for_each(|value| add(field.to_owned(), value));
    }
    // The client chooses the other header names, so none may become a field.
    let known = |name: &str| ["host", "user-agent", "referer"].iter().any(|k| name.eq_ignore_ascii_case(k));
    let others: Vec<String> =
        headers().filter(|(name, _)| !known(name)).map(|(name, value)| format!("{name}: {}", value.trim())).collect();
    if !others.is_empty() {
        add("request_headers".to_owned(), &others.join("\n"));
    }
}

/// The messages of the rules, without repeats, and whether the request was allowed.
fn rules(lines: &[&str], out: &mut Fields) {
    let (mut said, mut ids) = (Vec::new(), Vec::new());
    for line in lines {
        let Some((name, value)) = line.split_once(": ") else { continue };
        match name {
            "Message" | "ModSecurity" => {
                let Some(list) = list(value) else { continue };
                let keep = |all: &mut Vec<String>, name: &str| {
                    let found = of(&list, name).filter(|new| all.len() < SAID_MAX && !all.contains(new));
                    all.extend(found);
                };
                keep(&mut said, "msg");
                keep(&mut ids, "id");
            }
            "Action" | "Engine-Mode" | "Stopwatch" => {
                out.push((name.to_ascii_lowercase().replace('-', "_"), value.trim().trim_matches('"').to_owned()));
            }
            _ => {}
        }
    }
    for (name, all) in [("message", said), ("rule_ids", ids)] {
        if !all.is_empty() {
            out.push((name.to_owned(), all.join("; ")));
        }
    }
}

/// A message of ModSecurity or Coraza in the error log of a web server, with the field names of a Suricata
/// alert: `[client "10.0.0.1"] Coraza: Warning. … [file "…"] [id "932230"] [msg "…"] [data "…"] … [uri "/a"]
/// [unique_id "…"]`. Such text elsewhere in a line, as in a path or a user name, comes from the client and is
/// ignored.
pub(crate) fn said(text: &str) -> Option<Fields> {
    let (client, rule) = begun(text)?;
    let list = list(rule)?;
    let mut fields = vec![
        ("event_type".to_owned(), "alert".to_owned()),
        ("alert.signature_id".to_owned(), of(&list, "id")?),
        ("transaction_id".to_owned(), of(&list, "unique_id")?),
    ];
    let mut add = |name: &str, value: Option<String>| {
        fields.extend(value.filter(|value| !value.is_empty()).map(|value| (name.to_owned(), value)));
    };
    add("alert.signature", of(&list, "msg"));
    // The severity of the rule, not of this request.
    add("alert.rule_severity", of(&list, "severity"));
    add("alert.matched", of(&list, "data"));
    add("client_ip", client);
    add("http.hostname", of(&list, "hostname"));
    add("http.url", of(&list, "uri"));
    Some(fields)
}

/// The client and the message. Before the name of the engine, only bracketed groups and the numbers of a
/// process, a thread and a connection are allowed.
fn begun(text: &str) -> Option<(Option<String>, &str)> {
    let mut rest = text.trim_start();
    let mut client = None;
    loop {
        if let Some(rule) = rest.strip_prefix("ModSecurity: ").or_else(|| rest.strip_prefix("Coraza: ")) {
            return Some((client, rule));
        }
        let used = match rest.strip_prefix('[') {
            Some(group) => {
                let end = group.find(']')?;
                let inner = group.get(..end)?;
                if let Some(who) = inner.strip_prefix("client ") {
                    client.get_or_insert_with(|| ids::end(who.trim_matches('"')).0.to_owned());
                }
                end + 2
            }
            None => {
                let word = rest.split_whitespace().next()?;
                if !word.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'#' | b'*' | b':')) {
                    return None;
                }
                word.len()
            }
        };
        rest = rest.get(used..)?.trim_start();
    }
}

/// The groups `[name "value"]`, from the file to the end or to `, client: …`. Matched text of the client may
/// contain such groups: before them, where they do not continue to the end, or inside one, where quotes have
/// backslashes.
fn list(text: &str) -> Option<Vec<(&str, String)>> {
    const TRIED: usize = 8;
    text.match_indices("[file \"").take(TRIED).find_map(|(at, _)| groups(text.get(at..)?))
}

fn groups(text: &str) -> Option<Vec<(&str, String)>> {
    let mut all = Vec::new();
    let mut rest = text.trim_end();
    while let Some(group) = rest.strip_prefix('[') {
        let (name, value) = group.split_once(" \"")?;
        let mut text = String::new();
        let mut chars = value.char_indices();
        let end = loop {
            match chars.next()? {
                (at, '"') => break at,
                (_, '\\') => text.push(chars.next()?.1),
                (_, c) => text.push(c),
            }
        };
        all.push((name, text));
        rest = value.get(end + 1..)?.strip_prefix(']')?.trim_start();
    }
    (rest.is_empty() || rest.starts_with(", ")).then_some(all)
}

fn of(list: &[(&str, String)], name: &str) -> Option<String> {
    list.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_between_parts_has_an_id_and_one_letter() {
        assert_eq!(boundary(b"--0a1b2c3d-Z--\r\n"), Some((b"0a1b2c3d".as_slice(), b'Z')));
        for other in
            ["--a-Z--", "--0a1b2c3d-z--", "--0a1b2c3d-ZZ--", "-0a1b2c3d-Z--", "--0a1b2c3d-Z", "----", "--ü1b2c3d-A--"]
        {
            assert_eq!(boundary(other.as_bytes()), None, "{other}");
        }
    }
}
