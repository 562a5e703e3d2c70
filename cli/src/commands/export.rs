//! `casebook export`

use std::path::Path;

use casebook_hub::archive;

use crate::args::Export;
use crate::failure::{Exit, Failure};
use crate::home::hub_failure;
use crate::screen::Screen;
use casebook_report::save;

pub(super) async fn run(data: &Path, args: &Export, screen: &mut Screen) -> Result<Exit, Failure> {
    let home = args.nats.home(data).await?;
    let id = home.find(&args.id).await?;
    let state = archive::state(home.store.as_ref(), &id).await.map_err(|e| hub_failure(&e))?;
    if state.closed.is_none() {
        let what = format!("investigation {id} is not finished and has no report yet");
        return Err(Failure::unfinished(what, args.nats.goes_on(&id, data)));
    }
    let report = archive::report(home.store.as_ref(), &id).await.map_err(|e| hub_failure(&e))?;
    let text = args.format.render(&report).map_err(Failure::defect)?;
    match &args.output {
        Some(path) => save::whole(path, &text)?,
        None => screen.text(&text),
    }
    Ok(Exit::Done)
}
