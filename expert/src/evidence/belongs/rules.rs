//! The rules, the most specific first. Each says what it saw.

use super::{Belongs, Facts};
use crate::evidence::source::Format;

fn belongs(domain: &'static str, sensor: &str, on_host: bool, reason: impl Into<String>) -> Belongs {
    Belongs { domain, reason: reason.into(), sensor: sensor.into(), on_host }
}

/// Signature of a known log: all of `all`, and one of `any` unless that is empty.
struct Known {
    all: &'static [&'static str],
    any: &'static [&'static str],
    domain: &'static str,
    sensor: &'static str,
    on_host: bool,
    what: &'static str,
}

const fn known(
    all: &'static [&'static str],
    any: &'static [&'static str],
    domain: &'static str,
    sensor: &'static str,
    what: &'static str,
) -> Known {
    Known { all, any, domain, sensor, on_host: false, what }
}

const SIGNATURES: &[Known] = &[
    known(
        &["eventsource", "eventname"],
        &["awsregion", "useridentity.type", "useridentity.arn", "sourceipaddress"],
        "cloud",
        "cloudtrail",
        "AWS CloudTrail events",
    ),
    known(&["protopayload.methodname"], &[], "cloud", "gcp-audit", "Google Cloud audit events"),
    known(
        &["auditid", "verb"],
        &["requesturi", "objectref.resource", "stage"],
        "cloud",
        "kubernetes-audit",
        "Kubernetes audit events",
    ),
    known(
        &["userprincipalname"],
        &["appdisplayname", "conditionalaccessstatus", "riskstate", "clientappused"],
        "identity",
        "entra-signin",
        "Entra sign-ins",
    ),
    known(
        &["activitydisplayname"],
        &["initiatedby.user.userprincipalname", "initiatedby.user.id", "loggedbyservice", "operationtype"],
        "identity",
        "entra-audit",
        "Entra directory audit events",
    ),
    known(
        &["operationname", "resourceid"],
        &["caller", "claims", "identity.claims.aud", "callerip", "subscriptionid", "calleripaddress"],
        "cloud",
        "azure-activity",
        "Azure activity events",
    ),
    known(&["eventtype", "actor.alternateid"], &[], "identity", "okta", "Okta system log events"),
    known(&["principalid", "appid"], &["signinactivity", "userid"], "identity", "entra", "Entra objects"),
    known(
        &["action", "actor"],
        &["documentid", "operationtype", "actorid", "org", "orgid", "repo", "actorlocation.countrycode", "actorip"],
        "identity",
        "github-audit",
        "GitHub audit events of users",
    ),
    known(&["id.applicationname", "actor.email"], &[], "identity", "google-workspace", "Google Workspace audit events"),
    known(&["eventsimplename"], &["aid", "cid"], "endpoint", "crowdstrike", "CrowdStrike sensor events"),
    known(
        &["actiontype"],
        &["initiatingprocessfilename", "initiatingprocesscommandline", "initiatingprocessid"],
        "endpoint",
        "defender",
        "Defender for Endpoint events",
    ),
    known(&["outputfields.proc.name"], &[], "endpoint", "falco", "Falco events"),
    known(
        &["rule", "priority", "output"],
        &["outputfields.evt.time", "outputfields.user.name", "outputfields.container.id"],
        "endpoint",
        "falco",
        "Falco events",
    ),
    known(
        &["hostidentifier", "name"],
        &["columns.pid", "columns.path", "action", "snapshot", "calendartime"],
        "endpoint",
        "osquery",
        "osquery results",
    ),
    known(&["macb", "sourcetype"], &[], "endpoint", "plaso", "a plaso timeline of a host"),
    known(
        &["timestampdesc"],
        &["parser", "displayname", "pathspec"],
        "endpoint",
        "plaso",
        "a plaso timeline of a host",
    ),
    known(
        &["processname", "sourceip", "destinationip", "destinationport"],
        &["bytessent", "linksestablished"],
        "network",
        "vmconnection",
        "connections seen by a dependency agent",
    ),
    known(&["uid"], &["id.orig.h", "idorigh", "id.origh"], "network", "zeek", "Zeek records of connections"),
    known(&["eventtype", "flowid"], &["srcip", "destip"], "network", "suricata", "Suricata events"),
    known(
        &["srcaddr", "dstaddr"],
        &["srcport", "dstport", "protocol", "logstatus"],
        "network",
        "flow-log",
        "flow records",
    ),
    known(&["queryname", "queryid"], &["srcids.instance", "vpcid", "rcode"], "network", "dns-resolver", "DNS queries"),
    known(&["devname", "logid"], &["srcip", "type"], "network", "fortigate", "firewall records"),
];

