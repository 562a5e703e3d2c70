//! Tools of several places as the one set that an Expert has.

use std::sync::Arc;

use async_trait::async_trait;
use casebook_agent::mcp::pattern::Pattern;
use casebook_agent::tools::Tools;
use casebook_protocol::Toolset;

/// Of the tools over the evidence those that an Expert may call.
pub(super) struct Allowed {
    pub(super) inner: Arc<dyn Tools>,
    pub(super) allowed: Vec<Pattern>,
}

#[async_trait]
impl Tools for Allowed {
    fn toolset(&self) -> Toolset {
        let mut toolset = self.inner.toolset();
        toolset.tools.retain(|tool| self.allowed.iter().any(|pattern| pattern.matches(&tool.name)));
        toolset
    }

    fn sent(&self, tool: &str, arguments: &str) -> String {
        self.inner.sent(tool, arguments)
    }

    async fn call(&self, tool: &str, arguments: &str) -> Result<String, String> {
        if !self.allowed.iter().any(|pattern| pattern.matches(tool)) {
            return Err(format!("this Expert may not call {tool:?}"));
        }
        self.inner.call(tool, arguments).await
    }
}

/// Tools of which something else is told.
pub(super) struct Told {
    pub(super) inner: Arc<dyn Tools>,
    pub(super) name: String,
    pub(super) about: String,
}

#[async_trait]
impl Tools for Told {
    fn toolset(&self) -> Toolset {
        Toolset { name: self.name.clone(), about: self.about.clone(), ..self.inner.toolset() }
    }

    fn sent(&self, tool: &str, arguments: &str) -> String {
        self.inner.sent(tool, arguments)
    }

    async fn call(&self, tool: &str, arguments: &str) -> Result<String, String> {
        self.inner.call(tool, arguments).await
    }
}

/// Several sets of tools as one; no two of them have a tool of the same name.
pub(super) struct Joined(pub(super) Vec<Arc<dyn Tools>>);

impl Joined {
    fn part(&self, tool: &str) -> Option<&Arc<dyn Tools>> {
        self.0.iter().find(|part| part.toolset().tools.iter().any(|t| t.name == tool))
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
            None => Err(format!("there is no tool {tool:?} in this toolset")),
        }
    }
}
