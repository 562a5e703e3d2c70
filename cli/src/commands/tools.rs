//! `casebook tools`

use casebook_agent::mcp::guard::Judged;
use casebook_agent::mcp::pins::{Pinned, Pins};
use casebook_agent::mcp::policy::Kind;
use casebook_agent::mcp::servers::Way;
use casebook_agent::mcp::toolbox::{Served, Toolbox};
use casebook_agent::model::data::visible;
use casebook_expert::team::TeamFolder;
use serde_json::{Value, json};

use crate::args::ShowTools;
use crate::embedded;
use crate::failure::{Exit, Failure};
use crate::screen::{BOLD, DIM, GREEN, RED, Screen, YELLOW, paint, safe};

pub(super) async fn run(args: &ShowTools, screen: &mut Screen) -> Result<Exit, Failure> {
    let team = embedded::team(args.team.as_deref())?.ok_or_else(|| {
        Failure::usage("there is no team folder", format!("give it with --team DIR or {}", embedded::TEAM_ENV))
    })?;
    let mut toolbox = open(&team).await?;
    if args.json && !args.confirm.is_empty() {
        return Err(Failure::usage("--confirm shows what it confirms, and not as JSON", "leave --json out"));
    }
    if !args.confirm.is_empty() {
        let confirmed = confirm(&team, &toolbox, &args.confirm, screen);
        toolbox.close().await;
        confirmed?;
        toolbox = open(&team).await?;
    }
    if args.json {
        let all: Vec<Value> = toolbox.servers.iter().map(|served| as_json(&team, served)).collect();
        screen.line(format_args!("{:#}", json!({ "servers": all })));
    } else {
        show(&team, &toolbox, args.verbose, screen);
    }
    let gone = toolbox.servers.iter().any(|served| served.there.is_err());
    toolbox.close().await;
    Ok(if gone { Exit::Failed } else { Exit::Done })
}

async fn open(team: &TeamFolder) -> Result<Toolbox, Failure> {
    let opened = Toolbox::open(&team.folder, &team.servers, &team.policy, &|_| true).await;
    opened.map_err(|fault| Failure::usage(fault, "repair the file, or remove it to pin every tool anew"))
}

fn confirm(team: &TeamFolder, toolbox: &Toolbox, named: &[String], screen: &mut Screen) -> Result<(), Failure> {
    for name in named {
        let usage = |what: String| Failure::usage(what, "`casebook tools` lists the servers and their tools");
        // The name of a server may hold a slash, too: the longest that fits is meant.
        let served = toolbox.servers.iter().filter(|s| name == &s.name || name.starts_with(&format!("{}/", s.name)));
        let served = served.max_by_key(|s| s.name.len());
        let served = served.ok_or_else(|| usage(format!("there is no server {name:?} in mcp.json")))?;
        if let Err(why) = &served.there {
            return Err(Failure::failed(format!("server {} is not available: {why}", served.name), "start it first"));
        }
        let all: Vec<_> = served.tools.iter().map(|tool| tool.listed.clone()).collect();
        let wanted: Vec<_> = match name.strip_prefix(&format!("{}/", served.name)) {
            None => all.iter().collect(),
            Some(tool) => all.iter().filter(|listed| listed.name == tool).collect(),
        };
        if wanted.is_empty() {
            return Err(usage(format!("server {} has no tool that {name:?} names", served.name)));
        }
        for tool in &wanted {
            // Whole: what is confirmed is what is shown.
            screen.line(format_args!("{} {}/{}", paint(BOLD, "confirmed"), served.name, visible(&tool.name)));
            screen.line(format_args!("  it says: {}", visible(&tool.description)));
            screen.line(format_args!("  takes: {}", visible(&tool.schema.to_string())));
        }
        Pins::update(&team.folder, |pins| pins.confirm(&served.name, wanted.iter().copied(), &all))
            .map_err(|fault| Failure::failed(fault, "see to it that the team folder can be written"))?;
    }
    Ok(())
}

fn callers<'t>(team: &'t TeamFolder, server: &str, tool: &str) -> Vec<&'t str> {
    let experts = team.experts.iter().flatten();
    experts.filter(|expert| expert.grants(server, tool)).map(|expert| expert.name.as_str()).collect()
}

const fn pin(pinned: Pinned, first_seen: bool) -> &'static str {
    match pinned {
        Pinned::Same if first_seen => "pinned now",
        Pinned::Same => "pinned",
        Pinned::Changed => "changed since it was pinned",
        Pinned::New => "new since its server was pinned",
        Pinned::Never => "not pinned",
    }
}

