//! Casebook's own MCP servers, as real processes, called by clients that others wrote.

mod casebook;
mod evidence;
mod others;
pub(crate) mod script;
mod team;
