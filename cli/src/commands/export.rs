use crate::args::Export;
use crate::failure::{Exit, Failure};
use crate::home::Home;
use crate::screen::Screen;
use casebook_report::save;

pub(super) async fn run(home: &Home, args: &Export, screen: &mut Screen) -> Result<Exit, Failure> {
    let (id, past) = home.read(&args.id).await?;
    if past.state.closed.is_none() {
        let what = format!("investigation {id} is not finished and has no report yet");
        return Err(Failure::unfinished(what, home.goes_on(&id)));
    }
    let text = args.format.render(&past.report).map_err(Failure::defect)?;
    match &args.output {
        Some(path) => save::whole(path, &text)?,
        None => screen.text(&text),
    }
    Ok(Exit::Done)
}
