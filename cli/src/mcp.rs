//! MCP servers: `casebook mcp` ([`tools`], documented in [`docs`], with alerts for a [`backend`]), and shared
//! code to run our servers.

use std::net::SocketAddr;

use casebook_agent::mcp::serve::{self, ServeError, Served, announcement};

use crate::failure::{Exit, Failure};
use crate::screen::Screen;
use crate::stop::Stop;

pub mod backend;
pub mod brief;
pub mod docs;
pub mod search;
pub mod tools;

/// Refuses an address that other machines can reach, before anything is loaded.
pub fn checked(http: Option<SocketAddr>) -> Result<(), Failure> {
    match http {
        Some(address) if !address.ip().is_loopback() => Err(failure(&ServeError::NotLoopback(address))),
        _ => Ok(()),
    }
}

/// Serves over standard input and output, or over HTTP, until the client disconnects or the user stops.
pub async fn serve(command: &str, served: Served, http: Option<SocketAddr>, stop: &mut Stop) -> Result<Exit, Failure> {
    let ended = match http {
        None => serve::stdio(served, stop).await,
        Some(address) => serve::http(served, address, stop, Box::new(|bound| announce(command, bound))).await,
    };
    ended.map(|()| Exit::Done).map_err(|e| failure(&e))
}

fn announce(command: &str, bound: SocketAddr) {
    let mut screen = Screen::stdout(false);
    screen.line(announcement(command, bound));
    // It does not matter whether anyone reads it.
    let _ = screen.finish();
}

fn failure(error: &ServeError) -> Failure {
    match error {
        ServeError::NotLoopback(_) | ServeError::Bind { .. } => Failure::usage(error, "use --http 127.0.0.1:0"),
        ServeError::Stdio(_) => Failure::failed(error, "let an MCP client start this command"),
    }
}
