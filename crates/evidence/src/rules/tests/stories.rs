//! The stories that the rules of Casebook tell, each with a recording in which it happened and one in which it did not.

use serde_json::{Value, json};

use super::*;

/// The moment so many seconds after the beginning, without its zone.
pub(super) fn time(second: u32) -> String {
    let at = jiff::Timestamp::from_second(1_772_359_200 + i64::from(second)).unwrap();
    at.to_string().trim_end_matches('Z').to_owned()
}

pub(super) fn syslog(second: u32, program: &str, message: &str) -> String {
    format!("{}.000000+00:00 web1 {program}: {message}\n", time(second))
}

fn ssh(second: u32, outcome: &str, user: &str, address: &str) -> String {
    syslog(second, "sshd[812]", &format!("{outcome} password for {user} from {address} port 40022 ssh2"))
}

pub(super) fn lines(records: impl Iterator<Item = Value>) -> String {
    records.map(|record| record.to_string() + "\n").collect()
}

fn windows(second: u32, id: u32, fields: Value) -> Value {
    let mut record = json!({"TimeCreated": time(second) + "Z", "Channel": "Security", "EventID": id, "Computer": "dc1.example.org",
        "Provider": "Microsoft-Windows-Security-Auditing"});
    record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    record
}

pub(super) fn windows_of(host: &str, second: u32, id: u32) -> Value {
    windows(second, id, json!({"Computer": host, "TargetUserName": "mara", "LogonType": 3}))
}

fn logon(second: u32, id: u32, user: &str, address: &str) -> Value {
    windows(second, id, json!({"LogonType": 10, "TargetUserName": user, "IpAddress": address}))
}

fn request(second: u32, method: &str, path: &str, status: u32, address: &str) -> String {
    let clock = time(second).replace("2026-03-01T", "01/Mar/2026:");
    format!("{address} - - [{clock} +0000] \"{method} {path} HTTP/1.1\" {status} 512 \"-\" \"Mozilla/5.0\"\n")
}

fn trail(second: u32, name: &str, more: Value) -> Value {
    let mut record = json!({"eventTime": time(second) + "Z", "eventSource": "iam.amazonaws.com", "eventName": name,
        "awsRegion": "us-east-1", "sourceIPAddress": "192.0.2.9",
        "userIdentity": {"type": "IAMUser", "arn": "arn:aws:iam::1:user/ci", "userName": "ci"}});
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    record
}

fn console(second: u32, user: &str, outcome: &str) -> Value {
    let identity = json!({"type": "IAMUser", "userName": user, "arn": format!("arn:aws:iam::1:user/{user}")});
    trail(second, "ConsoleLogin", json!({"userIdentity": identity, "responseElements": {"ConsoleLogin": outcome}}))
}

fn sign_in(second: u32, user: &str, code: u32) -> Value {
    json!({"createdDateTime": time(second) + "Z", "userPrincipalName": user, "appDisplayName": "Portal",
        "clientAppUsed": "Browser", "ipAddress": "192.0.2.9", "status": {"errorCode": code}})
}

/// The files of ours that have correlations.
pub(super) fn correlations() -> Arc<RuleSet> {
    let mut files = built_in_rules();
    files.retain(|file| file.text.contains("\ncorrelation:"));
    Arc::new(RuleSet::read(&files).unwrap())
}

pub(super) fn told(file: &str, text: String) -> Vec<String> {
    Loaded::new(&[(file, text)]).hits(&correlations())
}

fn all(file: &str, text: String) -> Vec<String> {
    Loaded::new(&[(file, text)]).hits(&RuleSet::built_in())
}

pub(super) const NOTHING: [&str; 0] = [];

