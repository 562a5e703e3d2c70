//! `casebook-lab` measures how well Casebook detects falsehoods, scores on cases, performs, and survives
//! failures.

use std::process::ExitCode;

use casebook_cli::failure::Failure;
use casebook_cli::screen;
use casebook_tests::Result;
use clap::Parser;

mod bench;
mod calibrate;
mod cases;
mod chaos;
mod deceive;
mod detect;
mod fuzz;
mod hosts;
mod index;
mod load;
mod noise;
mod prompts;
mod reply;
mod scale;
mod sensor;

/// Measures Casebook
#[derive(Debug, Parser)]
#[command(name = "casebook-lab", version, arg_required_else_help = true, disable_help_subcommand = true)]
enum Lab {
    /// Plant false findings into finished investigations and measure how many are believed
    Calibrate(calibrate::Arguments),
    /// Investigate every case of a folder with the built-in analyst and print the scores
    Cases(cases::Arguments),
    /// Run many investigations at once with a scripted model, compared with a bare client
    Load(load::Arguments),
    /// Kill and pause processes of a team over NATS, and check that nothing is lost or repeated
    Chaos(chaos::Arguments),
    /// Cut off, lose and restart hosts of a team over three NATS servers, and check that nothing is lost or repeated
    Hosts(hosts::Arguments),
    /// Start 1, 2, 4 and 8 Experts of one domain on the same queue of alerts, and compare
    Scale(scale::Arguments),
    /// Try every subject as the address of an answer, as every user of a NATS server
    Reply(reply::Arguments),
    /// Count the bytes of all prompts, compared with the whole Journal and with message history
    Prompts(prompts::Arguments),
    /// Load generated logs, investigate them, and append events: time and memory of each
    Bench(bench::Arguments),
    /// Generate many investigations, and measure the index from which they are listed
    Index(index::Arguments),
    /// Put attacks inside an innocent process and count those that are dismissed
    Deceive(deceive::Arguments),
    /// Count the records of ordinary logs that the detector takes for text to the investigator
    Detect(detect::Arguments),
    /// Put forged logs beside the demo's evidence and count those that are believed
    Sensor(sensor::Arguments),
    /// Hide cases in records about others and count the events that stay on the Timeline
    Noise(noise::Arguments),
    /// Give damaged inputs to the citation check, the evidence parsers and the message decoders
    Fuzz(fuzz::Arguments),
}

impl Lab {
    fn run(self) -> Result<ExitCode> {
        match self {
            Self::Calibrate(arguments) => calibrate::run(&arguments),
            Self::Cases(arguments) => cases::run(&arguments),
            Self::Load(arguments) => load::run(&arguments),
            Self::Chaos(arguments) => chaos::run(&arguments),
            Self::Hosts(arguments) => hosts::run(&arguments),
            Self::Scale(arguments) => scale::run(&arguments),
            Self::Reply(arguments) => reply::run(&arguments),
            Self::Prompts(arguments) => prompts::run(&arguments),
            Self::Bench(arguments) => bench::run(arguments),
            Self::Index(arguments) => index::run(&arguments),
            Self::Deceive(arguments) => deceive::run(&arguments),
            Self::Detect(arguments) => detect::run(&arguments),
            Self::Sensor(arguments) => sensor::run(&arguments),
            Self::Noise(arguments) => noise::run(&arguments),
            Self::Fuzz(arguments) => fuzz::run(arguments),
        }
    }
}

fn main() -> ExitCode {
    Lab::parse().run().unwrap_or_else(|error| match error.downcast::<Failure>() {
        Ok(failure) => {
            screen::complain(&failure);
            failure.exit.code().into()
        }
        Err(error) => {
            eprintln!("casebook-lab: {error}");
            ExitCode::FAILURE
        }
    })
}
