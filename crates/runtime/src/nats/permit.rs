//! The accounts of the server, each with one user and the least permissions that it needs. The server's configuration
//! is generated from them.
//!
//! NATS does not check where the answer to a request goes. So only Hubs are in the account with the streams. Every
//! other user has an account of its own, which imports what the user may do: the server then replaces the address of
//! the answer, and an answer stays in the account of the user who asked.

use std::collections::BTreeMap;

use casebook_protocol::Role;
use casebook_protocol::subject::{self, Queue};

use super::streams;

/// The account of the Hubs, which has the streams.
pub const ACCOUNT: &str = "casebook";
/// The prefix of the JetStream API for users in other accounts. The server answers `$JS.API` itself for the account of
/// the client, so an import needs another name.
pub const IMPORTED_API: &str = "casebook.api";
pub const API: &str = "$JS.API";
/// The prefix of addresses that the server puts in place of the address in another account.
pub(crate) const REPLACED: &str = "_R_.";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum User {
    /// Hubs create the streams and write the logs.
    Hub,
    Worker(Queue),
    Publisher,
    Reader,
    /// Programs of others that miss no message. A Hub makes their consumers: who may create a consumer chooses the
    /// subject to which the server delivers, and NATS does not check that.
    Integration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    pub publish: Vec<String>,
    pub subscribe: Vec<String>,
    pub answers: bool,
}

impl User {
    /// The name of the user, which is also the name of its account, unless it is the Hub.
    pub fn name(&self) -> String {
        match self {
            Self::Hub => "hub".into(),
            Self::Worker(queue) => queue.name(),
            Self::Publisher => "publisher".into(),
            Self::Reader => "reader".into(),
            Self::Integration => "integration".into(),
        }
    }

    /// The permissions of this user. `queues` are the queues of all workers, whose records some users may read.
    pub fn permissions(&self, queues: &[Queue]) -> Permissions {
        let inbox = format!("{}>", inbox(&self.name()));
        let publish: Vec<String> = match self {
            Self::Hub => ["casebook.>", "$JS.API.>", "$JS.ACK.>"].map(String::from).to_vec(),
            Self::Worker(queue) => worker(queue, queues),
            Self::Publisher => vec![subject::ALERTS.into(), subject::OPEN.into()],
            Self::Reader => [
                vec![
                    format!("{IMPORTED_API}.STREAM.INFO.{}", streams::LOG),
                    format!("{IMPORTED_API}.STREAM.MSG.GET.{}", streams::LOG),
                    artifacts(),
                ],
                all_results(queues),
            ]
            .concat(),
            Self::Integration => {
                let followed = streams::FOLLOWED.iter().flat_map(|(stream, _)| {
                    [
                        format!("{IMPORTED_API}.CONSUMER.MSG.NEXT.{stream}.*"),
                        format!("{IMPORTED_API}.CONSUMER.INFO.{stream}.*"),
                        format!("$JS.ACK.{stream}.*.>"),
                    ]
                });
                [subject::FOLLOW.into(), artifacts()].into_iter().chain(followed).collect()
            }
        };
        let subscribe = match self {
            Self::Hub => vec!["casebook.>".into(), inbox],
            Self::Worker(_) | Self::Publisher | Self::Integration => vec![inbox],
            Self::Reader => {
                let heard = ["casebook.events.>", "casebook.timeline.>", subject::REPORTS, "casebook.dead.>"];
                heard.into_iter().map(String::from).chain([inbox]).collect()
            }
        };
        Permissions { publish, subscribe, answers: *self == Self::Hub }
    }
}

/// The prefix of the subjects to which answers for `user` go.
pub(crate) fn inbox(user: &str) -> String {
    format!("_INBOX_{user}.")
}

fn artifacts() -> String {
    format!("{IMPORTED_API}.DIRECT.GET.{}.casebook.artifact.>", streams::ARTIFACTS)
}

