//! The team of Experts over a folder of logs, MCP servers, or both. A team folder defines the Experts; without one,
//! each domain of the evidence has one ([`crate::roster`]).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use casebook_agent::mcp::pattern::Pattern;
use casebook_agent::mcp::policy::{Kind, Policy};
use casebook_agent::mcp::servers::Servers;
use casebook_agent::mcp::toolbox::{Served, Toolbox};
use casebook_agent::model::config::Limits;
use casebook_agent::results;
use casebook_agent::tools::Tools;
use casebook_protocol::{Domain, Member, SourceInfo, one_line, source_name};
use casebook_runtime::config::{self, ConfigFaults};
use serde_json::{Map, Value, json};

use crate::definition::{Definition, Grant, preset, read_folder};
use crate::evidence_server::ONLY;
use crate::roster::{Seen, TeamMember, description, members, over_files};
use crate::{formats, rules, sources};
use casebook_evidence::{Catalog, Declared, EvidenceTools, about_logs};

mod tools;

use tools::{Joined, Part};

/// The folder of logs as a server in grants. It needs no entry in mcp.json.
pub const EVIDENCE: &str = "evidence";

#[derive(Debug, Clone)]
pub struct TeamFolder {
    pub folder: PathBuf,
    /// None without a folder `experts`: then each domain of the evidence has an Expert.
    pub experts: Option<Vec<Definition>>,
    pub servers: Servers,
    pub policy: Policy,
    /// What wrote the evidence, by sources.toml, its line formats, by formats.toml, and the rules of Casebook and of the folder `rules`.
    pub declared: Declared,
}

