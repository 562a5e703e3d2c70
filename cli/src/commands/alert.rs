//! `casebook alert`

use std::time::Duration;

use casebook_hub::service::OpenAnswer;
use casebook_protocol::{InvestigationId, subject};
use casebook_runtime::nats::{Connection, NatsError};

use crate::args::SendAlert;
use crate::failure::{Exit, Failure};
use crate::screen::{DIM, Screen, YELLOW, paint, safe, tell};

/// How long a Hub may take to say that it has the alert.
const ANSWER: Duration = Duration::from_secs(15);
const ADVICE: &str = "send one alert as a JSON object of at most 1 MiB";

/// Has `alert` investigated by a Hub that is there; gives the investigation's id.
pub(crate) async fn open(connection: &Connection, alert: Vec<u8>) -> Result<InvestigationId, Failure> {
    let answer = connection.request(subject::OPEN, alert, ANSWER).await?;
    match serde_json::from_slice(&answer).map_err(Failure::defect)? {
        OpenAnswer::Accepted { investigation, .. } => InvestigationId::new(investigation).map_err(Failure::defect),
        OpenAnswer::Refused { error } => Err(Failure::usage(error, ADVICE)),
    }
}

pub(super) async fn run(args: &SendAlert, screen: &mut Screen) -> Result<Exit, Failure> {
    let (bytes, alert) = super::investigate::read_alert(&args.alert)?;
    let connection = args.nats.connect("publisher").await?;
    let answer = match connection.request(subject::OPEN, bytes.clone(), ANSWER).await {
        Ok(answer) => answer,
        Err(NatsError::NoResponders { .. }) => {
            // The server keeps it until a Hub comes.
            connection.store(subject::ALERTS, bytes).await?;
            tell(paint(
                YELLOW,
                format_args!(
                    "no Hub is there: alert {} waits on the server until one comes",
                    safe(alert.id.as_str(), 80)
                ),
            ));
            return Ok(Exit::Done);
        }
        Err(error) => return Err(error.into()),
    };
    match serde_json::from_slice(&answer).map_err(Failure::defect)? {
        OpenAnswer::Accepted { investigation, severity, .. } => {
            // Alone, so that a script can take it as it is.
            screen.line(&investigation);
            tell(paint(
                DIM,
                format_args!(
                    "an investigation of severity {severity}; follow it with: casebook watch {investigation} --nats {}{}{}",
                    connection.url(),
                    // Whoever may send may not read.
                    if args.nats.credentials.is_some() { " --credentials FILE (of the user reader)" } else { "" },
                    args.nats
                        .ca
                        .as_ref()
                        .map_or(String::new(), |file| format!(" --ca {}", safe(&file.display().to_string(), 400))),
                ),
            ));
            Ok(Exit::Done)
        }
        OpenAnswer::Refused { error } => Err(Failure::usage(error, ADVICE)),
    }
}