/// Logs of a known product or format.
pub(crate) fn special(facts: &Facts<'_>) -> Option<Belongs> {
    if let Some(found) = kernel_and_windows(facts) {
        return Some(found);
    }
    if facts.all(&["workload", "operation", "userid"]) {
        let directory = facts.share("workload", |v| v.contains("ActiveDirectory")) > 0.5;
        let domain = if directory { "identity" } else { "application" };
        return Some(belongs(domain, "m365-audit", false, "Microsoft 365 audit events (Workload, Operation, UserId)"));
    }
    if let Some(known) =
        SIGNATURES.iter().find(|k| facts.all(k.all) && (k.any.is_empty() || facts.any(k.any).is_some()))
    {
        let fields = known.all.iter().copied().chain(facts.any(known.any)).collect::<Vec<_>>().join(", ");
        return Some(belongs(known.domain, known.sensor, known.on_host, format!("{}: it has {fields}", known.what)));
    }
    let zeek = facts.format == Format::ZeekTsv || facts.share("@proc", |v| v == "zeek") > 0.5;
    if zeek || facts.all(&["fuid", "ts"]) || facts.all(&["certificatesubject", "ts"]) {
        return Some(belongs("network", "zeek", false, "records of Zeek, which reads the network"));
    }
    match facts.format {
        Format::AccessLog | Format::W3c if facts.any(&["csmethod", "path", "csuristem"]).is_some() => {
            Some(belongs("application", "web-access", true, "requests as the web server wrote them"))
        }
        _ => None,
    }
}

/// Sensors in the kernel, and the Windows event log by channel.
fn kernel_and_windows(facts: &Facts<'_>) -> Option<Belongs> {
    let mostly = |name: &str, wanted: &dyn Fn(&str) -> bool| facts.share(name, wanted) > 0.5;
    let sysmon = |v: &str| v.to_ascii_lowercase().contains("sysmon");
    if ["sourcename", "provider.name", "channel", "providername", "source", "program", "processname", "provider"]
        .iter()
        .any(|name| mostly(name, &sysmon))
    {
        return Some(belongs(
            "endpoint",
            "sysmon",
            false,
            "Sysmon events: its driver watches processes, files and connections",
        ));
    }
    if facts.format == Format::Auditd || facts.share("audit.serial", |_| true) > 0.5 {
        return Some(belongs("endpoint", "auditd", false, "records of the kernel's audit system"));
    }
    if facts
        .any(&["processexec.process.binary", "processkprobe.process.binary", "processexit.process.binary"])
        .is_some()
    {
        return Some(belongs("endpoint", "tetragon", false, "Tetragon events: eBPF programs in the kernel"));
    }
    if facts.all(&["eventname", "processid", "returnvalue"]) && facts.any(&["hostprocessid", "args"]).is_some() {
        return Some(belongs("endpoint", "tracee", false, "Tracee events: eBPF programs in the kernel"));
    }
    let channel = facts.most("channel").or_else(|| facts.most("logname"))?;
    let lower = channel.to_ascii_lowercase();
    facts.any(&["eventid", "eventcode", "eventrecordid"])?;
    if lower == "security" {
        let logon = |v: &str| {
            let id = v.parse::<u32>().unwrap_or(0);
            matches!(id, 4624..=4627 | 4634 | 4647 | 4648 | 4672 | 4720..=4767 | 4768..=4779 | 4798 | 4799 | 4964)
        };
        let share = facts.share("eventid", logon).max(facts.share("eventcode", logon));
        let (domain, what) =
            if share > 0.5 { ("identity", "logons and accounts") } else { ("endpoint", "processes and objects") };
        return Some(belongs(domain, "windows-security", false, format!("Windows Security channel, mostly {what}")));
    }
    let sensor = format!(
        "windows-{}",
        lower
            .trim_start_matches("microsoft-")
            .trim_start_matches("windows ")
            .trim_start_matches("windows-")
            .replace(['/', ' '], "-")
    );
    let reason = format!("Windows event channel {channel}");
    Some(belongs("endpoint", &sensor, true, reason))
}

