//! Tools over the Model Context Protocol. [`servers`] reads the user's list of servers, [`policy`] what we allow them,
//! and [`pins`] what their tools were when we began to trust them. [`guard`] decides on tools and calls. A [`client`]
//! is one connection, a [`link`] keeps one server reachable, and a [`toolbox`] has all servers. [`serve`] offers our
//! own tools to other programs.

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

#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    pub name: String,
    pub description: String,
    pub schema: Value,
    pub read_only: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listing {
    pub server: String,
    pub protocol: String,
    pub tools: Vec<Listed>,
}
