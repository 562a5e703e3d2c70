//! The least permissions that each user of the server needs. The server's configuration is generated from them.

use casebook_protocol::Role;
use casebook_protocol::subject::{self, Queue};

use super::streams;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum User {
    /// Hubs create the streams and write the logs.
    Hub,
    Worker(Queue),
    Publisher,
    Reader,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    pub publish: Vec<String>,
    pub subscribe: Vec<String>,
    pub answers: bool,
}

impl User {
    pub fn name(&self) -> String {
        match self {
            Self::Hub => "hub".into(),
            Self::Worker(queue) => queue.name(),
            Self::Publisher => "publisher".into(),
            Self::Reader => "reader".into(),
        }
    }

    /// The permissions of this user. `queues` are the queues of all workers, whose records some users may read.
    pub fn permissions(&self, queues: &[Queue]) -> Permissions {
        let inbox = format!("_INBOX_{}.>", self.name());
        let publish: Vec<String> = match self {
            Self::Hub => ["casebook.>", "$JS.API.>", "$JS.ACK.>"].map(String::from).to_vec(),
            Self::Worker(queue) => worker(queue, queues),
            Self::Publisher => vec![subject::ALERTS.into(), subject::OPEN.into()],
            Self::Reader => [
                vec![
                    format!("$JS.API.STREAM.INFO.{}", streams::LOG),
                    format!("$JS.API.STREAM.MSG.GET.{}", streams::LOG),
                    artifacts(),
                ],
                all_results(queues),
            ]
            .concat(),
        };
        let subscribe = match self {
            Self::Hub => vec!["casebook.>".into(), inbox],
            Self::Worker(_) | Self::Publisher => vec![inbox],
            Self::Reader => {
                let heard = ["casebook.events.>", "casebook.timeline.>", subject::REPORTS, "casebook.dead.>"];
                heard.into_iter().map(String::from).chain([inbox]).collect()
            }
        };
        Permissions { publish, subscribe, answers: *self == Self::Hub }
    }
}

fn artifacts() -> String {
    format!("$JS.API.DIRECT.GET.{}.casebook.artifact.>", streams::ARTIFACTS)
}

fn results(writer: Option<&Queue>) -> String {
    format!("$JS.API.STREAM.MSG.GET.{}", streams::results(writer))
}

fn all_results(queues: &[Queue]) -> Vec<String> {
    std::iter::once(None).chain(queues.iter().map(Some)).map(results).collect()
}

fn worker(queue: &Queue, queues: &[Queue]) -> Vec<String> {
    let (tasks, name) = (streams::TASKS, queue.name());
    let mut publish = vec![
        format!("casebook.result.{queue}.>"),
        "casebook.artifact.>".into(),
        subject::join(queue),
        subject::presence(queue),
        subject::outcomes(queue),
        subject::steps(queue),
        subject::dead(queue),
        format!("$JS.API.CONSUMER.MSG.NEXT.{tasks}.{name}"),
        format!("$JS.API.CONSUMER.INFO.{tasks}.{name}"),
        format!("$JS.ACK.{tasks}.{name}.>"),
        artifacts(),
    ];
    match queue.role {
        Role::Critic => publish.extend(all_results(queues)),
        Role::Director | Role::Expert => publish.push(results(Some(queue))),
    }
    publish
}

/// The `authorization` block of a server's configuration. Each password is text in the server's syntax: a quoted
/// bcrypt hash, or `$VARIABLE`.
pub fn authorization(users: &[(User, String)]) -> String {
    let list = |all: &[String]| all.iter().map(|s| format!("\"{s}\"")).collect::<Vec<_>>().join(",\n          ");
    let queues: Vec<Queue> = users
        .iter()
        .filter_map(|(user, _)| match user {
            User::Worker(queue) => Some(queue.clone()),
            _ => None,
        })
        .collect();
    let mut text = String::from("authorization {\n  users = [\n");
    for (user, password) in users {
        let Permissions { publish, subscribe, answers } = user.permissions(&queues);
        let answers = if answers { "\n        allow_responses: true" } else { "" };
        text.push_str(&format!(
            "    {{\n      user: \"{}\", password: {password}\n      permissions: {{\n        publish: [\n          \
             {}\n        ]\n        subscribe: [\n          {}\n        ]{answers}\n      }}\n    }}\n",
            user.name(),
            list(&publish),
            list(&subscribe)
        ));
    }
    text.push_str("  ]\n}\n");
    text
}
