//! Transactions as ModSecurity's audit log has them: parts between lines such as `--d67af501-A--`, of which A says who and when, B is
//! the request, C its body, F the answer, and H what the rules said.

type Fields = Vec<(String, String)>;

/// So many characters of a request's body are kept.
const BODY_KEPT: usize = 8 << 10;
/// So many words of rules are kept.
const SAID_MAX: usize = 32;

/// The id and the part of a line between parts.
pub(crate) fn boundary(line: &[u8]) -> Option<(&[u8], u8)> {
    let inner = line.trim_ascii_end().strip_prefix(b"--")?.strip_suffix(b"--")?;
    let [id @ .., b'-', part] = inner else { return None };
    let plain = (6..=32).contains(&id.len()) && id.iter().all(u8::is_ascii_alphanumeric);
    (plain && part.is_ascii_uppercase()).then_some((id, *part))
}

/// The fields of a transaction.
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

/// The first line of the request, and its headers.
fn asked(lines: &[&str], out: &mut Fields) {
    let mut add = |name: String, value: &str| out.push((name, value.to_owned()));
    let Some(first) = lines.first() else { return };
    add("request".to_owned(), first);
    let mut words = first.splitn(2, ' ');
    if let (Some(method), Some(rest)) = (words.next(), words.next()) {
        add("method".to_owned(), method);
        // An address that was not encoded may hold blanks.
        add("path".to_owned(), rest.rsplit_once(" HTTP/").map_or(rest, |(path, _)| path));
    }
    for (name, value) in lines.iter().skip(1).filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "user-agent" => add("user_agent".to_owned(), value),
            "referer" => add("referer".to_owned(), value),
            "host" => add("vhost".to_owned(), value),
            other => add(format!("header.{other}"), value),
        }
    }
}

