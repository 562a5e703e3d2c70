//! Classifies logs of unknown products by their fields, programs and words.

use super::rules::belongs;
use super::sensors::SENSORS;
use super::{Belongs, Facts};
use crate::source::Format;
use crate::time::roles::share;

// In the form of `facts::plain`.
const PROCESS: &str = "pid ppid processid parentprocessid parentpid exe image imagefilename cmdline commandline binary parentimage \
    process.pid process.executable process.commandline parentprocess argv args comm processpath filename syscall";
const FLOW: &str = "src dst srcip dstip destip sourceip destinationip source.ip destination.ip sourceaddress destinationaddress spt dpt sport dport \
    srcport dstport destport sourceport destinationport proto protocol";
const ACCOUNT: &str = "user username actor login loginresult authmethod mfa logontype targetusername authtype result \
    outcome principal useremail";
const REQUEST: &str = "method uri url path status statuscode useragent referer httpmethod requesturi";
const DNS: &str = "queryname qname qtype dnsquery qtypename";
const ACTION: &str = "action event eventtype operation eventname type activity";

const AUTHENTICATION: &str = "login logon auth signin sign_in password mfa session token user.";

pub(crate) fn by_fields(facts: &Facts<'_>) -> Option<Belongs> {
    match facts.format {
        Format::Syslog | Format::SyslogIso => return by_program(facts),
        Format::Plain if facts.share("program", |_| true) > 0.5 => return by_program(facts),
        Format::Plain => return None,
        _ if facts.all(&["realtimetimestamp", "message"]) || facts.all(&["syslogmessage"]) => return by_program(facts),
        _ => {}
    }
    let (process, flow) = (facts.some(PROCESS).max(facts.of_processes()), facts.some(FLOW));
    let (account, request) = (facts.some(ACCOUNT), facts.some(REQUEST));
    if process >= 3 && process >= flow {
        let reason = "its records name processes with their ids and programs";
        return Some(belongs("endpoint", "endpoint-log", false, reason));
    }
    if flow >= 3 && request < 4 {
        let vendor = facts.most("devicevendor").map(|v| v.to_lowercase().replace(' ', "-"));
        let sensor = vendor.as_deref().unwrap_or("network-log");
        return Some(belongs("network", sensor, false, "its records name two ends of connections"));
    }
    if facts.some(DNS) > 0 {
        return Some(belongs("network", "dns-log", false, "its records are DNS queries"));
    }
    if request >= 3 {
        return Some(belongs("application", "web-log", true, "its records are requests to an application"));
    }
    let authenticates = |value: &str| {
        let value = value.to_ascii_lowercase();
        AUTHENTICATION.split_whitespace().any(|word| value.contains(word))
    };
    let acts = ACTION.split_whitespace().any(|name| facts.share(name, authenticates) > 0.3);
    let reason = "its records say what accounts did, such as logins";
    (account >= 1 && acts).then(|| belongs("identity", "identity-log", false, reason))
}

fn by_program(facts: &Facts<'_>) -> Option<Belongs> {
    let firewall = facts.sample.iter().filter(|fields| {
        let has = |name: &str| fields.iter().any(|(path, _)| path.rsplit('.').next() == Some(name));
        (has("SRC") && has("DST")) || (has("srcip") && has("dstip")) || (has("src") && has("dst"))
    });
    if firewall.count() * 2 > facts.sample.len() {
        let reason = "firewall messages with two ends of connections";
        return Some(belongs("network", "firewall", false, reason));
    }
    // The journal has the program in `SYSLOG_IDENTIFIER`.
    let named = facts.values("program").chain(facts.values("syslogidentifier"));
    // Tables of syslog have it in a column beside the message.
    let named = named.chain(facts.values("processname").filter(|_| facts.all(&["syslogmessage"])));
    let programs: Vec<String> = named.map(str::to_ascii_lowercase).collect();
    let speaks = |program: &str, names: &str| {
        let program = program.rsplit('/').next().unwrap_or(program);
        names.split_whitespace().any(|name| program.starts_with(name))
    };
    let (count, most) = SENSORS
        .speaker
        .iter()
        .map(|s| (programs.iter().filter(|p| speaks(p, s.programs)).count(), s))
        .max_by_key(|(count, _)| *count)?;
    // Of all records, since most may have no program.
    if count * 5 >= facts.sample.len() * 2 && count > 0 {
        return Some(belongs(most.domain, most.sensor, most.on_host, format!("syslog: {}", most.what)));
    }
    Some(belongs("endpoint", "syslog", true, "syslog of a host, of many programs"))
}

const COMMANDS: &str = "ls cd cat sudo su vi vim nano apt apt-get yum curl wget chmod chown ps kill grep find ssh scp git \
    docker kubectl systemctl service python python3 bash sh mkdir rm mv cp tar exit id whoami uname history echo export \
    nc ping ip ifconfig netstat ss crontab useradd passwd clear";
const WEB_ERRORS: &str = "[error] [warn] [notice] client: [core: [proxy";

pub(crate) fn by_text(facts: &Facts<'_>) -> Option<Belongs> {
    let messages: Vec<&str> = facts.values("message").collect();
    if messages.len() * 2 <= facts.sample.len() {
        return None;
    }
    let part = |wanted: &dyn Fn(&str) -> bool| share(messages.iter().filter(|m| wanted(m)).count(), messages.len());
    let timed = facts.share("timestamp", |_| true);
    if part(&|m| WEB_ERRORS.split_whitespace().any(|w| m.contains(w))) > 0.5 && timed > 0.5 {
        return Some(belongs("application", "web-error", true, "a web server's error log"));
    }
    let begins = |m: &&str| m.contains("PowerShell transcript start") || m.starts_with(r"PS C:\");
    if messages.iter().take(5).any(begins) {
        return Some(belongs("endpoint", "powershell-transcript", true, "input and output of PowerShell"));
    }
    if timed < 0.2 && part(&is_setting) > 0.7 {
        return Some(belongs("configuration", "settings", true, "settings or a policy, without times"));
    }
    let command = |m: &str| {
        let word = m.split_whitespace().next().unwrap_or_default();
        let word = word.rsplit('/').next().unwrap_or_default();
        m.starts_with('#') || COMMANDS.split_whitespace().any(|c| c == word)
    };
    (part(&command) > 0.4).then(|| belongs("endpoint", "shell-history", true, "command history of a shell"))
}

fn is_setting(line: &str) -> bool {
    let line = line.trim();
    let key = line.split_once([':', '=']).map(|(key, _)| key.trim());
    line.starts_with(['#', '-', '[', '}', '{', ';'])
        || line.ends_with([':', '{', ';'])
        || key.is_some_and(|key| !key.contains(' ') && !key.is_empty())
}
