//! Checks the files of a team folder and the references between them.

use std::path::Path;

use casebook_agent::mcp::policy::{Kind, Policy, ServerPolicy};
use casebook_agent::mcp::servers::{Servers, Way};
use casebook_agent::model::config::Config;
use casebook_evidence::EvidenceTools;
use casebook_expert::definition::{self, Definition, Grant};
use casebook_expert::team::EVIDENCE;
use casebook_expert::{formats, rules, sources};
use casebook_protocol::one_line;
use casebook_runtime::config::Form;
use casebook_runtime::near::nearest;

use super::{Found, file};

/// The files that a team folder may have in addition to `experts`.
const FILES: [&str; 5] = ["mcp.json", "tools.yaml", "pins.json", sources::FILE, formats::FILE];
/// Programs that search the PATH for other programs.
const SEEK: [&str; 12] =
    ["npx", "npm", "pnpm", "bunx", "bun", "node", "deno", "uvx", "uv", "python", "python3", "docker"];

pub(super) fn check(dir: &Path, config: Option<&Config>, variable: &dyn Fn(&str) -> Option<String>, found: &mut Found) {
    let [mcp, tools, pins, declared, lines] = FILES.map(|name| dir.join(name));
    let experts = dir.join("experts");
    let rules = dir.join(rules::FOLDER);
    if !experts.is_dir() && !mcp.exists() && !tools.exists() && !declared.exists() && !lines.exists() && !rules.is_dir()
    {
        return found.fault(dir, 1, "expected a team folder with experts/, mcp.json, tools.yaml or sources.toml");
    }
    unknown_files(dir, found);
    // Without the folder, there is one Expert for each domain of the evidence.
    let definitions = if experts.is_dir() { read_experts(&experts, config, found) } else { Vec::new() };
    let servers = match mcp.exists() {
        true => file::servers(&mcp, variable, found),
        false => Some(Servers::default()),
    };
    let policy = match tools.exists() {
        true => file::policy(&tools, found),
        false => Some(Policy::default()),
    };
    if pins.exists() {
        file::pins(&pins, found);
    }
    if declared.exists() {
        super::sources::check(&declared, found);
    }
    if lines.exists() {
        super::formats::check(&lines, found);
    }
    if rules.is_dir() {
        match rules::files(Some(dir), &[]) {
            Ok(files) => {
                found.files.extend(files.iter().map(|file| file.path.clone()));
                found.faults.extend(rules::set(files).err().into_iter().flat_map(|faults| faults.0));
            }
            Err(faults) => found.faults.extend(faults.0),
        }
    }
    // Nothing can be checked against a file with faults.
    let Some(servers) = servers else { return };
    for definition in &definitions {
        for (n, grant) in definition.tools.iter().enumerate() {
            if let Some(what) = unmet(grant, &servers) {
                found.at(Form::Yaml, &definition.file, &["tools", &n.to_string()], &what);
            }
        }
    }
    let Some(policy) = policy else { return };
    for (name, rules) in &policy.servers {
        if let Some(what) = idle(name, rules, &servers) {
            found.at(Form::Yaml, &tools, &["servers", name], &what);
        }
    }
    for (name, way) in &servers.all {
        if let Some(what) = pathless(name, way, &policy) {
            let place = servers.place.iter().map(String::as_str).chain([name.as_str()]);
            found.at(Form::Json, &mcp, &place.collect::<Vec<_>>(), &what);
        }
    }
}

fn read_experts(dir: &Path, config: Option<&Config>, found: &mut Found) -> Vec<Definition> {
    let (definitions, faults) = definition::read_each(dir);
    for definition in &definitions {
        found.files.push(definition.file.clone());
        file::model(definition, config, found);
    }
    for fault in faults {
        if fault.file != dir && !found.files.contains(&fault.file) {
            found.files.push(fault.file.clone());
        }
        found.faults.push(fault);
    }
    definitions
}

