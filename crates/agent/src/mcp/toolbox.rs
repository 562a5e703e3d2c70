//! The servers of a team folder with their tools, and the tools of one Expert.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use casebook_protocol::{SourceInfo, Toolset, one_line, source_name};
use casebook_runtime::config::ConfigFault;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use serde_json::{Map, Value};

use super::guard::{Judged, judge};
use super::link::Link;
use super::pattern::Pattern;
use super::pins::{Pinned, Pins};
use super::policy::{Kind, Policy, ServerPolicy};
use super::servers::Servers;
use crate::tools::Tools;

pub struct Served {
    pub name: String,
    pub policy: ServerPolicy,
    pub link: Arc<Link>,
    /// Its name and protocol, or why it is not available.
    pub there: Result<String, String>,
    pub tools: Vec<Judged>,
    /// The server is new, and its tools were pinned now.
    pub first_seen: bool,
}

#[derive(Default)]
pub struct Toolbox {
    pub servers: Vec<Arc<Served>>,
}

impl Toolbox {
    /// Connects to the `servers` that are `wanted`, all at once, and judges their tools by `policy` and by the pins of
    /// `team`. The tools of a new server are pinned.
    ///
    /// # Errors
    /// The pins cannot be read. If they cannot be written, the tools of new servers are held back instead.
    pub fn open<'a>(
        team: &'a Path,
        servers: &'a Servers,
        policy: &'a Policy,
        wanted: &'a (dyn Fn(&str) -> bool + Sync),
    ) -> BoxFuture<'a, Result<Self, ConfigFault>> {
        // Boxed here, so that the crates of callers do not compile the MCP library again.
        Box::pin(Self::connected(team, servers, policy, wanted))
    }

    async fn connected(
        team: &Path,
        servers: &Servers,
        policy: &Policy,
        wanted: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Self, ConfigFault> {
        let pins = Pins::read(team)?;
        let all = servers.all.iter().filter(|(name, _)| wanted(name)).map(|(name, way)| {
            let (pins, policy, way) = (&pins, policy.of(name), way.clone());
            async move {
                let link = Arc::new(Link::new(name, way, policy.clone()));
                let listing = link.listing().await;
                served(team, name, policy, link, listing, pins)
            }
        });
        let servers = join_all(all).await.into_iter().map(Arc::new).collect();
        Ok(Self { servers })
    }

    /// The tools of `grants`, which are pairs of server and tool. `held` are fixed arguments of this Expert for
    /// servers over the evidence.
    pub fn granted(&self, grants: &[(Pattern, Pattern)], held: &Map<String, Value>) -> Option<Granted> {
        let mut mine = Vec::new();
        for server in &self.servers {
            let of_server: Vec<&Pattern> =
                grants.iter().filter(|(name, _)| name.matches(&server.name)).map(|(_, tool)| tool).collect();
            if of_server.is_empty() {
                continue;
            }
            let allowed = |tool: &str| of_server.iter().any(|pattern| pattern.matches(tool));
            let tools = (0..).zip(&server.tools).filter(|(_, t)| t.standing.is_ok() && allowed(&t.listed.name));
            let tools: Vec<usize> = tools.map(|(place, _)| place).collect();
            mine.push((Arc::clone(server), tools));
        }
        (!mine.is_empty()).then(|| Granted { servers: mine, held: held.clone() })
    }

    pub fn granted_general(&self, grants: &[(Pattern, Pattern)]) -> Option<Granted> {
        let mut all = self.granted(grants, &Map::new())?;
        all.servers.retain(|(server, _)| server.policy.kind == Kind::General);
        (!all.servers.is_empty()).then_some(all)
    }

    pub fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(join_all(self.servers.iter().map(|server| server.link.close())).map(drop))
    }
}

fn served(
    team: &Path,
    name: &str,
    policy: ServerPolicy,
    link: Arc<Link>,
    listing: Result<Arc<super::Listing>, String>,
    pins: &Pins,
) -> Served {
    let (there, listed) = match listing {
        Ok(listing) => (Ok(format!("{}, protocol {}", listing.server, listing.protocol)), listing.tools.clone()),
        Err(why) => (Err(why), Vec::new()),
    };
    let never = listed.iter().any(|tool| pins.of(name, tool) == Pinned::Never);
    let pinned = never.then(|| {
        Pins::update(team, |pins| {
            if listed.iter().any(|tool| pins.of(name, tool) == Pinned::Never) {
                pins.confirm(name, &listed, &listed);
            }
        })
    });
    let (pins, first_seen, unpinned) = match pinned {
        None => (pins.clone(), false, None),
        Some(Ok(pins)) => (pins, true, None),
        Some(Err(fault)) => (pins.clone(), false, Some(fault.to_string())),
    };
    let mut tools: Vec<Judged> = listed
        .into_iter()
        .map(|tool| {
            let standing = pins.of(name, &tool);
            let mut judged = judge(name, &policy, tool, standing);
            if let Some(fault) = &unpinned {
                judged.standing = Err(format!("it could not be pinned: {fault}"));
            }
            judged
        })
        .collect();
    alone(&mut tools);
    Served { name: name.to_owned(), policy, link, there, tools, first_seen }
}