#[test]
fn ssh_passwords_are_guessed_and_one_is_right() {
    let refused: String = (0..147).map(|n| ssh(n * 4, "Failed", "root", "192.0.2.9")).collect();
    let many = "Many SSH passwords refused from one address x1";
    let right = "An SSH password accepted after many were refused from the same address x1";
    assert_eq!(told("auth.log", refused.clone() + &ssh(600, "Accepted", "root", "192.0.2.9")), [many, right]);
    assert_eq!(told("auth.log", refused + &ssh(600, "Accepted", "mara", "198.51.100.7")), [many]);
    let mistyped: String = (0..2).map(|n| ssh(n * 9, "Failed", "mara", "198.51.100.7")).collect();
    assert_eq!(told("auth.log", mistyped + &ssh(30, "Accepted", "mara", "198.51.100.7")), NOTHING);
}

#[test]
fn all_secrets_of_an_aws_account_are_read() {
    let read = |second: u32, secret: u32| {
        let more = json!({"eventSource": "secretsmanager.amazonaws.com", "userAgent": "Boto3/1.34.84",
            "requestParameters": {"secretId": format!("prod-{secret}")}});
        trail(second, "GetSecretValue", more)
    };
    let many = "Many stored secrets of AWS read by one principal x1";
    assert_eq!(told("cloudtrail.ndjson", lines((0..12).map(|n| read(n, n)))), [many]);
    assert_eq!(
        told("cloudtrail.ndjson", lines((0..40).map(|n| read(n * 2, n % 3)))),
        NOTHING,
        "three secrets, read often"
    );
    assert_eq!(told("cloudtrail.ndjson", lines((0..12).map(|n| read(n * 120, n)))), NOTHING, "over half an hour");
}

#[test]
fn the_guesses_and_the_login_are_named_with_their_records() {
    let refused: String = (0..147).map(|n| ssh(n * 4, "Failed", "root", "192.0.2.9")).collect();
    let loaded = Loaded::new(&[("auth.log", refused + &ssh(600, "Accepted", "root", "192.0.2.9"))]);
    let catalog = loaded.catalog(Some(&correlations()));
    let total = loaded.totals(&correlations()).pop().unwrap();
    let hits = catalog.with_index(|db| Ok(stored(db, total.number, total.source)?)).unwrap();
    let [(148, Some(_), Some(group))] = hits.as_slice() else { panic!("{hits:?}") };
    assert_eq!(group.by, [("SourceIp".to_owned(), "192.0.2.9".to_owned())]);
    let parts: Vec<(u64, i64, i64)> = group.parts.iter().map(|part| (part.count, part.first, part.last)).collect();
    assert_eq!(parts, [(147, 1, 147), (1, 148, 148)]);
}

