//! The parts of an agent: the turn loop of a task ([`turn`]), the worker that drives it ([`worker`]), reasoners
//! ([`reasoner`]), language models ([`model`]), tools ([`tools`], [`mcp`]) and access to recorded results
//! ([`results`]).

mod json_schema;
pub mod mcp;
pub mod model;
pub mod reasoner;
pub mod results;
pub mod service;
pub mod tools;
pub mod turn;
pub mod worker;