const fn access(judged: &Judged) -> &'static str {
    match (&judged.standing, judged.writes) {
        (_, true) => "may write",
        (Ok(_), false) => "reads",
        (Err(_), false) => "held back",
    }
}

/// Where a server is, without what may be secret.
fn place(team: &TeamFolder, served: &Served) -> String {
    match team.servers.all.get(&served.name) {
        Some(Way::Child { command, .. }) => format!("runs {command}"),
        // Without path and query, which may hold a key.
        Some(Way::Http { url, .. }) => format!("at {}", url.split('/').take(3).collect::<Vec<_>>().join("/")),
        None => String::new(),
    }
}

fn show(team: &TeamFolder, toolbox: &Toolbox, verbose: bool, screen: &mut Screen) {
    if toolbox.servers.is_empty() {
        screen.line(format_args!("{} names no server in mcp.json", team.folder.display()));
    }
    for served in &toolbox.servers {
        let health = match &served.there {
            Ok(is) => paint(GREEN, safe(is, 120)),
            Err(why) => paint(RED, format_args!("not there: {}", safe(why, 600))),
        };
        screen.line(format_args!("{}  {health}", paint(BOLD, safe(&served.name, 80))));
        let policy = &served.policy;
        let kind = if policy.kind == Kind::Evidence { ", over the evidence" } else { "" };
        screen.line(paint(
            DIM,
            format_args!(
                "  {}{kind}; {} at once, {} s a call",
                safe(&place(team, served), 200),
                policy.concurrency,
                policy.timeout.as_secs_f32()
            ),
        ));
        for judged in &served.tools {
            tool(team, served, judged, verbose, screen);
        }
    }
}

fn tool(team: &TeamFolder, served: &Served, judged: &Judged, verbose: bool, screen: &mut Screen) {
    let name = safe(&judged.listed.name, 80);
    let callers = callers(team, &served.name, &judged.listed.name);
    let who = match callers.as_slice() {
        [] if team.experts.is_none() => "the Experts of the evidence's domains".to_owned(),
        [] => "no Expert".to_owned(),
        all => all.join(", "),
    };
    let marked = if judged.standing.is_ok() { paint(GREEN, "offered  ") } else { paint(YELLOW, "held back") };
    let as_what = judged.standing.as_ref().map_or(String::new(), |offer| {
        let repeatable = if offer.spec.repeatable { ", repeatable" } else { "" };
        let named = if offer.spec.name == judged.listed.name {
            String::new()
        } else {
            // What stands in calls, citations and reports.
            format!("as {}, ", safe(&offer.spec.name, 80))
        };
        format!("{named}{}{repeatable}, ", access(judged))
    });
    let pinned = pin(judged.pinned, served.first_seen);
    screen.line(format_args!("  {marked} {name}  {}", paint(DIM, format_args!("{as_what}{pinned}; to {who}"))));
    if let Err(why) = &judged.standing {
        screen.line(paint(YELLOW, format_args!("            {}", safe(why, 400))));
    }
    let look = verbose || matches!(judged.pinned, Pinned::Changed | Pinned::New);
    if look {
        screen.line(paint(DIM, format_args!("            it says: {}", safe(&judged.listed.description, 2000))));
        screen.line(paint(DIM, format_args!("            takes: {}", safe(&judged.listed.schema.to_string(), 2000))));
    }
}

fn as_json(team: &TeamFolder, served: &Served) -> Value {
    let tools = served.tools.iter().map(|judged| {
        json!({
            "name": judged.listed.name,
            "offered_as": judged.standing.as_ref().ok().map(|offer| &offer.spec.name),
            "held_back": judged.standing.as_ref().err(),
            "access": access(judged),
            "repeatable": judged.standing.as_ref().is_ok_and(|offer| offer.spec.repeatable),
            "pin": pin(judged.pinned, served.first_seen),
            "experts": callers(team, &served.name, &judged.listed.name),
            "description": judged.listed.description,
            "schema": judged.listed.schema,
        })
    });
    json!({
        "name": served.name,
        "where": place(team, served),
        "there": served.there.is_ok(),
        "is": served.there.as_ref().ok(),
        "trouble": served.there.as_ref().err(),
        "tools": tools.collect::<Vec<_>>(),
    })
}