/// Reports files with a name that Casebook does not read.
fn unknown_files(dir: &Path, found: &mut Found) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let named = |part: &str| name.to_lowercase().contains(part);
        let source = extension == "toml" && (named("source") || named("format"));
        let ours =
            (source || matches!(extension.as_str(), "yaml" | "yml" | "json" | "jsonc")) && !name.starts_with('.');
        if ours && path.is_file() && !FILES.contains(&name.as_str()) {
            let advice = match extension.as_str() {
                "yaml" | "yml" => "name it tools.yaml, or put an Expert into experts/",
                "toml" if named("format") => "name it formats.toml, or put it elsewhere",
                "toml" => "name it sources.toml, or put it elsewhere",
                _ => "name it mcp.json, or put it elsewhere",
            };
            found.fault(&path, 1, format!("this file name is ignored in a team folder; {advice}"));
        }
    }
}

/// Why no server can offer a tool that an Expert's file grants.
fn unmet(grant: &Grant, servers: &Servers) -> Option<String> {
    let (server, tool) = (grant.server.as_str(), grant.tool.as_str());
    let shown = one_line(server, 80);
    let known = || servers.all.keys().map(String::as_str).chain([EVIDENCE]);
    if grant.server.matches(EVIDENCE) && EvidenceTools::tool_names().any(|name| grant.tool.matches(name)) {
        return None;
    }
    if server == EVIDENCE && !servers.all.contains_key(EVIDENCE) {
        let names: Vec<&str> = EvidenceTools::tool_names().collect();
        let tool = one_line(tool, 80);
        let advice = match nearest(&tool, names.iter().copied()) {
            Some(near) => format!("write {EVIDENCE}/{near}"),
            None => format!("the tools are {}", names.join(", ")),
        };
        return Some(format!("unknown evidence tool {tool}; {advice}"));
    }
    if servers.all.keys().any(|name| grant.server.matches(name)) {
        return None;
    }
    if servers.disabled.iter().any(|name| grant.server.matches(name)) {
        return Some(format!("the server {shown} is disabled in mcp.json; enable it there, or leave this out"));
    }
    let advice = match nearest(server, known()) {
        Some(near) => format!("write {near}/{}", one_line(tool, 80)),
        None => format!("the servers are {}", known().collect::<Vec<_>>().join(", ")),
    };
    match grant.server.is_exact() {
        true => Some(format!("mcp.json has no server {shown}; {advice}")),
        false => Some(format!("{shown} matches no server of mcp.json; {advice}")),
    }
}

/// Why an entry of tools.yaml has no effect.
fn idle(name: &str, rules: &ServerPolicy, servers: &Servers) -> Option<String> {
    let evidence = name == EVIDENCE && rules.kind == Kind::Evidence;
    match servers.all.get(name) {
        None if servers.disabled.contains(name) || evidence => None,
        None => Some(match nearest(name, servers.all.keys().map(String::as_str)) {
            Some(near) => format!("mcp.json has no such server; write {near}"),
            None => "mcp.json has no such server; add it there, or leave this out".to_owned(),
        }),
        Some(Way::Child { .. }) if !rules.headers.is_empty() => {
            Some("this server is a child process, which has no headers; write them under secrets".to_owned())
        }
        Some(Way::Http { .. }) if !rules.secrets.is_empty() || !rules.environment.is_empty() => {
            Some("this server has an address, and so no environment; write its secrets under headers".to_owned())
        }
        Some(_) => None,
    }
}

/// Why a child process would not find the programs that it runs.
fn pathless(name: &str, way: &Way, policy: &Policy) -> Option<String> {
    let Way::Child { command, env, .. } = way else { return None };
    let rules = policy.of(name);
    let has = env.contains_key("PATH")
        || rules.environment.iter().any(|variable| variable == "PATH")
        || rules.secrets.contains_key("PATH");
    let seeks = SEEK.contains(&command.as_str());
    (seeks && !has).then(|| {
        let name = one_line(name, 80);
        format!(
            "{command} needs the PATH, and a child process gets only the variables that are listed; \
             write environment: [PATH, HOME] for {name} in tools.yaml"
        )
    })
}
