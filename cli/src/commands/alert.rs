use std::time::Duration;

use casebook_hub::service::OpenAnswer;
use casebook_protocol::{InvestigationId, subject};
use casebook_runtime::nats::{Connection, NatsError};

use crate::args::SendAlert;
use crate::failure::{Exit, Failure};
use crate::screen::{DIM, Screen, YELLOW, paint, safe, tell};

const ANSWER: Duration = Duration::from_secs(15);
const ADVICE: &str = "send one alert as a JSON object of at most 1 MiB";

/// Sends `alert` to a Hub and returns the investigation's id.
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
            // The server stores it until a Hub starts.
            connection.store(subject::ALERTS, bytes).await?;
            tell(paint(
                YELLOW,
                format_args!("no Hub is running; alert {} waits on the server", safe(alert.id.as_str(), 80)),
            ));
            return Ok(Exit::Done);
        }
        Err(error) => return Err(error.into()),
    };
    match serde_json::from_slice(&answer).map_err(Failure::defect)? {
        OpenAnswer::Accepted { investigation, severity, .. } => {
            // Only the id goes to standard output, for scripts.
            screen.line(&investigation);
            tell(paint(
                DIM,
                format_args!(
                    "severity {severity}; follow the investigation with: casebook watch {investigation} --nats {}{}{}",
                    connection.url(),
                    // A user who may send alerts cannot read investigations.
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
