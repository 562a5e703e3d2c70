//! Stories that a pattern of the `casebook:` block tells, each with a recording in which it did not happen.

use serde_json::{Value, json};

use super::stories::{NOTHING, lines, syslog, time, told};
use super::*;

/// A connection in Zeek's terms.
fn flow(second: u32, from: &str, to: &str) -> Value {
    json!({"ts": time(second) + "Z", "uid": format!("C{second}"), "id.orig_h": from, "id.orig_p": 40022, "id.resp_h": to,
        "id.resp_p": 443, "proto": "tcp", "conn_state": "SF", "orig_bytes": 312, "resp_bytes": 96})
}

const BEACON: &str = "Connections to one public address at even intervals x1";

#[test]
fn host_calls_an_address_at_even_intervals() {
    let beats = |gap: fn(u32) -> u32, to: &'static str| (0..40).map(move |n| flow(gap(n), "10.0.0.7", to));
    let even: fn(u32) -> u32 = |n| n * 300 + n % 4;
    let person: fn(u32) -> u32 = |n| n * n * 11;
    assert_eq!(told("conn.log", lines(beats(even, "203.0.113.9"))), [BEACON]);
    assert_eq!(told("conn.log", lines(beats(person, "203.0.113.9"))), NOTHING);
    assert_eq!(told("conn.log", lines(beats(even, "10.0.0.1"))), NOTHING);
}

#[test]
fn beacon_is_found_if_the_host_is_busy_for_a_day() {
    let busy = (0..3000u32).map(|n| flow((n * n * 7) % 86_400, "10.0.0.7", &format!("198.51.100.{}", n % 250)));
    let beats = (0..288).map(|n| flow(n * 300 + n % 4, "10.0.0.7", "203.0.113.9"));
    let loaded = Loaded::new(&[("conn.log", lines(busy.chain(beats)))]);
    assert_eq!(loaded.hits(&stories::correlations()), [BEACON]);
    let total = loaded.totals(&stories::correlations()).pop().unwrap();
    assert_eq!((total.hits, total.last.map(|last| last / 1_000_000_000)), (1, Some(1_772_359_200 + 287 * 300 + 3)));
}

fn sign_in(second: u32, user: &str, (latitude, longitude): (f64, f64)) -> Value {
    json!({"createdDateTime": time(second) + "Z", "userPrincipalName": user, "appDisplayName": "Portal",
        "clientAppUsed": "Browser", "ipAddress": format!("192.0.2.{}", second % 200), "status": {"errorCode": 0},
        "location": {"city": "x", "geoCoordinates": {"latitude": latitude, "longitude": longitude}}})
}

const PARIS: (f64, f64) = (48.85, 2.35);
const TOKYO: (f64, f64) = (35.68, 139.69);

#[test]
fn account_signs_in_from_places_too_far_apart() {
    let of = |hours: u32, user: &str| {
        let all = [sign_in(0, "mara@example.org", PARIS), sign_in(hours * 3600, user, TOKYO)];
        let others = (0..4).map(|n| sign_in(n * 60, "jo@example.org", PARIS));
        told("signin.json", lines(all.into_iter().chain(others)))
    };
    let travel = "Entra sign-ins of one account from places too far apart x1";
    assert_eq!(of(2, "mara@example.org"), [travel]);
    assert_eq!(of(9, "mara@example.org"), [travel], "9,700 km");
    assert_eq!(of(11, "mara@example.org"), NOTHING);
    assert_eq!(of(2, "kim@example.org"), NOTHING);
    let near = [sign_in(0, "mara@example.org", PARIS), sign_in(60, "mara@example.org", (48.86, 2.34))];
    assert_eq!(told("signin.json", lines(near.into_iter())), NOTHING);
    let unknown = [sign_in(0, "mara@example.org", PARIS), sign_in(60, "mara@example.org", (0.0, 0.0))];
    assert_eq!(told("signin.json", lines(unknown.into_iter())), NOTHING);
}

#[test]
fn account_of_okta_signs_in_from_places_too_far_apart() {
    let session = |second: u32, user: &str, (lat, lon): (f64, f64)| {
        json!({"published": time(second) + "Z", "eventType": "user.session.start", "uuid": format!("u{second}"),
            "outcome": {"result": "SUCCESS"}, "actor": {"alternateId": user, "type": "User"},
            "client": {"ipAddress": "192.0.2.9", "geographicalContext": {"geolocation": {"lat": lat, "lon": lon}}}})
    };
    let of = |user| told("okta.json", lines([session(0, "mara", PARIS), session(3600, user, TOKYO)].into_iter()));
    let sessions = "Session at Okta started x2";
    assert_eq!(of("mara"), [sessions, "Okta sessions of one account from places too far apart x1"]);
    assert_eq!(of("jo"), [sessions]);
}

fn audit(host: &str, second: u32, what: &str) -> String {
    format!("node={host} type={what} msg=audit({}.100:{second}): pid=1 uid=0 res=success\n", 1_772_359_200 + second)
}