/// Logs of no known product, by the kinds of things that their fields name.
pub(crate) fn by_fields(facts: &Facts<'_>) -> Option<Belongs> {
    const PROCESS: [&str; 21] = [
        "pid",
        "ppid",
        "processid",
        "parentprocessid",
        "parentpid",
        "exe",
        "image",
        "cmdline",
        "commandline",
        "binary",
        "parentimage",
        "process.pid",
        "process.executable",
        "process.commandline",
        "parentprocess",
        "argv",
        "args",
        "comm",
        "processpath",
        "filename",
        "syscall",
    ];
    const FLOW: [&str; 20] = [
        "src",
        "dst",
        "srcip",
        "dstip",
        "destip",
        "sourceip",
        "destinationip",
        "source.ip",
        "destination.ip",
        "spt",
        "dpt",
        "sport",
        "dport",
        "srcport",
        "dstport",
        "destport",
        "sourceport",
        "destinationport",
        "proto",
        "protocol",
    ];
    const ACCOUNT: [&str; 14] = [
        "user",
        "username",
        "actor",
        "login",
        "loginresult",
        "authmethod",
        "mfa",
        "logontype",
        "targetusername",
        "authtype",
        "result",
        "outcome",
        "principal",
        "useremail",
    ];
    const REQUEST: [&str; 10] =
        ["method", "uri", "url", "path", "status", "statuscode", "useragent", "referer", "httpmethod", "requesturi"];
    if matches!(facts.format, Format::Syslog | Format::SyslogIso) {
        return by_program(facts);
    }
    let (process, flow) = (facts.some(&PROCESS), facts.some(&FLOW));
    let (account, request) = (facts.some(&ACCOUNT), facts.some(&REQUEST));
    if facts.format == Format::Plain {
        return None;
    }
    if process >= 3 && process >= flow {
        return Some(belongs(
            "endpoint",
            "endpoint-log",
            false,
            "its records name processes with their ids and programs",
        ));
    }
    if flow >= 3 && request < 4 {
        let sensor =
            facts.most("devicevendor").map_or_else(|| "network-log".to_owned(), |v| v.to_lowercase().replace(' ', "-"));
        return Some(belongs("network", &sensor, false, "its records name two ends of connections"));
    }
    if facts.any(&["queryname", "qname", "qtype", "dnsquery", "qtypename"]).is_some() {
        return Some(belongs("network", "dns-log", false, "its records are DNS queries"));
    }
    if request >= 3 {
        return Some(belongs("application", "web-log", true, "its records are requests to an application"));
    }
    let auth = |v: &str| {
        let v = v.to_ascii_lowercase();
        ["login", "logon", "auth", "signin", "sign_in", "password", "mfa", "session", "token", "user."]
            .iter()
            .any(|w| v.contains(w))
    };
    let named = ["action", "event", "eventtype", "operation", "eventname", "type", "activity"]
        .iter()
        .any(|name| facts.share(name, auth) > 0.3);
    if account >= 1 && named {
        return Some(belongs(
            "identity",
            "identity-log",
            false,
            "its records tell what accounts did: logins and the like",
        ));
    }
    None
}

/// Syslog by the programs that speak in it.
fn by_program(facts: &Facts<'_>) -> Option<Belongs> {
    const OF: [(&[&str], &str, &str, bool, &str); 6] = [
        (
            &[
                "sshd",
                "sudo",
                "su",
                "login",
                "systemd-logind",
                "useradd",
                "usermod",
                "groupadd",
                "passwd",
                "polkitd",
                "gdm",
                "pam",
                "cron",
                "sssd",
                "chage",
                "userdel",
            ],
            "identity",
            "auth",
            true,
            "logins and changes of privilege (sshd, sudo and the like)",
        ),
        (
            &[
                "named",
                "dnsmasq",
                "unbound",
                "dhcpd",
                "pf",
                "filterlog",
                "ufw",
                "squid",
                "haproxy",
                "openvpn",
                "charon",
            ],
            "network",
            "network-syslog",
            false,
            "messages of network services",
        ),
        (
            &["dpkg", "apt", "yum", "dnf", "ansible", "puppet", "chef", "unattended-upgrade"],
            "configuration",
            "package-syslog",
            true,
            "messages of package and configuration tools",
        ),
        (
            &[
                "postfix", "dovecot", "sendmail", "exim", "nginx", "apache", "httpd", "mysqld", "postgres", "java",
                "tomcat",
            ],
            "application",
            "application-syslog",
            true,
            "messages of applications",
        ),
        (
            &["falco", "auditd", "audispd", "osquery", "tetragon", "sysmon", "auoms"],
            "endpoint",
            "endpoint-syslog",
            false,
            "messages of an endpoint sensor",
        ),
        (&["%asa", "%ios", "%fwsm", "%pix"], "network", "cisco", false, "messages of a network device"),
    ];
    let programs: Vec<String> = facts.values("program").map(str::to_ascii_lowercase).collect();
    let firewall = facts.sample.iter().filter(|f| {
        let has = |name: &str| f.iter().any(|(p, _)| p.rsplit('.').next() == Some(name));
        (has("SRC") && has("DST")) || (has("srcip") && has("dstip")) || (has("src") && has("dst"))
    });
    if firewall.count() * 2 > facts.sample.len() {
        return Some(belongs("network", "firewall", false, "firewall messages with two ends of connections"));
    }
    let best = OF
        .iter()
        .map(|rule| {
            let speaks =
                |p: &&String| rule.0.iter().any(|name| p.rsplit('/').next().is_some_and(|p| p.starts_with(name)));
            (programs.iter().filter(speaks).count(), rule)
        })
        .max_by_key(|(count, _)| *count)?;
    let (count, (_, domain, sensor, on_host, reason)) = best;
    if count * 5 >= programs.len() * 2 && count > 0 {
        return Some(belongs(domain, sensor, *on_host, format!("syslog: {reason}")));
    }
    Some(belongs("endpoint", "syslog", true, "syslog of a host, of many programs"))
}

