//! Combines tools from several places into one toolset.

use std::sync::Arc;

use async_trait::async_trait;
use casebook_agent::mcp::pattern::{Pattern, any};
use casebook_agent::tools::Tools;
use casebook_protocol::{Acts, Alert, ExpertView, Files, InvestigationId, Toolset};

pub(super) struct Part {
    pub(super) tools: Arc<dyn Tools>,
    pub(super) allowed: Vec<Pattern>,
    /// Replaces the name and description of the toolset.
    pub(super) named: Option<(String, String)>,
}

impl Part {
    pub(super) fn whole(tools: Arc<dyn Tools>) -> Self {
        Self { tools, allowed: vec![Pattern::new("*")], named: None }
    }

    fn with(&self, tools: Option<Arc<dyn Tools>>) -> Self {
        let tools = tools.unwrap_or_else(|| Arc::clone(&self.tools));
        Self { tools, allowed: self.allowed.clone(), named: self.named.clone() }
    }

    fn toolset(&self) -> Toolset {
        let mut toolset = self.tools.toolset();
        toolset.tools.retain(|tool| any(&self.allowed, &tool.name));
        if let Some((name, about)) = &self.named {
            (toolset.name, toolset.about) = (name.clone(), about.clone());
        }
        toolset
    }
}

/// Several toolsets as one. No two of them may have a tool of the same name.
pub(super) struct Joined(pub(super) Vec<Part>);

impl Joined {
    fn part(&self, tool: &str) -> Option<&Arc<dyn Tools>> {
        // A single part can explain best why it refuses a tool.
        let has = |part: &Part| self.0.len() == 1 || part.tools.toolset().tools.iter().any(|t| t.name == tool);
        self.0.iter().find(|part| any(&part.allowed, tool) && has(part)).map(|part| &part.tools)
    }
}

#[async_trait]
impl Tools for Joined {
    fn toolset(&self) -> Toolset {
        let all: Vec<Toolset> = self.0.iter().map(|part| part.toolset()).collect();
        let join = |text: fn(&Toolset) -> &str, with: &str| all.iter().map(text).collect::<Vec<_>>().join(with);
        Toolset {
            name: join(|t| &t.name, "+"),
            about: join(|t| &t.about, " "),
            tools: all.iter().flat_map(|t| t.tools.clone()).collect(),
        }
    }

    fn sent(&self, tool: &str, arguments: &str) -> String {
        self.part(tool).map_or_else(|| arguments.to_owned(), |part| part.sent(tool, arguments))
    }

    async fn call(&self, tool: &str, arguments: &str) -> Result<String, String> {
        match self.part(tool) {
            Some(part) => part.call(tool, arguments).await,
            None => Err(format!("expected a tool of this toolset, got {tool:?}")),
        }
    }

    async fn files(&self) -> Option<Files> {
        for part in &self.0 {
            if let Some(files) = part.tools.files().await {
                return Some(files);
            }
        }
        None
    }

    fn for_case(&self, investigation: &InvestigationId, view: &ExpertView) -> Option<Arc<dyn Tools>> {
        let own: Vec<_> = self.0.iter().map(|part| part.tools.for_case(investigation, view)).collect();
        own.iter().any(Option::is_some).then(|| {
            let parts = self.0.iter().zip(own);
            Arc::new(Self(parts.map(|(part, own)| part.with(own)).collect())) as Arc<dyn Tools>
        })
    }

    async fn acts(&self, alert: &Alert) -> Option<Acts> {
        for part in &self.0 {
            if let Some(acts) = part.tools.acts(alert).await {
                return Some(acts);
            }
        }
        None
    }
}