/// A log of so many seconds, stopped at second 600 and again there from `back`.
fn stopped(host: &'static str, back: Option<u32>) -> String {
    let before = (0..60).map(|n| audit(host, n * 10, "SYSCALL arch=c000003e syscall=2"));
    let stop = audit(host, 600, "SERVICE_STOP").replace("uid=0", "uid=0 unit=auditd");
    let after =
        back.into_iter().flat_map(|from| (0..300).map(move |n| audit(host, from + n * 10, "SYSCALL syscall=2")));
    before.chain([stop]).chain(after).collect()
}

fn web(seconds: u32) -> String {
    (0..seconds / 30).map(|n| syslog(n * 30, "systemd-logind[1]", "New session 5 of user mara.")).collect()
}

#[test]
fn log_is_silent_after_its_service_was_stopped() {
    let silent = "A log is silent after its service was stopped x1";
    let of = |audit: String, others: u32| {
        Loaded::new(&[("audit.log", audit), ("auth.log", web(others))]).hits(&stories::correlations())
    };
    assert_eq!(of(stopped("web1", None), 7200), [silent]);
    assert_eq!(of(stopped("web1", Some(3600)), 7200), [silent], "it came back an hour later");
    assert_eq!(of(stopped("web1", Some(615)), 7200), NOTHING, "a restart");
    assert_eq!(of(stopped("web1", None), 660), NOTHING, "all logs end there");
    // Of two hosts in one log, one falls silent and the other goes on.
    let other: String = (0..700).map(|n| audit("web2", n * 10, "SYSCALL syscall=2")).collect();
    assert_eq!(of(stopped("web1", None) + &other, 30), [silent]);
    assert_eq!(of(stopped("web1", Some(615)) + &other, 30), NOTHING);
}

#[test]
fn windows_log_is_silent_after_its_service_was_stopped() {
    let event = |host: &str, second: u32, id: u32| stories::windows_of(host, second, id);
    let log = |back: u32| {
        let own = (0..60).map(|n| event("pc1", n * 10, 4624)).chain([event("pc1", 600, 1100)]);
        let own: Vec<Value> = own.chain((0..back).map(|n| event("pc1", 620 + n * 10, 4624))).collect();
        lines(own.into_iter().chain((0..700).map(|n| event("dc1", n * 10, 4624))))
    };
    assert_eq!(told("security.json", log(0)), ["A Windows log is silent after its service was stopped x1"]);
    assert_eq!(told("security.json", log(300)), NOTHING);
}

#[test]
fn pattern_needs_its_kind_of_correlation() {
    let of = |kind: &str, condition: &str, pattern: &str| {
        let rule = format!(
            "title: x\nid: a\nlogsource: {{product: linux}}\ndetection:\n  selection: [x]\n  condition: selection\n---\ntitle: y\nid: b\n\
             correlation:\n  type: {kind}\n  rules: [a]\n  group-by: [User]\n  timespan: 1h\n  condition: {condition}\n\
             casebook:\n  pattern: {pattern}\n"
        );
        RuleSet::read(&[RuleFile { origin: Origin::User, path: "x.yml".into(), text: rule }]).map(|_| ())
    };
    assert_eq!(of("event_count", "{gte: 20}", "even_intervals"), Ok(()));
    assert_eq!(of("value_count", "{field: [lat, lon], gte: 2}", "impossible_travel"), Ok(()));
    for (kind, condition, pattern, what) in [
        ("event_count", "{gte: 20}", "impossible_travel", "casebook.pattern: expected an event_count, or"),
        ("value_count", "{field: lat, gte: 2}", "then_silence", "casebook.pattern: expected an event_count, or"),
        ("event_count", "{gte: 20}", "weekly", "casebook.pattern: expected even_intervals, impossible_travel or"),
    ] {
        let faults = of(kind, condition, pattern).unwrap_err();
        assert!(faults[0].what.starts_with(what), "{faults:?}");
    }
}

#[test]
fn path_is_decoded_as_often_as_it_is_encoded() {
    let request = |path: &str| {
        let line = |path: &str| {
            format!("203.0.113.9 - - [01/Mar/2026:10:00:00 +0000] \"GET {path} HTTP/1.1\" 404 9 \"-\" \"x\"\n")
        };
        let text = line(path) + &(0..9).map(|n| line(&format!("/shop?item={n}"))).collect::<String>();
        Loaded::new(&[("access.log", text)]).hits(&RuleSet::built_in())
    };
    let climbs = |hits: Vec<String>| hits.iter().any(|hit| hit.contains("climbs out"));
    let mut path = "/a?f=../../../etc/passwd".to_owned();
    for _ in 0..6 {
        assert!(climbs(request(&path)), "{path}: {:?}", request(&path));
        let (before, value) = path.split_once("f=").unwrap();
        path = format!("{before}f={}", value.replace('%', "%25").replace('.', "%2e").replace('/', "%2f"));
    }
    assert!(!climbs(request("/a?f=100%2525")));
}