/// Plain text by its wording.
pub(crate) fn by_text(facts: &Facts<'_>) -> Option<Belongs> {
    let messages: Vec<&str> = facts.values("message").collect();
    if messages.is_empty() {
        return None;
    }
    let share = |wanted: &dyn Fn(&str) -> bool| {
        crate::evidence::time::roles::share(messages.iter().filter(|m| wanted(m)).count(), messages.len())
    };
    let timed = facts.share("timestamp", |_| true);
    let starts = |words: &[&str]| share(&|m| words.iter().any(|w| m.starts_with(w)));
    if starts(&[
        "status ",
        "install ",
        "configure ",
        "upgrade ",
        "trigproc ",
        "startup ",
        "remove ",
        "purge ",
        "conffile ",
    ]) > 0.5
        && timed > 0.5
    {
        return Some(belongs("configuration", "dpkg", true, "dpkg's log of package changes"));
    }
    if starts(&[
        "Start-Date:",
        "Commandline:",
        "Requested-By:",
        "Install:",
        "Upgrade:",
        "Remove:",
        "Purge:",
        "End-Date:",
    ]) > 0.5
    {
        return Some(belongs("configuration", "apt", true, "apt's history of package changes"));
    }
    if starts(&["Installed:", "Updated:", "Erased:", "[ALPM]", "SUBDEBUG", "INFO --- logging"]) > 0.4 {
        return Some(belongs("configuration", "packages", true, "a log of package changes"));
    }
    let error_log =
        share(&|m| ["[error]", "[warn]", "[notice]", "client:", "[core:", "[proxy"].iter().any(|w| m.contains(w)));
    if error_log > 0.5 && timed > 0.5 {
        return Some(belongs("application", "web-error", true, "a web server's error log"));
    }
    let setting = |m: &str| {
        let line = m.trim();
        line.starts_with(['#', '-', '[', '}', '{', ';'])
            || line.ends_with([':', '{', ';'])
            || line.split_once([':', '=']).is_some_and(|(k, _)| !k.trim().contains(' ') && !k.is_empty())
    };
    if timed < 0.2 && share(&setting) > 0.7 {
        return Some(belongs("configuration", "settings", true, "settings or a policy, without times"));
    }
    let command = |m: &str| {
        let word = m.split_whitespace().next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        [
            "ls",
            "cd",
            "cat",
            "sudo",
            "su",
            "vi",
            "vim",
            "nano",
            "apt",
            "apt-get",
            "yum",
            "curl",
            "wget",
            "chmod",
            "chown",
            "ps",
            "kill",
            "grep",
            "find",
            "ssh",
            "scp",
            "git",
            "docker",
            "kubectl",
            "systemctl",
            "service",
            "python",
            "python3",
            "bash",
            "sh",
            "mkdir",
            "rm",
            "mv",
            "cp",
            "tar",
            "exit",
            "id",
            "whoami",
            "uname",
            "history",
            "echo",
            "export",
            "nc",
            "ping",
            "ip",
            "ifconfig",
            "netstat",
            "ss",
            "crontab",
            "useradd",
            "passwd",
            "clear",
        ]
        .contains(&word)
    };
    if share(&|m| command(m) || m.starts_with('#')) > 0.4 {
        return Some(belongs("endpoint", "shell-history", true, "commands as a shell keeps them"));
    }
    None
}
