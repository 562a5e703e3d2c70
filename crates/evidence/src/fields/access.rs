//! Common and combined web access logs, those of the load balancers of AWS, and the native log of the Squid proxy.

/// The fields of an access log line, or none where it is not one. A virtual host before the client is
/// allowed.
pub(crate) fn fields(line: &str) -> Option<Vec<(String, String)>> {
    web(line).or_else(|| balancer(line)).or_else(|| squid(line))
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

/// `[type ]time balancer client:port target:port …three times… status target-status received sent "request" "agent" …`, as
/// the load balancers of AWS write it.
fn balancer(line: &str) -> Option<Vec<(String, String)>> {
    const NAMES: [&str; 11] = [
        "timestamp",
        "elb",
        "client",
        "target",
        "request_processing_time",
        "target_processing_time",
        "response_processing_time",
        "status",
        "target_status",
        "bytes_received",
        "bytes_sent",
    ];
    let open = line.find(" \"")?;
    let mut words: Vec<&str> = line.get(..open)?.split(' ').collect();
    let mut out = Vec::new();
    let mut add = |name: &str, value: &str| out.push((name.to_owned(), value.to_owned()));
    if words.len() == NAMES.len() + 1 {
        add("type", words.remove(0));
    }
    let [time, _, client, .., status, _, received, sent] = words.as_slice() else { return None };
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let timed = time.ends_with('Z') && time.contains('T');
    if words.len() != NAMES.len() || !timed || ![status, received, sent].into_iter().all(|n| *n == "-" || number(n)) {
        return None;
    }
    let (address, port) = client.rsplit_once(':').filter(|(_, port)| number(port))?;
    for (name, value) in NAMES.iter().zip(&words).filter(|(name, _)| **name != "client") {
        add(name, value);
    }
    add("client_ip", address);
    add("client_port", port);
    let (request, rest) = quoted(line.get(open + 1..)?)?;
    add("request", request);
    let mut words = request.splitn(3, ' ');
    if let (Some(method), Some(url)) = (words.next(), words.next()) {
        add("method", method);
        add("url", url);
    }
    if let Some((agent, rest)) = quoted(rest.trim_start()) {
        add("user_agent", agent);
        add("extra", rest.trim_start());
    }
    Some(out)
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
    fn a_line_of_a_load_balancer() {
        let line = r#"https 2020-01-11T16:55:20.356586Z app/web/jf2 192.168.1.10:44325 192.168.1.123:32869 0.013 0.164 0.000 200 200 391 107999 "GET https://www.example.org:443/a HTTP/1.1" "curl/8" ECDHE TLSv1.2 arn:aws:x "Root=1""#;
        let got: Vec<_> = fields(line).unwrap().into_iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(
            got.join(" | "),
            r#"type=https | timestamp=2020-01-11T16:55:20.356586Z | elb=app/web/jf2 | target=192.168.1.123:32869 | request_processing_time=0.013 | target_processing_time=0.164 | response_processing_time=0.000 | status=200 | target_status=200 | bytes_received=391 | bytes_sent=107999 | client_ip=192.168.1.10 | client_port=44325 | request=GET https://www.example.org:443/a HTTP/1.1 | method=GET | url=https://www.example.org:443/a | user_agent=curl/8 | extra=ECDHE TLSv1.2 arn:aws:x "Root=1""#
        );
        let classic = r#"2015-05-13T23:39:43.945958Z my-elb 192.0.2.1:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 "GET http://www.example.com:80/ HTTP/1.1" "-" - -"#;
        assert_eq!(fields(classic).unwrap()[0].1, "2015-05-13T23:39:43.945958Z");
        assert!(fields(r#"a b c d e f g h i j k "GET /""#).is_none());
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
