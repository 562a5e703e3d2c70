//! What every role needs to be a process: the two seams [`bus`] and [`store`], the turn loop of a
//! task ([`turn`]) and the worker that drives it ([`worker`]), minds and tools, time, telemetry,
//! looking into recorded results ([`results`]), the actor shell ([`process`]), the frame of a process
//! that serves ([`service`]), NATS ([`nats`]), tools over MCP ([`mcp`]), and a server of one's own
//! ([`broker`]).

pub mod broker;
pub mod bus;
pub mod clock;
pub mod document;
pub mod fault;
pub mod mcp;
pub mod mind;
pub mod model;
pub mod nats;
pub mod process;
pub mod results;
pub mod service;
pub mod store;
pub mod stored;
pub mod telemetry;
pub mod tools;
pub mod turn;
pub mod wire;
pub mod worker;