fn results(writer: Option<&Queue>) -> String {
    format!("{IMPORTED_API}.STREAM.MSG.GET.{}", streams::results(writer))
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
        format!("{IMPORTED_API}.CONSUMER.MSG.NEXT.{tasks}.{name}"),
        format!("{IMPORTED_API}.CONSUMER.INFO.{tasks}.{name}"),
        format!("$JS.ACK.{tasks}.{name}.>"),
        artifacts(),
    ];
    match queue.role {
        Role::Critic => publish.extend(all_results(queues)),
        Role::Director | Role::Expert => publish.push(results(Some(queue))),
    }
    publish
}

/// A subject as the account of the Hubs has it.
fn exported(subject: &str) -> String {
    match subject.strip_prefix(IMPORTED_API) {
        Some(rest) => format!("{API}{rest}"),
        None => subject.to_owned(),
    }
}

/// The `accounts` block of a server's configuration. Each password is text in the server's syntax: a quoted
/// bcrypt hash, or `$VARIABLE`.
pub fn accounts(users: &[(User, String)]) -> String {
    let queues: Vec<Queue> = users
        .iter()
        .filter_map(|(user, _)| match user {
            User::Worker(queue) => Some(queue.clone()),
            _ => None,
        })
        .collect();
    let (mut services, mut heard) = (BTreeMap::<String, Vec<String>>::new(), BTreeMap::<String, Vec<String>>::new());
    let (mut hubs, mut others) = (String::new(), String::new());
    for (user, password) in users {
        let (name, permissions) = (user.name(), user.permissions(&queues));
        if *user == User::Hub {
            hubs.push_str(&credentials(&name, password, &permissions));
            continue;
        }
        let mut imports = String::new();
        for subject in &permissions.publish {
            let offered = exported(subject);
            let renamed = if offered == *subject { String::new() } else { format!(", to: \"{subject}\"") };
            imports.push_str(&format!(
                "      {{ service: {{ account: \"{ACCOUNT}\", subject: \"{offered}\" }}{renamed} }}\n"
            ));
            services.entry(offered).or_default().push(name.clone());
        }
        let own = inbox(&name);
        for subject in permissions.subscribe.iter().filter(|subject| !subject.starts_with(&own)) {
            imports.push_str(&format!("      {{ stream: {{ account: \"{ACCOUNT}\", subject: \"{subject}\" }} }}\n"));
            heard.entry(subject.clone()).or_default().push(name.clone());
        }
        let user = credentials(&name, password, &permissions);
        others.push_str(&format!("  \"{name}\" {{\n{user}    imports = [\n{imports}    ]\n  }}\n"));
    }
    let quoted = |names: &[String]| names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let mut exports = String::new();
    for (subject, names) in &services {
        // A request for jobs has several answers: the job, or the end of the wait.
        let several = if subject.contains(".MSG.NEXT.") { ", response_type: stream" } else { "" };
        let accounts = quoted(names);
        exports.push_str(&format!("      {{ service: \"{subject}\"{several}, accounts: [{accounts}] }}\n"));
    }
    for (subject, names) in &heard {
        exports.push_str(&format!("      {{ stream: \"{subject}\", accounts: [{}] }}\n", quoted(names)));
    }
    format!(
        "accounts {{\n  \"{ACCOUNT}\" {{\n    jetstream: enabled\n{hubs}    exports = [\n{exports}    ]\n  }}\n{others}}}\n"
    )
}

fn credentials(name: &str, password: &str, permissions: &Permissions) -> String {
    let list = |all: &[String]| all.iter().map(|s| format!("\"{s}\"")).collect::<Vec<_>>().join(",\n            ");
    let answers = if permissions.answers { "\n          allow_responses: true" } else { "" };
    format!(
        "    users = [\n      {{\n        user: \"{name}\", password: {password}\n        permissions: {{\n          \
         publish: [\n            {}\n          ]\n          subscribe: [\n            {}\n          ]{answers}\n        \
         }}\n      }}\n    ]\n",
        list(&permissions.publish),
        list(&permissions.subscribe)
    )
}