/// Holds back tools that would have the same offered name, since a call could reach the wrong one.
fn alone(tools: &mut [Judged]) {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for offer in tools.iter().filter_map(|tool| tool.standing.as_ref().ok()) {
        *times.entry(offer.spec.name.clone()).or_default() += 1;
    }
    for tool in tools {
        let name = tool.standing.as_ref().ok().map(|offer| offer.spec.name.clone());
        if let Some(name) = name.filter(|name| times.get(name).is_some_and(|n| *n > 1)) {
            tool.standing = Err(format!("another tool of its server would also be offered as {name}"));
        }
    }
}

pub struct Granted {
    servers: Vec<(Arc<Served>, Vec<usize>)>,
    held: Map<String, Value>,
}

impl Granted {
    /// The general servers as sources of evidence. Servers over the evidence list their own sources.
    pub fn sources(&self) -> Vec<SourceInfo> {
        self.general().map(source).collect()
    }

    /// The servers that are not available, with the reason in `about`.
    pub fn gone(&self) -> Vec<SourceInfo> {
        self.general().filter(|server| server.there.is_err()).map(source).collect()
    }

    fn general(&self) -> impl Iterator<Item = &Served> {
        self.servers.iter().map(|(server, _)| server.as_ref()).filter(|server| server.policy.kind == Kind::General)
    }

    fn find(&self, name: &str) -> Option<(&Served, &Judged)> {
        self.all().find(|(_, judged)| judged.standing.as_ref().is_ok_and(|offer| offer.spec.name == name))
    }

    fn all(&self) -> impl Iterator<Item = (&Served, &Judged)> {
        self.servers.iter().flat_map(|(server, places)| {
            places.iter().filter_map(|place| Some((server.as_ref(), server.tools.get(*place)?)))
        })
    }
}

fn source(server: &Served) -> SourceInfo {
    let (name, policy) = (source_name(&server.name), &server.policy);
    let sensor = policy.sensor.clone().unwrap_or_else(|| format!("mcp:{name}"));
    let (on_subject_host, about) = (policy.on_subject_host, about(server));
    SourceInfo { on_subject_host, about, ..SourceInfo::new(name, sensor) }
}

fn about(server: &Served) -> String {
    let words = one_line(&server.policy.about, 300);
    let text = if words.is_empty() { format!("MCP server {}", server.name) } else { words };
    match &server.there {
        Ok(_) => text,
        Err(why) => format!("{text}; not available: {}", one_line(why, 200)),
    }
}

#[async_trait]
impl Tools for Granted {
    fn toolset(&self) -> Toolset {
        let names: Vec<String> = self.servers.iter().map(|(server, _)| source_name(&server.name)).collect();
        let about: Vec<String> =
            self.servers.iter().map(|(server, _)| format!("{}: {}", server.name, about(server))).collect();
        let tools = self.all().filter_map(|(server, judged)| {
            let offer = judged.standing.as_ref().ok()?;
            let mut spec = offer.spec.clone();
            if server.policy.kind == Kind::Evidence {
                spec.input_schema = super::guard::hide(&spec.input_schema, &self.held);
            }
            Some(spec)
        });
        Toolset { name: names.join("+"), about: about.join("; "), tools: tools.collect() }
    }

    fn sent(&self, tool: &str, arguments: &str) -> String {
        let offer = self.find(tool).and_then(|(_, judged)| judged.standing.as_ref().ok());
        offer.map_or_else(|| arguments.to_owned(), |offer| offer.sent(arguments))
    }

    async fn call(&self, tool: &str, arguments: &str) -> Result<String, String> {
        let Some((server, judged)) = self.find(tool) else {
            return Err(format!("expected a tool of this toolset, got {tool:?}"));
        };
        let offer = judged.standing.as_ref().map_err(Clone::clone)?;
        let held = if server.policy.kind == Kind::Evidence { Some(&self.held) } else { None };
        let arguments = offer.arguments(arguments, held)?;
        server.link.call(&judged.listed.name, &judged.fingerprint, arguments).await
    }
}

#[cfg(test)]
mod tests {
    use super::super::servers::Way;
    use super::*;

    #[test]
    fn a_server_is_gone_when_it_is_not_there_and_not_when_its_words_say_so() {
        let server = |name: &str, about: &str, there: Result<String, String>| {
            let policy = ServerPolicy { about: about.into(), ..ServerPolicy::default() };
            let way = Way::Http { url: "http://h".into(), headers: BTreeMap::new() };
            let link = Arc::new(Link::new(name, way, policy.clone()));
            let served = Served { name: name.into(), policy, link, there, tools: Vec::new(), first_seen: false };
            (Arc::new(served), Vec::new())
        };
        let there = server("shop", "orders; not there: refunds", Ok("shop 1".into()));
        let gone = server("my.git", "", Err("no answer".into()));
        let granted = Granted { servers: vec![there, gone], held: Map::new() };
        assert_eq!(granted.sources().len(), 2);
        let gone: Vec<(String, String)> = granted.gone().into_iter().map(|s| (s.source, s.about)).collect();
        assert_eq!(gone, [("my-git".to_owned(), "MCP server my.git; not available: no answer".to_owned())]);
    }
}
