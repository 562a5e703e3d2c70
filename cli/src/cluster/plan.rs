//! The processes of a team, and the command that starts each.

use std::path::{Path, PathBuf};
use std::process::Command;

use casebook_expert::settings::Options;
use casebook_protocol::subject::Queue;
use casebook_protocol::{Domain, Role};
use casebook_runtime::service::common::DRAIN_ENV;
use casebook_runtime::service::settings::{quoted, variables};

use super::Place;
use super::process::serving;
use crate::args::LogForm;
use casebook_hub::program::Limits;

/// The minimum number of Experts: if the evidence has fewer domains, some share one.
const EXPERTS: usize = 3;
const LOG: &str = "info";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// The name of its user, with a number if several share it.
    pub(crate) name: String,
    pub(crate) user: String,
    pub(crate) domain: Option<Domain>,
}

pub(crate) fn members(domains: &[Domain]) -> Vec<Member> {
    let mut all = ["hub", "director", "critic"]
        .map(|name| Member { name: name.to_owned(), user: name.to_owned(), domain: None })
        .to_vec();
    for (n, domain) in domains.iter().cycle().take(domains.len().max(EXPERTS)).enumerate() {
        let user = Queue::new(Role::Expert, Some(domain)).name();
        let name = match n / domains.len() {
            0 => user.clone(),
            again => format!("{user}-{}", again + 1),
        };
        all.push(Member { name, user, domain: Some(domain.clone()) });
    }
    all
}

pub(crate) struct Shared<'a> {
    pub(crate) place: &'a Place,
    pub(crate) url: &'a str,
    pub(crate) models: Option<&'a Path>,
    pub(crate) budget: &'a Limits,
    pub(crate) log: LogForm,
    pub(crate) otlp: Option<&'a str>,
}

/// The process that serves the pages on `port`.
pub(crate) fn pages(port: u16, shared: &Shared<'_>) -> Command {
    let mut command = begun("casebook-api", "reader", shared);
    command.args(["--port", &port.to_string(), "--data"]).arg(shared.place.api());
    command.arg("--mac-key-file").arg(shared.place.mac_key());
    command.arg("--access-key-file").arg(shared.place.access_key());
    command
}

pub(crate) fn command(member: &Member, shared: &Shared<'_>) -> Command {
    let role = if member.domain.is_some() { "expert" } else { &member.name };
    let mut command = begun(&format!("casebook-{role}"), &member.user, shared);
    if let Some(domain) = &member.domain {
        command.arg("--profile").arg(shared.place.profile(domain.as_str()));
    }
    if role == "hub" {
        command.arg("--mac-key-file").arg(shared.place.mac_key());
        for (flag, value) in budget(shared.budget) {
            command.args([flag, &value]);
        }
    } else if let Some(models) = shared.models {
        command.arg("--models").arg(models);
    }
    command
}

/// What all processes have in common.
fn begun(name: &str, user: &str, shared: &Shared<'_>) -> Command {
    let mut command = serving(&program(name));
    command.args(["--nats", shared.url, "--log", if shared.log == LogForm::Json { "json" } else { "text" }]);
    command.arg("--credentials").arg(shared.place.user(user));
    if let Some(collector) = shared.otlp {
        command.args(["--otlp", collector]);
    }
    // Settings for other processes on this machine must not apply to the team.
    let settings = variables::<Options>().into_iter().filter(|name| name != DRAIN_ENV);
    for name in settings.chain(["CASEBOOK_CONFIG".to_owned()]) {
        command.env_remove(name);
    }
    command.env("CASEBOOK_LOG", std::env::var_os("CASEBOOK_LOG").unwrap_or_else(|| LOG.into()));
    command
}

fn budget(limits: &Limits) -> Vec<(&'static str, String)> {
    let amount = |micros: u64| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let all = [
        ("--budget-rounds", limits.budget_rounds.map(|n| n.to_string())),
        ("--budget-tool-calls", limits.budget_tool_calls.map(|n| n.to_string())),
        ("--budget-model-calls", limits.budget_model_calls.map(|n| n.to_string())),
        ("--budget-tokens", limits.budget_tokens.map(|n| n.to_string())),
        ("--budget-cost", limits.budget_cost.map(amount)),
        ("--budget-minutes", limits.budget_minutes.map(|n| n.to_string())),
    ];
    all.into_iter().filter_map(|(flag, value)| Some((flag, value?))).collect()
}

/// The program next to this one, or in the PATH.
fn program(name: &str) -> PathBuf {
    let beside = std::env::current_exe().unwrap_or_default().with_file_name(name);
    if beside.is_file() { beside } else { name.into() }
}

pub(crate) fn profile(evidence: Option<(&Path, &Path)>, team: Option<&Path>, domain: &Domain) -> String {
    let path = |path: &Path| quoted(&path.display().to_string());
    let mut text = String::new();
    if let Some((evidence, index)) = evidence {
        text.push_str(&format!("evidence = {}\nindex = {}\n", path(evidence), path(index)));
    }
    if let Some(team) = team {
        text.push_str(&format!("team = {}\n", path(team)));
    }
    text + &format!("domains = [{}]\n", quoted(domain.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(domains: &[&str]) -> Vec<String> {
        let domains: Vec<Domain> = domains.iter().map(|d| Domain::new(*d).unwrap()).collect();
        members(&domains).into_iter().map(|m| m.name).collect()
    }

    #[test]
    fn each_domain_has_its_expert_and_there_are_three_at_the_least() {
        assert_eq!(names(&["a", "b", "c", "d"])[3..], ["expert-a", "expert-b", "expert-c", "expert-d"]);
        assert_eq!(names(&["a", "b"])[3..], ["expert-a", "expert-b", "expert-a-2"]);
        assert_eq!(names(&["a"]), ["hub", "director", "critic", "expert-a", "expert-a-2", "expert-a-3"]);
    }

    #[test]
    fn limits_reach_the_hub_and_nobody_else() {
        let limits = Limits { budget_rounds: Some(3), budget_cost: Some(2_500_000), ..Limits::default() };
        let all = [("--budget-rounds", "3".to_owned()), ("--budget-cost", "2.500000".to_owned())];
        assert_eq!(budget(&limits), all);
    }

    #[test]
    fn a_profile_says_what_an_expert_reads() {
        let evidence = (Path::new("/l\"ogs"), Path::new("/i"));
        let text = profile(Some(evidence), Some(Path::new("/t")), &Domain::new("network").unwrap());
        let profile = casebook_expert::profile::Profile::parse(Path::new("/x.toml"), &text).unwrap();
        assert_eq!(profile.evidence, Some((evidence.0.to_path_buf(), evidence.1.to_path_buf())));
        assert_eq!(profile.team, Some(PathBuf::from("/t")));
        assert_eq!(profile.domains.len(), 1);
    }
}