/// What the rules said, each once, and whether the request was let through.
fn rules(lines: &[&str], out: &mut Fields) {
    let (mut said, mut ids) = (Vec::new(), Vec::new());
    for line in lines {
        let Some((name, value)) = line.split_once(": ") else { continue };
        match name {
            "Message" => {
                let keep = |all: &mut Vec<String>, found: Option<String>| {
                    all.extend(found.filter(|new| all.len() < SAID_MAX && !all.contains(new)));
                };
                keep(&mut said, bracketed(value, "msg"));
                keep(&mut ids, bracketed(value, "id"));
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

/// What a rule of ModSecurity or Coraza says in the log of a web server, `[client "10.0.0.1"] Coraza: Warning. … [id "932230"] [msg "…"]
/// [data "…"] … [uri "/a"]`, under the names that Suricata's JSON has for an alert.
pub(crate) fn said(text: &str) -> Option<Fields> {
    let engine = ["ModSecurity: ", "Coraza: "].iter().filter_map(|name| text.find(name)).min()?;
    let (before, rule) = text.split_at_checked(engine)?;
    let mut fields =
        vec![("event_type".to_owned(), "alert".to_owned()), ("alert.signature_id".to_owned(), bracketed(rule, "id")?)];
    let mut add = |name: &str, value: Option<String>| {
        fields.extend(value.filter(|value| !value.is_empty()).map(|value| (name.to_owned(), value)));
    };
    // Behind what was matched stands what the client chose, in which quotes have a backslash before them.
    let last = |name: &str| rule.rfind(&format!("[{name} \"")).and_then(|at| bracketed(rule.get(at..)?, name));
    add("alert.signature", bracketed(rule, "msg"));
    // How grave the attack would be, if it were one: no judgement of the request.
    add("alert.rule_severity", last("severity"));
    add("alert.matched", bracketed(rule, "data"));
    add("src_ip", client(before));
    add("http.hostname", last("hostname"));
    add("http.url", last("uri"));
    add("transaction_id", last("unique_id"));
    Some(fields)
}

/// The address in `[client 10.0.0.1:4711]` or `[client "10.0.0.1"]`.
fn client(text: &str) -> Option<String> {
    let (inner, _) = text.split_once("[client ")?.1.split_once(']')?;
    let inner = inner.trim_matches('"');
    let port = inner.rsplit_once(':').filter(|(ip, _)| !ip.contains(':'));
    Some(port.map_or(inner, |(ip, _)| ip).to_owned())
}

/// The value of `[name "value"]` in what a rule says. What it matched stands there, too, so the first counts.
fn bracketed(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("[{name} \""))?;
    let mut value = String::new();
    let mut chars = rest.chars();
    loop {
        match chars.next()? {
            '"' => return Some(value),
            '\\' => value.push(chars.next()?),
            c => value.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "--0a1b2c3d-A--\n[07/Jun/2023:18:56:56 --0400] ZIELM9 10.0.0.50 38632 10.0.0.12 8080\n\
        --0a1b2c3d-B--\nPOST /admin ajax.php?x=1 HTTP/1.1\nHost: 10.0.0.12:8080\nUser-Agent: probe/1\nCookie: a=b\n\n\
        --0a1b2c3d-C--\npollid=2 AND SLEEP(5)\n--ffffffff-H--\nAction: of the body\n\
        --0a1b2c3d-F--\nHTTP/1.1 200 OK\n\n--0a1b2c3d-H--\n\
        Message: Warning. [id \"942100\"] [msg \"SQL \\\"Injection\\\"\"] [data \"[msg \\\"none\\\"]\"]\n\
        Message: Warning. [id \"942100\"] [msg \"SQL \\\"Injection\\\"\"]\nMessage: [id \"949110\"] [msg \"Score (Total: 18)\"]\n\
        Stopwatch: 1 2 (- - -)\nEngine-Mode: \"DETECTION_ONLY\"\n--0a1b2c3d-Z--\n";

    #[test]
    fn a_transaction_says_who_asked_for_what_and_what_the_rules_said() {
        let got: Vec<_> = fields(ONE).unwrap().into_iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(
            got.join(" | "),
            "timestamp=07/Jun/2023:18:56:56 -0400 | transaction_id=ZIELM9 | client_ip=10.0.0.50 | client_port=38632 | \
             dest_ip=10.0.0.12 | dest_port=8080 | request=POST /admin ajax.php?x=1 HTTP/1.1 | method=POST | \
             path=/admin ajax.php?x=1 | vhost=10.0.0.12:8080 | user_agent=probe/1 | header.cookie=a=b | \
             request_body=pollid=2 AND SLEEP(5)\n--ffffffff-H--\nAction: of the body | status=200 | \
             stopwatch=1 2 (- - -) | engine_mode=DETECTION_ONLY | message=SQL \"Injection\"; Score (Total: 18) | \
             rule_ids=942100; 949110"
        );
        assert!(fields("--0a1b2c3d-B--\nGET / HTTP/1.1\n").is_none() && fields("--0a1b2c3d-A--\n").is_none());
    }

    #[test]
    fn a_rule_in_the_log_of_a_server_is_an_alert() {
        let check = |text: &str, expect: &str| {
            let got = said(text).map(|all| all.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" | "));
            assert_eq!(got.unwrap_or_default(), expect, "{text}");
        };
        check(
            r#"[client "10.0.0.1"] Coraza: Warning. A (b) [file "/x"] [id "932230"] [rev ""] [msg "A (b)"] [data "found [uri \"/no\"] [severity \"low\"]"] [severity "critical"] [hostname ""] [uri "/api"] [unique_id "q1"]"#,
            r#"event_type=alert | alert.signature_id=932230 | alert.signature=A (b) | alert.rule_severity=critical | alert.matched=found [uri "/no"] [severity "low"] | src_ip=10.0.0.1 | http.url=/api | transaction_id=q1"#,
        );
        check(
            r#"[Wed Jun 07 18:56:56 2023] [:error] [pid 7] [client 10.0.0.1:38632] [client 10.0.0.1] ModSecurity: Warning. [id "942100"] [msg "SQL"]"#,
            "event_type=alert | alert.signature_id=942100 | alert.signature=SQL | src_ip=10.0.0.1",
        );
        check(r#"[client 10.0.0.1] File does not exist: [id "1"]"#, "");
    }

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
