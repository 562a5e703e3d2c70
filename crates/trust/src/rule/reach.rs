use std::collections::{BTreeMap, BTreeSet};

use casebook_protocol::SourceInfo;

use super::{CAP_SINGLE_SOURCE, SENSORS};

/// The limits that these sources set to every finding and verdict, as sentences; empty if there are none.
pub fn out_of_reach(sources: &BTreeMap<String, SourceInfo>) -> Vec<String> {
    let all: BTreeSet<&str> = sources.values().map(|source| source.sensor.as_str()).collect();
    let free = sources.values().filter(|source| !source.on_subject_host).map(|source| source.sensor.as_str());
    let free: BTreeSet<&str> = free.collect();
    let mut out = Vec::new();
    if all.len() < SENSORS {
        let of = listed(&all);
        out.push(format!("no finding can score above {CAP_SINGLE_SOURCE}: all evidence is of one sensor ({of})"));
    }
    if free.len() < SENSORS {
        let of = listed(&free);
        out.push(format!(
            "no dismissal can pass the rules: it needs {SENSORS} sensors that the subject of the alert does not control, and there are {} ({of})",
            free.len()
        ));
    }
    out
}

fn listed(sensors: &BTreeSet<&str>) -> String {
    if sensors.is_empty() { "none".to_owned() } else { sensors.iter().copied().collect::<Vec<_>>().join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_that_every_finding_would_meet_is_said_once() {
        let said = |sensors: &[(&str, bool)]| {
            let source = |(n, (sensor, on_subject_host)): (usize, &(&str, bool))| {
                let source = format!("s{n}");
                let on_subject_host = *on_subject_host;
                (source.clone(), SourceInfo { on_subject_host, ..SourceInfo::new(source, *sensor) })
            };
            out_of_reach(&sensors.iter().enumerate().map(source).collect())
        };
        assert_eq!(said(&[("auditd", true), ("firewall", false), ("zeek", false)]), [""; 0]);
        assert_eq!(
            said(&[("auditd", true), ("firewall", false)]),
            [
                "no dismissal can pass the rules: it needs 2 sensors that the subject of the alert does not control, and there are 1 (firewall)"
            ]
        );
        let one = said(&[("auditd", true), ("auditd", true)]);
        assert_eq!(one[0], "no finding can score above 0.89: all evidence is of one sensor (auditd)");
        assert!(one[1].ends_with("there are 0 (none)"), "{one:?}");
    }
}
