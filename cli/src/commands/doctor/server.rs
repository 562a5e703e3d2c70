//! `casebook doctor --nats`: whether the server of a team stores what it is sent.

use casebook_report::words;
use casebook_runtime::nats::{AfterFullDisk, Connection, StreamState};

use crate::failure::{Exit, Failure};
use crate::nats::Nats;
use crate::screen::{BOLD, DIM, GREEN, RED, Screen, YELLOW, paint, safe};

/// Shows the state of the server and of each stream. Fails if the user may not read it.
pub(super) async fn run(nats: &Nats, screen: &mut Screen) -> Result<Exit, Failure> {
    let connection = nats.connect("hub").await?;
    let version = connection.server_version();
    screen.line(format_args!("{} {} version {}", paint(BOLD, "NATS server"), connection.url(), safe(&version, 40)));
    let (bytes, streams) = surveyed(&connection).await.map_err(|error| {
        Failure::failed(error, "use the credentials of the user `hub`: --credentials FILE; the streams need a Hub")
    })?;
    screen.line(format_args!("  the streams hold {bytes} bytes on its disk"));
    for stream in &streams {
        screen.line(shown(stream));
    }
    if streams.is_empty() {
        screen.line(paint(YELLOW, "  there are no streams yet: a Hub creates them when it starts"));
    }
    match AfterFullDisk::of(&version) {
        Some(AfterFullDisk::GoesOn) | None => {}
        Some(AfterFullDisk::NumbersAgain) => screen.line(paint(
            YELLOW,
            "  a full disk makes this version store messages in the wrong place until it is restarted: keep max_file_store \
             below the size of the disk, or update the server",
        )),
        Some(AfterFullDisk::Refuses | AfterFullDisk::Silent) => screen.line(paint(
            DIM,
            "  after a full disk this version needs a restart: keep max_file_store below the size of the disk",
        )),
    }
    let stores = streams.iter().all(|stream| stream.refused.is_none());
    screen.line(if stores { paint(GREEN, "  it stores messages") } else { paint(RED, "  it does not store messages") });
    Ok(if stores { Exit::Done } else { Exit::Unfit })
}

async fn surveyed(connection: &Connection) -> Result<(u64, Vec<StreamState>), casebook_runtime::nats::NatsError> {
    Ok((connection.stored_bytes().await?, connection.survey().await?))
}

fn shown(stream: &StreamState) -> String {
    let name = safe(&stream.name, 80);
    let limit = stream.most.map_or_else(String::new, |most| format!(" of {most}"));
    let held = format!("  {name:<32} {}, {}{limit} bytes", words::count(stream.messages, "message"), stream.bytes);
    match &stream.refused {
        None => held,
        Some(why) => paint(RED, format_args!("{held}: a test message was not stored: {}", safe(why, 400))),
    }
}