#[derive(Debug, thiserror::Error)]
pub enum TeamError {
    #[error(transparent)]
    Faults(#[from] ConfigFaults),
    #[error("expected a team folder with experts/*.yaml, mcp.json, tools.yaml and sources.toml, got \"{}\"", .0.display())]
    NoFolder(PathBuf),
    #[error("the evidence comes from {one} and from {other}; remove one of them")]
    Twice { one: String, other: String },
    /// The name of a server is empty, or equals that of an evidence source or tool.
    #[error("server {server:?} cannot have the source name {source_name:?}, which is {why}; rename it in mcp.json")]
    Name { server: String, source_name: String, why: &'static str },
    #[error("cannot list the evidence of server {server}: {why}")]
    Unread { server: String, why: String },
    #[error("no Expert has anything to examine: {0}")]
    Nobody(String),
}

pub struct Team {
    pub members: Vec<TeamMember>,
    pub toolbox: Toolbox,
    /// Notes for the operator: servers that are not available, sources that no Expert examines.
    pub notices: Vec<String>,
    pub evidence_server: Option<String>,
}

impl TeamFolder {
    pub fn read(folder: &Path) -> Result<Self, TeamError> {
        if !folder.is_dir() {
            return Err(TeamError::NoFolder(folder.to_path_buf()));
        }
        let mut faults = Vec::new();
        let mut take = |found: ConfigFaults| faults.extend(found.0);
        let experts = folder.join("experts");
        let experts = experts.is_dir().then(|| read_folder(&experts).map_err(&mut take).unwrap_or_default());
        let variable = |name: &str| std::env::var(name).ok();
        let servers = file(folder, "mcp.json", |file, text| Servers::parse(file, text, &variable));
        let servers = servers.map_err(&mut take).unwrap_or_default();
        let policy = file(folder, "tools.yaml", Policy::parse).map_err(&mut take).unwrap_or_default();
        let mut declared = file(folder, sources::FILE, sources::parse).map_err(&mut take).unwrap_or_default();
        (declared.formats_file, declared.formats) =
            file(folder, formats::FILE, formats::parse).map_err(&mut take).unwrap_or_default();
        let rules = rules::files(Some(folder), &[]).and_then(rules::set);
        declared.rule_set = rules.map_err(&mut take).ok();
        if faults.is_empty() {
            Ok(Self { folder: folder.to_path_buf(), experts, servers, policy, declared })
        } else {
            Err(ConfigFaults(faults).into())
        }
    }

    fn evidence_servers(&self) -> impl Iterator<Item = &str> {
        let named = self.servers.all.keys().map(String::as_str);
        named.filter(|name| self.policy.servers.get(*name).is_some_and(|p| p.kind == Kind::Evidence))
    }
}

fn file<T: Default>(
    folder: &Path,
    name: &str,
    parse: impl FnOnce(&Path, &str) -> Result<T, ConfigFaults>,
) -> Result<T, ConfigFaults> {
    let file = folder.join(name);
    if file.exists() { parse(&file, &config::text(&file)?) } else { Ok(T::default()) }
}

/// The team over `catalog` and the servers of `team_folder`, limited to the Experts in `only` if it is not empty.
pub async fn gather(
    team_folder: Option<&TeamFolder>,
    catalog: Option<&Arc<Catalog>>,
    only: &BTreeSet<Domain>,
) -> Result<Team, TeamError> {
    let wanted = |domain: &Domain| only.is_empty() || only.contains(domain);
    let Some(team_folder) = team_folder else {
        let mut members = catalog.map(members).unwrap_or_default();
        members.retain(|team_member| wanted(&team_member.member.domain));
        return Ok(Team { members, toolbox: Toolbox::default(), notices: Vec::new(), evidence_server: None });
    };
    let evidence = the_evidence(team_folder, catalog)?;
    let named = |name: &str| match &team_folder.experts {
        Some(all) => all.iter().filter(|e| wanted(&e.name)).any(|e| e.tools.iter().any(|g| g.server.matches(name))),
        None => evidence == Some(name),
    };
    let toolbox = Toolbox::open(&team_folder.folder, &team_folder.servers, &team_folder.policy, &named)
        .await
        .map_err(|fault| ConfigFaults(vec![fault]))?;
    let (evidence, seen) = match (evidence, catalog) {
        (Some(server), _) => {
            let served = toolbox.servers.iter().find(|served| served.name == server);
            let seen = match served {
                Some(_) => listed(&toolbox, server).await?,
                None => Vec::new(),
            };
            (Evidence::Served(server), seen)
        }
        (None, Some(catalog)) => (Evidence::Files(catalog), Seen::of(catalog)),
        (None, None) => (Evidence::Nowhere, Vec::new()),
    };
    for served in toolbox.servers.iter().filter(|served| served.policy.kind == Kind::General) {
        named_well(&served.name, &seen)?;
    }
    let mut notices: Vec<String> = toolbox.servers.iter().flat_map(|served| notices_of(served)).collect();
    let experts = team_folder.experts.clone().unwrap_or_else(|| of_domains(&seen, &evidence));
    let mut shown = BTreeSet::new();
    let mut members = Vec::new();
    for expert in experts.into_iter().filter(|e| wanted(&e.name)) {
        let mine: Vec<Seen> = seen.iter().filter(|s| sees(&expert, s)).cloned().collect();
        match team_member(expert, &mine, &evidence, &toolbox) {
            Ok(team_member) => {
                shown.extend(mine.into_iter().map(|s| s.source));
                members.push(team_member);
            }
            Err(why) => notices.push(why),
        }
    }
    let unseen: Vec<&str> = seen.iter().map(|s| s.source.as_str()).filter(|s| !shown.contains(*s)).collect();
    if !unseen.is_empty() && only.is_empty() {
        notices.push(format!("no Expert sees {}", one_line(&unseen.join(", "), 400)));
    }
    if members.is_empty() {
        return Err(TeamError::Nobody(notices.join("; ")));
    }
    let evidence_server = match evidence {
        Evidence::Served(server) => Some(server.to_owned()),
        Evidence::Files(_) | Evidence::Nowhere => None,
    };
    Ok(Team { members, toolbox, notices, evidence_server })
}

enum Evidence<'a> {
    Files(&'a Arc<Catalog>),
    Served(&'a str),
    Nowhere,
}

/// The server that has the evidence; none if a folder or no server has it.
fn the_evidence<'a>(team_folder: &'a TeamFolder, catalog: Option<&Arc<Catalog>>) -> Result<Option<&'a str>, TeamError> {
    let mut servers = team_folder.evidence_servers();
    let (one, other) = (servers.next(), servers.next());
    let named = |server: &str| format!("server {server} of {}", team_folder.folder.display());
    match (one, other, catalog) {
        (Some(one), Some(other), _) => Err(TeamError::Twice { one: named(one), other: named(other) }),
        (Some(one), None, Some(_)) => Err(TeamError::Twice { one: "--evidence".into(), other: named(one) }),
        (one, _, _) => Ok(one),
    }
}

/// Checks the source name of `server`, since independence of sources is decided by name (rule "score caps").
fn named_well(server: &str, seen: &[Seen]) -> Result<(), TeamError> {
    let source_name = source_name(server);
    let why = match source_name.as_str() {
        "" => "empty",
        name if seen.iter().any(|s| s.source == name) => "an evidence source",
        name if EvidenceTools::tool_names().any(|tool| tool == name) => "an evidence tool",
        _ => return Ok(()),
    };
    Err(TeamError::Name { server: server.to_owned(), source_name, why })
}

async fn listed(toolbox: &Toolbox, server: &str) -> Result<Vec<Seen>, TeamError> {
    let unread = |why: String| TeamError::Unread { server: server.to_owned(), why };
    let all = [(Pattern::new(server), Pattern::new("*"))];
    let tools = toolbox.granted(&all, &Map::new()).ok_or_else(|| unread("it is not available".into()))?;
    let served = toolbox.servers.iter().find(|served| served.name == server);
    if let Some(Err(why)) = served.map(|served| &served.there) {
        return Err(unread(why.clone()));
    }
    let held = served.into_iter().flat_map(|served| &served.tools).find(|tool| tool.listed.name == "list_sources");
    if let Some(Err(why)) = held.map(|tool| &tool.standing) {
        return Err(unread(format!("its tool list_sources is held back: {why}")));
    }
    let text = tools.call("list_sources", "{}").await.map_err(unread)?;
    let listed = serde_json::from_str(&text);
    listed.map(Seen::served).map_err(|e| unread(format!("unexpected result of its tool list_sources: {e}")))
}

fn notices_of(served: &Served) -> Vec<String> {
    let mut all = Vec::new();
    if let Err(why) = &served.there {
        all.push(format!("server {} is not available: {why}", served.name));
    }
    if served.first_seen {
        let many = served.tools.len();
        all.push(format!(
            "server {} is seen for the first time: its {many} tools are pinned as they are (`casebook tools` shows them)",
            served.name
        ));
    }
    for tool in &served.tools {
        if let Err(why) = &tool.standing {
            all.push(format!("{}/{} is held back: {why}", served.name, one_line(&tool.listed.name, 80)));
        }
    }
    all
}

/// One Expert for each domain of the evidence, with the instructions of its preset if there is one.
fn of_domains(seen: &[Seen], evidence: &Evidence<'_>) -> Vec<Definition> {
    let server = match evidence {
        Evidence::Served(server) => server,
        Evidence::Files(_) | Evidence::Nowhere => EVIDENCE,
    };
    let domains: BTreeSet<&Domain> = seen.iter().map(|s| &s.domain).collect();
    let usual = |domain: &Domain| Definition {
        file: PathBuf::from(format!("<{domain}>")),
        name: domain.clone(),
        description: String::new(),
        expects: String::new(),
        instructions: preset(domain).map(|p| p.instructions.clone()).unwrap_or_default(),
        model: None,
        tools: vec![Grant { server: Pattern::new(server), tool: Pattern::new("*") }],
        sources: vec![Pattern::new(domain.as_str())],
        limits: Limits::default(),
    };
    domains.into_iter().map(usual).collect()
}

fn sees(expert: &Definition, source: &Seen) -> bool {
    expert.sources.iter().any(|p| p.matches(source.domain.as_str()) || p.matches(&source.source))
}

/// The Expert with its tools, or why it has nothing to examine.
fn team_member(
    expert: Definition,
    seen: &[Seen],
    evidence: &Evidence<'_>,
    toolbox: &Toolbox,
) -> Result<TeamMember, String> {
    let mut grants: Vec<(Pattern, Pattern)> = expert.tools.iter().map(|g| (g.server.clone(), g.tool.clone())).collect();
    let mut parts: Vec<Part> = Vec::new();
    let mut sources: Vec<SourceInfo> = Vec::new();
    let mut gone: Vec<SourceInfo> = Vec::new();
    let about = about_logs(seen.iter().map(|s| (s.source.as_str(), s.format, s.records, s.known_as(), s.confirmed)));
    match evidence {
        Evidence::Files(catalog) => {
            let allowed: Vec<Pattern> =
                grants.iter().filter(|(server, _)| server.matches(EVIDENCE)).map(|(_, tool)| tool.clone()).collect();
            if !allowed.is_empty() && !seen.is_empty() {
                parts.push(Part { allowed, ..Part::whole(over_files(catalog, seen)) });
                sources.extend(seen.iter().map(Seen::info));
            }
        }
        Evidence::Served(server) => {
            let (of_evidence, others): (Vec<_>, Vec<_>) =
                grants.into_iter().partition(|(name, _)| name.matches(server));
            let ids: Vec<&str> = seen.iter().map(|s| s.source.as_str()).collect();
            let held: Map<String, Value> = [(ONLY.to_owned(), json!(ids))].into_iter().collect();
            // The granted pattern may also match other servers.
            let exactly: Vec<_> = of_evidence.iter().map(|(_, tool)| (Pattern::new(*server), tool.clone())).collect();
            if let Some(tools) = toolbox.granted(&exactly, &held).filter(|_| !seen.is_empty()) {
                parts.push(Part { named: Some((EVIDENCE.into(), about)), ..Part::whole(Arc::new(tools)) });
                sources.extend(seen.iter().map(Seen::info));
            }
            grants = others.into_iter().chain(of_evidence).collect();
        }
        Evidence::Nowhere => {}
    }
    if let Some(tools) = toolbox.granted_general(&grants) {
        sources.extend(tools.sources());
        gone = tools.gone();
        parts.push(Part::whole(Arc::new(tools)));
    }
    if parts.is_empty() {
        let where_from = expert.file.display();
        return Err(format!("Expert {} has nothing to examine and does not take part ({where_from})", expert.name));
    }
    let tools: Arc<dyn Tools> = Arc::new(Joined(parts));
    let known = Some(expert.description.as_str()).filter(|text| !text.trim().is_empty());
    let mut description = description(known, seen);
    for gone in gone {
        description.push_str(&format!(" Server {}: {}.", gone.source, gone.about));
    }
    let mut covers: Vec<Domain> = seen.iter().map(|s| s.domain.clone()).filter(|d| *d != expert.name).collect();
    covers.sort();
    covers.dedup();
    let toolset = results::with(tools.toolset());
    let member = Member { domain: expert.name.clone(), description, sources, toolset, covers, one_call: None };
    Ok(TeamMember { member, tools, definition: Some(expert) })
}
