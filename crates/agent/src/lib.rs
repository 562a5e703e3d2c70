//! How an agent thinks: the turn loop of a task ([`turn`]) and the worker that drives it ([`worker`]), minds
//! ([`mind`]), language models ([`model`]), tools ([`tools`], [`mcp`]) and looking into recorded results
//! ([`results`]).

pub mod document;
pub mod fault;
pub mod mcp;
pub mod mind;
pub mod model;
pub mod results;
pub mod service;
pub mod tools;
pub mod turn;
pub mod worker;
