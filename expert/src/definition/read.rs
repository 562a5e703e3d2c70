//! What is written of an Expert, checked.

use std::path::Path;
use std::time::Duration;

use casebook_agent::document::{Document, duration};
use casebook_agent::fault::{ConfigFault, one_a_key};
use casebook_agent::mcp::pattern::Pattern;
use casebook_agent::model::config::Limits;
use casebook_protocol::Domain;
use casebook_runtime::service::key::micros;

use super::raw::{Amount, Expert};
use super::{Definition, Grant, raw};

/// The longest that a task may be allowed to work.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

pub(super) fn definition(file: &Path, text: &str) -> Result<Definition, Vec<ConfigFault>> {
    let document = Document::yaml(file, text)?;
    let (written, mut faults) = document.shape::<Expert>(&[]);
    let read = written.map(|expert| {
        let tools = grants(&document, &expert, &mut faults);
        let limits = limits(&document, expert.limits.as_ref(), &mut faults);
        for (key, text) in [("description", &expert.description), ("instructions", &expert.instructions)] {
            if text.trim().is_empty() {
                faults.push(document.fault(&[key], "is empty: say it in words"));
            }
        }
        let name = Domain::new(expert.name.clone()).map_err(|error| faults.push(document.fault(&["name"], error)));
        let line = document.line(&["name"]);
        name.map(|name| from(file, line, name, &expert, tools, limits))
    });
    match read {
        Some(Ok(definition)) if faults.is_empty() => Ok(definition),
        _ => Err(one_a_key(faults)),
    }
}

fn from(file: &Path, line: usize, name: Domain, expert: &Expert, tools: Vec<Grant>, limits: Limits) -> Definition {
    let sources = expert.sources.as_ref().map(|sources| sources.iter().map(|s| Pattern::new(s.0.clone())).collect());
    Definition {
        file: file.to_path_buf(),
        line,
        description: expert.description.trim().to_owned(),
        expects: expert.expects.as_deref().unwrap_or_default().trim().to_owned(),
        instructions: expert.instructions.trim().to_owned(),
        model: expert.model.clone(),
        tools,
        sources: sources.unwrap_or_else(|| vec![Pattern::new(name.as_str())]),
        limits,
        name,
    }
}

fn grants(document: &Document, expert: &Expert, faults: &mut Vec<ConfigFault>) -> Vec<Grant> {
    let mut grants = Vec::new();
    for (n, raw::Tool(text)) in expert.tools.iter().enumerate() {
        let n = n.to_string();
        let path = ["tools", n.as_str()];
        let written = casebook_protocol::one_line(text, 80);
        // A server's name may hold a '/', a tool's does not.
        match text.rsplit_once('/') {
            Some((server, tool)) if !server.trim().is_empty() && !tool.trim().is_empty() => {
                grants.push(Grant {
                    server: Pattern::new(server.trim()),
                    tool: Pattern::new(tool.trim()),
                    line: document.line(&path),
                });
            }
            Some(_) => faults.push(document.fault(&path, format!("{written:?} is half a name: write server/tool"))),
            None if text == "*" => {
                faults.push(document.fault(&path, "no tools are implied: write server/*, such as evidence/*"));
            }
            None => {
                let what = format!("{written:?} names no server: write server/tool, such as evidence/{written}");
                faults.push(document.fault(&path, what));
            }
        }
    }
    grants
}

fn limits(document: &Document, written: Option<&raw::Limits>, faults: &mut Vec<ConfigFault>) -> Limits {
    let Some(written) = written else { return Limits::default() };
    let cost = written.cost.as_ref().and_then(|cost| {
        let text = match cost {
            Amount::Text(text) => text.clone(),
            Amount::Number(number) => number.to_string(),
        };
        micros(&text).map_err(|_| faults.push(document.fault(&["limits", "cost"], COST))).ok()
    });
    let seconds = written.time.as_ref().and_then(|text| {
        let time = duration(text).filter(|time| (Duration::from_secs(1)..=LONGEST).contains(time));
        if time.is_none() {
            faults.push(document.fault(&["limits", "time"], "is no such time: write one from 1s to 24h, such as 10m"));
        }
        time.map(|time| time.as_secs())
    });
    Limits {
        turns: written.turns,
        tool_calls: written.tool_calls,
        model_calls: written.model_calls,
        tokens: written.tokens,
        cost_micros: cost,
        seconds,
    }
}

const COST: &str = "is no amount: write one such as \"2.50\", with at most six decimals";
