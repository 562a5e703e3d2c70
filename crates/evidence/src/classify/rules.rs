//! The rules, most specific first. Each gives its reason.

use super::{Belongs, Facts, tables};
use crate::source::Format;

pub(super) fn belongs(domain: &'static str, sensor: &str, on_host: bool, reason: impl Into<String>) -> Belongs {
    Belongs { domain, reason: reason.into(), sensor: sensor.into(), on_host, time: None }
}

/// The sensor and the fields of each known log. Tests make forged logs of them.
pub fn known_fields() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    SIGNATURES
        .iter()
        .chain(tables::TABLES)
        .map(|known| (known.sensor, known.all.iter().chain(known.any).copied().collect()))
}

/// Most records of a known log have all of `all`, and one of `any` unless `any` is empty.
pub(super) struct Known {
    pub(super) all: &'static [&'static str],
    pub(super) any: &'static [&'static str],
    pub(super) domain: &'static str,
    pub(super) sensor: &'static str,
    pub(super) on_host: bool,
    pub(super) what: &'static str,
    /// The column with the time of a table, whose times are in UTC.
    pub(super) time: Option<&'static str>,
}

impl Known {
    pub(super) fn belongs(&self, facts: &Facts<'_>) -> Belongs {
        let fields = self.all.iter().copied().chain(facts.first(self.any)).collect::<Vec<_>>().join(", ");
        let reason = format!("{}: it has {fields}", self.what);
        Belongs { time: self.time, ..belongs(self.domain, self.sensor, self.on_host, reason) }
    }
}

pub(super) const fn known(
    all: &'static [&'static str],
    any: &'static [&'static str],
    domain: &'static str,
    sensor: &'static str,
    what: &'static str,
) -> Known {
    Known { all, any, domain, sensor, on_host: false, what, time: None }
}

