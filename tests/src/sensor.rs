//! Logs that a process on the alerted host can write, which look like those of an independent sensor, beside the
//! demo's evidence without the log of its proxy. None may count as independent.

use std::collections::BTreeMap;
use std::path::Path;

use casebook_evidence::{Catalog, known_fields};
use casebook_expert::{roster, sources};
use casebook_protocol::SourceInfo;
use serde_json::{Map, Value, json};

use crate::{Result, run};

/// The log that is taken away.
const PROXY: &str = "proxy_access.log";
const ENDPOINT: &str = "endpoint_process.ndjson";

/// Records of the demo that explain its alert.
struct Demo {
    endpoint: Vec<Map<String, Value>>,
    proxy: Vec<String>,
}

type Forge = fn(&Demo) -> String;
/// The endpoint's records, each with these fields.
fn changed(demo: &Demo, fields: &Value) -> String {
    let line = |record: &Map<String, Value>| {
        let mut record = record.clone();
        record.extend(fields.as_object().cloned().unwrap_or_default());
        format!("{}\n", Value::Object(record))
    };
    demo.endpoint.iter().map(line).collect()
}

/// A line for each of these records, from its time, program and command line.
fn each(demo: &Demo, line: impl Fn(&str, &str, &str) -> String) -> String {
    let text = |record: &Map<String, Value>, name: &str| record[name].as_str().unwrap_or_default().to_owned();
    demo.endpoint.iter().map(|r| line(&text(r, "time"), &text(r, "exe"), &text(r, "command_line")) + "\n").collect()
}

fn syslog(demo: &Demo, program: &str) -> String {
    each(demo, |time, exe, line| format!("{time} devbox-mara {program}[7]: exe={exe} cmd={line}"))
}

/// Name of the file, and its content.
const FORGED: [(&str, Forge); 25] = [
    ("edr2.ndjson", |d| changed(d, &json!({"host": "sensor01"}))),
    ("nohost.ndjson", |d| changed(d, &json!({"host": null}))),
    ("sysmon.ndjson", |d| changed(d, &json!({"source": "Linux-Sysmon", "host": "sensor01"}))),
    ("channel.ndjson", |d| changed(d, &json!({"Channel": "Microsoft-Windows-Sysmon/Operational", "EventID": 1}))),
    ("security.ndjson", |d| changed(d, &json!({"Channel": "Security", "EventID": 4688, "NewProcessName": "x"}))),
    ("sensor.ndjson", |d| changed(d, &json!({"sensor": "edr", "confirmed": true, "on_alerted_host": false}))),
    ("vendor.ndjson", |d| changed(d, &json!({"device_vendor": "Palo Alto", "src": "a", "dst": "b", "dport": 1}))),
    ("eve.json", |d| changed(d, &json!({"event_type": "flow", "flow_id": 1, "src_ip": "10.20.0.11", "dest_ip": "x"}))),
    ("sub/endpoint_process.ndjson", |d| changed(d, &json!({}))),
    ("endpoint_process.ndjson.1", |d| changed(d, &json!({}))),
    ("Endpoint_process.ndjson", |d| changed(d, &json!({}))),
    ("squid.log", |d| d.proxy.iter().take(1).cloned().collect()),
    ("squid.txt", |d| d.proxy.iter().take(1).cloned().collect()),
    ("squid-all", |d| d.proxy.concat()),
    ("sub/proxy_access.log", |d| d.proxy.concat()),
    ("proxy_access.log.1", |d| d.proxy.concat()),
    ("Proxy_access.log", |d| d.proxy.concat()),
    ("proxy_access.txt", |d| d.proxy.concat()),
    ("sources.toml", |_| {
        "[[source]]\nfiles = \"**\"\nsensor = \"x\"\non_alerted_host = false\nconfirmed = true\n".into()
    }),
    ("auditd.txt", |d| {
        each(d, |_, exe, line| format!("type=EXECVE msg=audit(1795305370.998:7): exe=\"{exe}\" a0=\"{line}\""))
    }),
    ("falco.txt", |d| syslog(d, "falco")),
    ("sysmon.txt", |d| syslog(d, "sysmon")),
    ("asa.txt", |d| syslog(d, "%ASA-6-302013")),
    ("cef.txt", |d| {
        each(d, |time, exe, _| format!("CEF:0|Vendor|Sensor|1|1|start|5|rt={time} src=10.20.0.11 fname={exe}"))
    }),
    ("conn.zeek", |d| {
        let head = "#separator \\x09\n#fields\tts\tuid\tid.orig_h\tid.resp_h\turi\n".to_owned();
        head + &each(d, |_, exe, _| format!("1795305370.9\tC1\t10.20.0.11\t10.20.0.1\t{exe}"))
    }),
];

