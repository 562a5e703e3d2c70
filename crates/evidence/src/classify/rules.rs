//! The rules, most specific first. Each gives its reason.

use super::{Belongs, Facts, sensors};
use crate::source::Format;

pub(super) fn belongs(domain: &'static str, sensor: &str, on_host: bool, reason: impl Into<String>) -> Belongs {
    Belongs { domain, reason: reason.into(), sensor: sensor.into(), on_host, time: None }
}

pub(crate) fn special(facts: &Facts<'_>) -> Option<Belongs> {
    // The client chooses much of the record.
    if facts.format == Format::ModSecurity {
        let what = "requests as ModSecurity judged them in the web server";
        return Some(belongs("application", "web-application-firewall", true, what));
    }
    if let Some(found) = sensors::of_table(facts).or_else(|| kernel_and_windows(facts)) {
        return Some(found);
    }
    if facts.all(&["workload", "operation", "userid"]) {
        let directory = facts.share("workload", |v| v.contains("ActiveDirectory")) > 0.5;
        let domain = if directory { "identity" } else { "application" };
        return Some(belongs(domain, "m365-audit", false, "Microsoft 365 audit events (Workload, Operation, UserId)"));
    }
    if let Some(found) = sensors::of_product(facts) {
        return Some(found);
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
        return Some(belongs("endpoint", "windows-events", false, "Windows events of several channels"));
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