pub(super) const SIGNATURES: &[Known] = &[
    // Most of its content is lines that hosts write.
    Known {
        on_host: true,
        ..known(
            &["rule.level", "rule.id", "agent.id"],
            &["manager.name", "decoder.name"],
            "endpoint",
            "wazuh",
            "what the agents of a Wazuh manager reported",
        )
    },
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
        &["operationname", "activitydatetime"],
        &["initiatedby.user.userprincipalname", "initiatedby.user.id", "initiatedby.app.displayname"],
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
    known(
        &["operationname.value", "resourceid"],
        &["caller", "subscriptionid"],
        "cloud",
        "azure-activity",
        "Azure activity events",
    ),
    known(
        &["eventtimestamp", "clientip", "reportedclienttype"],
        &["firstauthenticationfactor", "issuccess"],
        "identity",
        "snowflake",
        "Snowflake's history of sign-ins",
    ),
    known(
        &["querytext", "querytype"],
        &["warehousename", "rolename"],
        "application",
        "snowflake",
        "Snowflake's history of queries",
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
    known(&["alert.signature", "srcip"], &["destip"], "network", "ids", "alerts of a sensor that reads the network"),
    known(
        &["srcaddr", "dstaddr"],
        &["srcport", "dstport", "protocol", "logstatus"],
        "network",
        "flow-log",
        "flow records",
    ),
    known(&["queryname", "queryid"], &["srcids.instance", "vpcid", "rcode"], "network", "dns-resolver", "DNS queries"),
    known(
        &["action", "decision", "certsha256"],
        &[],
        "endpoint",
        "santa",
        "Santa events: its system extension decides what may run",
    ),
    known(&["inode", "crtime"], &["mtime"], "endpoint", "bodyfile", "files of a disk with their times"),
    known(&["devname", "logid"], &["srcip", "type"], "network", "fortigate", "firewall records"),
    Known {
        // It runs inside the web server, which writes the log.
        on_host: true,
        ..known(
            &["alert.signature", "transactionid"],
            &["alert.matched", "http.url"],
            "application",
            "web-application-firewall",
            "requests as a web application firewall judged them",
        )
    },
    known(
        &["eventid", "session", "sensor", "srcip"],
        &["ttylog", "input", "username", "protocol"],
        "endpoint",
        "cowrie",
        "sessions in the Cowrie honeypot",
    ),
    known(
        &["officeworkload", "operation", "userid"],
        &["recordtype", "officeobjectid", "clientip"],
        "application",
        "m365-audit",
        "Microsoft 365 audit events",
    ),
];

pub(crate) fn special(facts: &Facts<'_>) -> Option<Belongs> {
    // The client chooses much of the record.
    if facts.format == Format::ModSecurity {
        let what = "requests as ModSecurity judged them in the web server";
        return Some(belongs("application", "web-application-firewall", true, what));
    }
    if let Some(found) = tables::of(facts).or_else(|| kernel_and_windows(facts)) {
        return Some(found);
    }
    if facts.all(&["workload", "operation", "userid"]) {
        let directory = facts.share("workload", |v| v.contains("ActiveDirectory")) > 0.5;
        let domain = if directory { "identity" } else { "application" };
        return Some(belongs(domain, "m365-audit", false, "Microsoft 365 audit events (Workload, Operation, UserId)"));
    }
    if let Some(known) = SIGNATURES.iter().find(|known| facts.mostly(known.all, known.any)) {
        return Some(known.belongs(facts));
    }
    let zeek = facts.format == Format::ZeekTsv || facts.share("@proc", |v| v == "zeek") > 0.5;
    let of_zeek = ["fuid", "certificatesubject", "softwaretype", "uids", "uids.0", "suppressfor"];
    if zeek || facts.mostly(&["ts"], &of_zeek) {
        return Some(belongs("network", "zeek", false, "records of Zeek, which reads the network"));
    }
    match facts.format {
        Format::CmTrace => Some(belongs(
            "configuration",
            "configuration-manager",
            true,
            "what an agent of Configuration Manager or Intune did",
        )),
        Format::AccessLog if facts.all(&["elb", "targetstatus"]) => Some(belongs(
            "application",
            "load-balancer",
            false,
            "requests as a load balancer before the hosts saw them",
        )),
        Format::AccessLog if facts.all(&["cacheresult", "hierarchy"]) => {
            Some(belongs("network", "web-proxy", false, "requests as a proxy between the hosts recorded them"))
        }
        Format::W3c if facts.all(&["srcip", "dstip", "action"]) => {
            Some(belongs("network", "windows-firewall", false, "connections as the firewall of Windows saw them"))
        }
        Format::AccessLog | Format::W3c if facts.any(&["csmethod", "path", "csuristem"]) => {
            Some(belongs("application", "web-access", true, "requests as the web server wrote them"))
        }
        _ => None,
    }
}

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
    if facts.any(&["processexec.process.binary", "processkprobe.process.binary", "processexit.process.binary"]) {
        return Some(belongs("endpoint", "tetragon", false, "Tetragon events: eBPF programs in the kernel"));
    }
    if facts.mostly(&["eventname", "processid", "returnvalue"], &["hostprocessid", "args"]) {
        return Some(belongs("endpoint", "tracee", false, "Tracee events: eBPF programs in the kernel"));
    }
    // Query results may omit the channel.
    let numbered = |v: &str| v.parse::<u32>().is_ok_and(|id| (4608..=5159).contains(&id));
    let of_security = ["subjectusername", "targetusername", "subjectlogonid", "newprocessname", "subjectusersid"];
    let auditing = mostly("source", &|v| v.contains("Security-Auditing"))
        || mostly("providername", &|v| v.contains("Security-Auditing"))
        || facts.any(&of_security) && facts.share("eventid", numbered) > 0.9;
    let channel =
        if auditing { "Security".to_owned() } else { facts.most("channel").or_else(|| facts.most("logname"))? };
    if !facts.any(&["eventid", "eventcode", "eventrecordid"]) {
        return None;
    }
    if !auditing && facts.share("channel", |v| v == channel).max(facts.share("logname", |v| v == channel)) < 0.6 {
        return Some(belongs("endpoint", tables::EVENTS, false, "Windows events of several channels"));
    }
    let lower = channel.to_ascii_lowercase();
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