#[test]
fn the_tool_gives_the_records_to_cite() {
    let refused: String = (0..147).map(|n| ssh(n * 4, "Failed", "root", "192.0.2.9")).collect();
    let loaded = Loaded::new(&[("auth.log", refused + &ssh(600, "Accepted", "root", "192.0.2.9"))]);
    let catalog = Arc::new(loaded.catalog(Some(&correlations())));
    let tools = crate::EvidenceTools::new(catalog, &["auth".to_owned()]);
    let call =
        |arguments: &str| tools.call("rule_hits", arguments).map(|text| serde_json::from_str::<Value>(&text).unwrap());
    let found = call(r#"{"level":"high","entity":"192.0.2.9","around":"2026-03-01T10:09:00Z"}"#).unwrap();
    assert_eq!((&found["total"], &found["returned"]), (&json!(1), &json!(1)), "{found}");
    let hit = &found["hits"][0];
    assert_eq!(hit["by"], json!({"SourceIp": "192.0.2.9"}));
    assert_eq!((&hit["parts"][0]["count"], &hit["parts"][1]["count"]), (&json!(147), &json!(1)));
    let place = usize::try_from(hit["record"].as_u64().unwrap()).unwrap();
    assert!(found["records"][place]["raw"].as_str().unwrap().contains("Accepted password for root"), "{found}");
    assert_eq!(found["records"][0]["line"], 1);
    assert_eq!(found["rules"][0]["bearing"], "incriminating");
    let none = |arguments: &str| call(arguments).unwrap()["total"].clone();
    assert_eq!(none(r#"{"entity":"198.51.100.7"}"#), 0);
    assert_eq!(none(r#"{"around":"2026-03-02T10:00:00Z"}"#), 0);
    assert_eq!(none(r#"{"level":"critical"}"#), 0);
    assert_eq!(none("{}"), 2);
    assert!(
        call(r#"{"rule":"x"}"#).unwrap_err().contains("rules with hits: Many SSH"),
        "{:?}",
        call(r#"{"rule":"x"}"#)
    );
    assert!(call(r#"{"level":"huge"}"#).is_err());
    let hidden = crate::EvidenceTools::new(Arc::clone(tools.catalog()), &[]);
    let found: Value = serde_json::from_str(&hidden.call("rule_hits", "{}").unwrap()).unwrap();
    assert_eq!((&found["total"], &found["records"]), (&json!(0), &json!([])));
}

#[test]
fn a_story_holds_over_two_files_and_if_the_address_is_busy_for_days() {
    let days: String = (0..6000).map(|n| ssh(n * 43, "Failed", "root", "192.0.2.9")).collect();
    let login = ssh(6000 * 43, "Accepted", "root", "192.0.2.9");
    let others: String = (0..9).map(|n| ssh(6000 * 43 + n, "Accepted", "mara", "198.51.100.7")).collect();
    let loaded = Loaded::new(&[("auth.log.1", days), ("auth.log", login + &others)]);
    let right = "An SSH password accepted after many were refused from the same address x1";
    assert_eq!(loaded.hits(&correlations()), ["Many SSH passwords refused from one address x1", right]);
    let total = loaded.totals(&correlations()).pop().unwrap();
    let catalog = loaded.catalog(Some(&correlations()));
    let hits = catalog.with_index(|db| Ok(stored(db, total.number, total.source)?)).unwrap();
    let parts: Vec<u64> = hits[0].2.as_ref().unwrap().parts.iter().map(|part| part.count).collect();
    assert_eq!(parts, [6000, 1]);
    let catalog = Arc::new(catalog);
    let returned = |sources: &[&str]| {
        let sources: Vec<String> = sources.iter().map(|source| (*source).to_owned()).collect();
        let tools = crate::EvidenceTools::new(Arc::clone(&catalog), &sources);
        let found: Value = serde_json::from_str(&tools.call("rule_hits", r#"{"level":"high"}"#).unwrap()).unwrap();
        found["returned"].as_u64().unwrap()
    };
    let ids: Vec<&str> = catalog.sources().iter().map(|source| source.id.as_str()).collect();
    assert_eq!((returned(&ids), returned(&ids[..1]), returned(&ids[1..])), (1, 0, 0), "{ids:?}");
}

#[test]
fn ssh_passwords_of_many_accounts_are_tried() {
    let of = |users: u32| (0..12).map(|n| ssh(n * 20, "Failed", &format!("user{}", n % users), "192.0.2.9")).collect();
    let many = "Many SSH passwords refused from one address x1";
    let hits = told("auth.log", of(9));
    assert_eq!(hits, [many, "SSH passwords refused for many accounts from one address x1"]);
    assert_eq!(told("auth.log", of(2)), [many]);
}

#[test]
fn windows_passwords_are_guessed_and_one_is_right() {
    let refused = || (0..12).map(|n| logon(n * 9, 4625, "admin", "192.0.2.9"));
    let many = "Many Windows logons refused from one address x1";
    let right = "A Windows logon accepted after many were refused from the same address x1";
    let then = |user: &str, address: &str| lines(refused().chain([logon(300, 4624, user, address)]));
    assert_eq!(told("security.json", then("admin", "192.0.2.9")), [many, right]);
    assert_eq!(told("security.json", then("mara", "198.51.100.7")), [many]);
    let spread =
        |accounts: u32| lines((0..9).map(|n| logon(n * 9, 4625, &format!("user{}", n % accounts), "192.0.2.9")));
    assert_eq!(told("security.json", spread(9)), ["Windows logons refused for many accounts from one address x1"]);
    assert_eq!(told("security.json", spread(1)), NOTHING);
}

#[test]
fn a_web_password_is_guessed() {
    let page: String = (0..40).map(|n| request(n * 5, "GET", "/shop?item=1", 200, "198.51.100.7")).collect();
    let refused: String = (0..25).map(|n| request(n * 5, "POST", "/api/login", 401, "192.0.2.9")).collect();
    let many = "Many web logins refused from one address x1";
    let right = "A web login accepted after many were refused from the same address x1";
    let accepted = |address: &str| request(300, "POST", "/api/login", 200, address);
    assert_eq!(told("access.log", page.clone() + &refused + &accepted("192.0.2.9")), [many, right]);
    assert_eq!(told("access.log", page.clone() + &refused + &accepted("198.51.100.7")), [many]);
    assert_eq!(told("access.log", page + &accepted("192.0.2.9")), NOTHING);
}

#[test]
fn a_console_password_is_guessed() {
    let refused = |many: u32| (0..many).map(|n| console(n * 60, "admin", "Failure"));
    let then = |many| lines(refused(many).chain([console(900, "admin", "Success")]));
    let right = "An AWS console login accepted after many were refused from the same address x1";
    assert_eq!(told("trail.json", then(6)), [right]);
    assert_eq!(told("trail.json", then(1)), NOTHING);
    let spread = lines((0..6).map(|n| console(n * 60, &format!("user{n}"), "Failure")));
    assert_eq!(told("trail.json", spread), ["AWS console logins refused for many accounts from one address x1"]);
}

#[test]
fn an_entra_password_is_guessed() {
    let then = |many: u32| {
        lines((0..many).map(|n| sign_in(n * 60, "mara@example.org", 50126)).chain([sign_in(
            900,
            "mara@example.org",
            0,
        )]))
    };
    assert_eq!(
        told("signin.json", then(6)),
        ["An Entra sign-in accepted after many were refused from the same address x1"]
    );
    assert_eq!(told("signin.json", then(2)), NOTHING);
    let spread = lines((0..9).map(|n| sign_in(n * 60, &format!("user{n}@example.org"), 50126)));
    assert_eq!(told("signin.json", spread), ["Entra sign-ins refused for many accounts from one address x1"]);
    let slowly = |accounts: u32| {
        lines((0..32).map(|n| {
            sign_in(n * 600, &format!("user{}@example.org", n % accounts), if n % 4 > 0 { 50126 } else { 50034 })
        }))
    };
    let many = "Entra sign-ins refused slowly for many accounts from one address x1";
    assert_eq!(told("signin.json", slowly(20)), [many]);
    assert_eq!(told("signin.json", slowly(7)), NOTHING);
}

#[test]
fn many_repositories_are_cloned() {
    let clone = |second: u32, repository: u32| {
        json!({"@timestamp": time(second) + "Z", "action": "git.clone", "actor": "mara", "actor_ip": "192.0.2.9",
            "org": "example", "repo": format!("example/r{repository}"), "operation_type": "access"})
    };
    let many = "Many repositories cloned from GitHub by one account from one address x1";
    assert_eq!(told("github.json", lines((0..20).map(|n| clone(n * 12, n)))), [many]);
    assert_eq!(told("github.json", lines((0..40).map(|n| clone(n * 12, n % 3)))), NOTHING, "three repositories, often");
    assert_eq!(told("github.json", lines((0..20).map(|n| clone(n * 600, n)))), NOTHING, "over hours");
}

#[test]
fn calls_are_denied_and_then_one_is_allowed() {
    let denied = |kinds: u32| {
        let name = move |n: u32| format!("Get{}", n % kinds);
        (0..12).map(move |n| trail(n * 10, &name(n), json!({"errorCode": "AccessDenied"})))
    };
    let change = |address: &str| trail(300, "CreateAccessKey", json!({"sourceIPAddress": address}));
    let kinds = "One AWS principal was denied many kinds of calls x1";
    let changed = "An AWS principal changed something after many of its calls were denied x1";
    assert_eq!(told("trail.json", lines(denied(12).chain([change("192.0.2.9")]))), [kinds, changed]);
    assert_eq!(told("trail.json", lines(denied(1).chain([change("198.51.100.7")]))), NOTHING);
}

#[test]
fn a_new_account_gets_rights() {
    let made = |user: &str| {
        syslog(0, "useradd[7]", &format!("new user: name={user}, UID=1001, GID=1001, home=/home/x, shell=/bin/sh"))
    };
    let root = |user: &str| syslog(90, "sudo", &format!("{user} : TTY=pts/0 ; PWD=/ ; USER=root ; COMMAND=/bin/bash"));
    let filler: String = (1..9).map(|n| syslog(n, "systemd-logind[1]", "New session 5 of user mara.")).collect();
    let linux = "A new account ran commands as root x1";
    assert_eq!(told("auth.log", made("helper") + &filler + &root("helper")), [linux]);
    assert_eq!(told("auth.log", made("helper") + &filler + &root("mara")), NOTHING);

    let windows_of = |user: &str| {
        let created = windows(0, 4720, json!({"TargetUserName": "helper", "SubjectUserName": "mara"}));
        lines([created, windows(60, 4672, json!({"SubjectUserName": user}))].into_iter())
    };
    let privileged = "A new Windows account logged on with the rights of an administrator x1";
    assert_eq!(told("security.json", windows_of("helper")), [privileged]);
    assert_eq!(told("security.json", windows_of("mara")), NOTHING);

    let attached = |user: &str| {
        let policy = "arn:aws:iam::aws:policy/AdministratorAccess";
        let created = trail(0, "CreateUser", json!({"requestParameters": {"userName": "helper"}}));
        let given = json!({"requestParameters": {"userName": user, "policyArn": policy}});
        lines([created, trail(60, "AttachUserPolicy", given)].into_iter())
    };
    assert_eq!(told("trail.json", attached("helper")), ["A new AWS user got the rights of an administrator x1"]);
    assert_eq!(told("trail.json", attached("mara")), NOTHING);
}

#[test]
fn many_files_are_renamed_by_one_process() {
    let audit = |second: u32, pid: u32| {
        format!(
            "type=SYSCALL msg=audit({}.123:{second}): arch=c000003e syscall=82 success=yes exit=0 ppid=1 pid={pid} uid=0 \
             comm=\"x\" exe=\"/tmp/x\"\n",
            1_772_359_200 + second
        )
    };
    let by = |pids: u32| (0..120).map(|n| audit(n, 400 + n % pids)).collect();
    assert_eq!(told("audit.log", by(1)), ["One process renamed many files x1"]);
    assert_eq!(told("audit.log", by(40)), NOTHING);

    let table = |second: u32, pid: u32| {
        json!({"Timestamp": time(second) + "Z", "ActionType": "FileRenamed", "DeviceName": "pc1", "FileName": "a.locked",
            "FolderPath": r"C:\Users\mara\a.locked", "InitiatingProcessFileName": "x.exe", "InitiatingProcessId": pid,
            "InitiatingProcessCommandLine": "x.exe"})
    };
    let by = |pids: u32| lines((0..120).map(|n| table(n, 400 + n % pids)));
    assert_eq!(told("files.json", by(1)), ["One process renamed many files on an endpoint x1"]);
    assert_eq!(told("files.json", by(40)), NOTHING);
}

#[test]
fn a_logging_service_is_stopped() {
    let stop = |unit: &str| {
        let filler: String = (0..9).map(|n| execve(n, "ls")).collect();
        filler
            + &format!(
                "type=SERVICE_STOP msg=audit(1700000020.1:90): pid=1 uid=0 msg='unit={unit} comm=\"systemd\" res=success'\n"
            )
    };
    assert_eq!(all("audit.log", stop("auditd")), ["A service that logs or protects was stopped x1"]);
    assert_eq!(all("audit.log", stop("cups")), NOTHING);
}
