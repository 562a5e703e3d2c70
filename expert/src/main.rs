use std::process::ExitCode;

use casebook_expert::assignments::assignments;
use casebook_expert::settings::Options;
use casebook_runtime::service::work::work;
use casebook_runtime::service::{self, Failure, Program, Service};

const PROGRAM: Program = Program {
    name: "casebook-expert",
    about: "Experts as a separate process: they investigate with tools over a folder of logs, one for each \
            domain of it, and with those of a team folder. Start as many as you like over the same evidence; those \
            of a domain share its work.",
};

fn main() -> ExitCode {
    if let Some(done) = casebook_evidence::serve_reader() {
        return done;
    }
    service::run(&PROGRAM, "expert", serve)
}

async fn serve(service: Service, options: Options) -> Result<(), Failure> {
    if options.profile.is_empty() {
        return Err(Failure::usage("expected a profile, got none; give --profile FILE"));
    }
    match assignments(&service, &options).await? {
        Some((assignments, boxes)) => {
            let done = work(&service, assignments).await;
            for toolbox in boxes {
                toolbox.close().await;
            }
            done
        }
        None => Ok(()),
    }
}
