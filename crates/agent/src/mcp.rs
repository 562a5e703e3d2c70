//! Tools over the Model Context Protocol: which servers there are ([`servers`], pasted by the user),
//! what we allow of them ([`policy`], ours) and what they were when we began to trust them ([`pins`]);
//! what follows from it for a tool and a call ([`guard`]). A [`client`] is one connection, a [`link`]
//! keeps one server reachable, a [`toolbox`] has them all. [`serve`] is our own tools for others to call.

pub mod client;
pub mod guard;
pub mod link;
pub mod outcome;
pub mod pattern;
pub mod pins;
pub mod policy;
pub mod serve;
pub mod servers;
pub mod toolbox;

use serde_json::Value;

/// A tool as its server lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    pub name: String,
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Value,
    pub read_only: Option<bool>,
}

/// What a server says of itself and of its tools.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listing {
    pub server: String,
    pub protocol: String,
    pub tools: Vec<Listed>,
}
