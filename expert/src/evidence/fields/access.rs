//! Common and combined web access logs, and the native log of the Squid proxy.

/// The fields of an access log line, or none where it is not one. A virtual host before the client is
/// allowed.
pub(crate) fn fields(line: &str) -> Option<Vec<(String, String)>> {
    web(line).or_else(|| squid(line))
}

/// `time elapsed client result/status bytes method url user hierarchy/peer type`, as Squid writes it.
fn squid(line: &str) -> Option<Vec<(String, String)>> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [ts, elapsed, client, result, bytes, method, url, user, hierarchy, kind] = words.as_slice() else {
        return None;
    };
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let (cache, status) = result.split_once('/')?;
    let (path, peer) = hierarchy.split_once('/')?;
    let shouted = |text: &str| text.bytes().all(|b| b.is_ascii_uppercase() || b == b'_' || b.is_ascii_digit());
    if !(number(ts)
        && ts.contains('.')
        && number(elapsed)
        && number(bytes)
        && number(status)
        && shouted(cache)
        && shouted(method)
        && shouted(path))
    {
        return None;
    }
    let pairs = [
        ("ts", *ts),
        ("elapsed_ms", elapsed),
        ("client_ip", client),
        ("cache_result", cache),
        ("status", status),
        ("bytes", bytes),
        ("method", method),
        ("url", url),
        ("user", user),
        ("hierarchy", path),
        ("peer", peer),
        ("content_type", kind),
    ];
    Some(pairs.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect())
}

fn web(line: &str) -> Option<Vec<(String, String)>> {
    let open = line.find(" [")?;
    let close = open + line.get(open..)?.find(']')?;
    let mut who = line.get(..open)?.split(' ').filter(|w| !w.is_empty()).collect::<Vec<_>>();
    let user = who.pop()?;
    let _identity = who.pop()?;
    let client = who.pop()?;
    if who.len() > 1 || !client.contains(['.', ':']) && client != "localhost" && client != "-" {
        return None;
    }
    let mut out = Vec::new();
    let mut add = |name: &str, value: &str| out.push((name.to_owned(), value.to_owned()));
    if let Some(host) = who.pop() {
        add("vhost", host);
    }
    add("client_ip", client);
    add("user", user);
    add("timestamp", line.get(open + 2..close)?);
    let rest = line.get(close + 1..)?.trim_start();
    let (request, rest) = quoted(rest)?;
    add("request", request);
    let mut words = request.splitn(3, ' ');
    if let (Some(method), Some(path)) = (words.next(), words.next()) {
        add("method", method);
        add("path", path);
    }
    let mut rest = rest.trim_start();
    for name in ["status", "bytes"] {
        let (value, after) = rest.split_once(' ').unwrap_or((rest, ""));
        if name == "status" && !(value.len() == 3 && value.bytes().all(|b| b.is_ascii_digit())) {
            return None;
        }
        add(name, value);
        rest = after.trim_start();
    }
    for name in ["referer", "user_agent", "forwarded_for"] {
        let Some((value, after)) = quoted(rest) else { break };
        add(name, value);
        rest = after.trim_start();
    }
    if !rest.is_empty() {
        add("extra", rest);
    }
    Some(out)
}

/// What stands in quotes at the beginning of `text`, and what follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('"')?;
    let bytes = inner.as_bytes();
    let mut at = 0;
    loop {
        match bytes.get(at)? {
            b'"' => return Some((inner.get(..at)?, inner.get(at + 1..)?)),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_combined_line() {
        let line = r#"10.0.0.9 - bob [10/Oct/2000:13:55:36 -0700] "GET /a?b=\"c HTTP/1.0" 200 2326 "http://x/" "curl/8" 0.003"#;
        let got: Vec<_> = fields(line).unwrap().into_iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(
            got.join(" | "),
            r#"client_ip=10.0.0.9 | user=bob | timestamp=10/Oct/2000:13:55:36 -0700 | request=GET /a?b=\"c HTTP/1.0 | method=GET | path=/a?b=\"c | status=200 | bytes=2326 | referer=http://x/ | user_agent=curl/8 | extra=0.003"#
        );
        assert!(fields("Oct 10 13:55:36 web sshd[1]: [preauth] \"x\"").is_none());
    }

    #[test]
    fn a_line_of_squid() {
        let line = "1795305344.268     88 10.20.0.11 TCP_MISS/200 443272 GET http://deb.example.org/a.deb - HIER_DIRECT/10.20.0.1 application/x-debian-package";
        let got: Vec<_> = fields(line).unwrap().into_iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(
            got.join(" | "),
            "ts=1795305344.268 | elapsed_ms=88 | client_ip=10.20.0.11 | cache_result=TCP_MISS | status=200 | bytes=443272 | method=GET | url=http://deb.example.org/a.deb | user=- | hierarchy=HIER_DIRECT | peer=10.20.0.1 | content_type=application/x-debian-package"
        );
        assert!(fields("1 2 3 4 5 6 7 8 9 10").is_none());
    }
}