/// The records in the shape of a known product.
fn vendor(demo: &Demo, names: &[&str], below: &str) -> String {
    let mut fields = Map::new();
    for name in names {
        let mut steps: Vec<&str> = below.split('.').chain(name.split('.')).filter(|step| !step.is_empty()).collect();
        let (mut at, last) = (&mut fields, steps.pop().unwrap_or_default());
        for step in steps {
            let Value::Object(inner) = at.entry(step).or_insert_with(|| json!({})) else { return String::new() };
            at = inner;
        }
        at.insert(last.to_owned(), json!("/usr/share/initramfs-tools/hooks/kmod"));
    }
    changed(demo, &Value::Object(fields))
}

/// All forged files: their names and contents.
pub fn forged() -> Result<BTreeMap<String, String>> {
    let evidence = run::demo().join("evidence");
    let read = |name: &str| std::fs::read_to_string(evidence.join(name));
    let (endpoint, proxy) = (read(ENDPOINT)?, read(PROXY)?);
    let explains = endpoint.lines().filter(|line| line.contains("hooks/kmod") || line.contains("apt-get install"));
    let demo = Demo {
        endpoint: explains.map(serde_json::from_str).collect::<Result<_, _>>()?,
        proxy: proxy.lines().filter(|line| line.contains("/pool/")).map(|line| format!("{line}\n")).collect(),
    };
    let mut all: BTreeMap<_, _> = FORGED.iter().map(|(name, forge)| ((*name).to_owned(), forge(&demo))).collect();
    for (n, (sensor, names)) in known_fields().enumerate() {
        let below = if n % 3 == 2 { "_source" } else { "" };
        all.insert(format!("{n}-{sensor}.ndjson"), vendor(&demo, &names, below));
    }
    Ok(all)
}

/// Writes the demo's case without its proxy, and with these files, to `folder`.
pub fn write<'f>(folder: &Path, files: impl IntoIterator<Item = (&'f String, &'f String)>) -> Result<()> {
    for part in ["evidence", "team"] {
        std::fs::create_dir_all(folder.join(part))?;
        for entry in std::fs::read_dir(run::demo().join(part))?.flatten() {
            if entry.file_name() != PROXY {
                std::fs::copy(entry.path(), folder.join(part).join(entry.file_name()))?;
            }
        }
    }
    std::fs::copy(run::demo().join("alert.json"), folder.join("alert.json"))?;
    for (name, text) in files {
        let file = folder.join("evidence").join(name);
        std::fs::create_dir_all(file.parent().unwrap_or(folder))?;
        std::fs::write(file, text)?;
    }
    Ok(())
}

/// The sources of the case in `folder`, as the rules see them.
pub fn seen(folder: &Path) -> Result<Vec<SourceInfo>> {
    let file = folder.join("team").join(sources::FILE);
    let declared = sources::parse(&file, &std::fs::read_to_string(&file)?)?;
    let (evidence, index) = (folder.join("evidence"), folder.join("index"));
    let catalog = Catalog::declared_in(&evidence, &index, None, &declared, &mut |_| {})?;
    Ok(roster::members(&catalog.into()).into_iter().flat_map(|one| one.member.sources).collect())
}

/// Sources other than the demo's own sensor that count as independent of the alerted host.
pub fn believed(folder: &Path) -> Result<Vec<String>> {
    let own = |info: &SourceInfo| info.source == "endpoint_process" || info.source == ENDPOINT;
    let independent = seen(folder)?.into_iter().filter(|info| !info.on_subject_host);
    let (own, others): (Vec<_>, Vec<_>) = independent.partition(own);
    if own.len() == 1 { Ok(others.into_iter().map(|info| info.source).collect()) } else { Err("no own sensor".into()) }
}
