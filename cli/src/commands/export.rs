use std::path::Path;

use casebook_hub::archive;
use casebook_protocol::Report;
use casebook_report::sign::SignError;
use casebook_report::{Form, save, sign};
use casebook_runtime::files;

use crate::args::Export;
use crate::failure::{Exit, Failure};
use crate::home::Home;
use crate::screen::Screen;

pub(super) async fn run(home: &Home, args: &Export, screen: &mut Screen) -> Result<Exit, Failure> {
    let (id, past) = home.read(&args.id).await?;
    if past.state.closed.is_none() {
        let what = format!("investigation {id} is not finished and has no report yet");
        return Err(Failure::unfinished(what, home.goes_on(&id)));
    }
    let text = match &args.sign {
        Some(key) => signed(&past.report, key, args.format)?,
        None => {
            let backing = archive::backed(home.store.as_ref(), &past.report, args.format.backing(&past.report)).await?;
            args.format.render(&past.report, &backing).map_err(Failure::defect)?
        }
    };
    match &args.output {
        Some(path) => save::whole(path, &text)?,
        None => screen.text(&text),
    }
    Ok(Exit::Done)
}

fn signed(report: &Report, key: &Path, form: Form) -> Result<String, Failure> {
    if form != Form::Json {
        let what = format!("expected --format json with --sign, got {}", form.name());
        return Err(Failure::usage(what, "only the JSON report can hold a signature"));
    }
    let advice = "name a private key with --sign; `casebook key FILE` makes one";
    let pem = files::text(key, "the private key").map_err(|e| Failure::usage(e, advice))?;
    sign::signed(report, &pem).map_err(|error| match error {
        SignError::Key { .. } => Failure::usage(format!("cannot sign with {}: {error}", key.display()), advice),
        SignError::Report(_) => Failure::defect(error),
    })
}
