//! Casebook for MCP clients: what `casebook mcp` offers ([`tools`], documented in [`docs`]), how it opens
//! investigations ([`backend`]), and how both of our servers are run.

use std::net::SocketAddr;

use casebook_agent::mcp::serve::{self, ServeError, Served, announcement};

use crate::failure::{Exit, Failure};
use crate::screen::Screen;
use crate::stop::Stop;

pub mod backend;
pub mod docs;
pub mod search;
pub mod tools;

/// Refuses an address that other machines could reach, before anything is loaded.
pub fn checked(http: Option<SocketAddr>) -> Result<(), Failure> {
    match http {
        Some(address) if !address.ip().is_loopback() => Err(failure(&ServeError::NotLoopback(address))),
        _ => Ok(()),
    }
}

/// Serves over standard input and output, or over HTTP at the address that is named, until the client is
/// gone or someone asks to stop. `command` is what a person typed for it.
pub async fn serve(command: &str, served: Served, http: Option<SocketAddr>, stop: &mut Stop) -> Result<Exit, Failure> {
    let ended = match http {
        None => serve::stdio(served, stop).await,
        Some(address) => serve::http(served, address, stop, |bound| announce(command, bound)).await,
    };
    ended.map(|()| Exit::Done).map_err(|e| failure(&e))
}

fn announce(command: &str, bound: SocketAddr) {
    let mut screen = Screen::stdout(false);
    screen.line(announcement(command, bound));
    // Whether anyone reads it is not our concern.
    let _ = screen.finish();
}

fn failure(error: &ServeError) -> Failure {
    match error {
        ServeError::NotLoopback(_) | ServeError::Bind { .. } => Failure::usage(error, "give --http 127.0.0.1:0"),
        ServeError::Stdio(_) => Failure::failed(error, "let an MCP client start this command"),
    }
}
