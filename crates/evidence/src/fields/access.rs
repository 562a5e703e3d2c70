//! Access logs of web servers, AWS load balancers and the Squid proxy.

use super::field;

/// None if it is not an access log line. A virtual host may come before the client.
pub(crate) fn fields(line: &str) -> Option<Vec<(String, String)>> {
    web(line).or_else(|| balancer(line)).or_else(|| squid(line))
}

/// `time elapsed client result/status bytes method url user hierarchy/peer type`
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

/// AWS load balancers: `[type ]time balancer client:port target:port …three times… status target-status received
/// sent "request" "agent" …`
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
    let mut add = |name: &str, value: &str| out.push(field(name, value));
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
    let mut out = Vec::with_capacity(16);
    let mut add = |name: &str, value: &str| out.push(field(name, value));
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
