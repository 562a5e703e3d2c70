//! Who there is in a team: pure, but for looking where the programs are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use casebook_protocol::subject::Queue;
use casebook_protocol::{Domain, Role};
use casebook_runtime::service::child::Plan;
use casebook_runtime::service::command::CONFIG_ENV;
use casebook_runtime::service::common;
use casebook_runtime::service::settings::quoted;

use super::Place;
use crate::args::{Limits, LogForm};
use crate::failure::Failure;

/// So many Experts there are at least: where the evidence has fewer domains, some share one.
pub const EXPERTS: usize = 3;
/// What the processes log where nobody says otherwise.
const LOG: &str = "info";

/// A process of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name: that of its queue, with a number where several share it.
    pub name: String,
    /// The program.
    pub program: &'static str,
    /// Its user at the server.
    pub user: String,
    /// The domain of an Expert.
    pub domain: Option<Domain>,
}

/// A Hub, a Director, a Critic, and an Expert for each of `domains`, three at the least.
#[must_use]
pub fn members(domains: &[Domain]) -> Vec<Member> {
    let member = |name: &str, program| Member { name: name.into(), program, user: name.into(), domain: None };
    let mut all = vec![
        member("hub", "casebook-hub"),
        member("director", "casebook-director"),
        member("critic", "casebook-critic"),
    ];
    for n in 0..domains.len().max(if domains.is_empty() { 0 } else { EXPERTS }) {
        let Some(domain) = domains.get(n % domains.len()) else { continue };
        let user = Queue::new(Role::Expert, Some(domain)).name();
        let name = match n / domains.len() {
            0 => user.clone(),
            again => format!("{user}-{}", again + 1),
        };
        all.push(Member { name, program: "casebook-expert", user, domain: Some(domain.clone()) });
    }
    all
}

/// What all processes of a team share.
pub struct Shared<'a> {
    /// Where the team keeps what it has.
    pub place: &'a Place,
    /// The server.
    pub url: &'a str,
    /// The models file.
    pub models: Option<&'a Path>,
    /// What an investigation may cost.
    pub budget: &'a Limits,
    /// How log lines look.
    pub log: LogForm,
    /// The collector that traces and metrics are sent to.
    pub otlp: Option<&'a str>,
}

/// How `member` is started.
///
/// # Errors
/// Its program is nowhere.
pub fn plan(member: &Member, shared: &Shared<'_>) -> Result<Plan, Failure> {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut set = |flag: &str, value: OsString| arguments.extend([OsString::from(flag), value]);
    set("--nats", shared.url.into());
    set("--credentials", shared.place.user(&member.user).into());
    set("--log", if shared.log == LogForm::Json { "json" } else { "text" }.into());
    if let Some(collector) = shared.otlp {
        set("--otlp", collector.into());
    }
    if let Some(domain) = &member.domain {
        set("--profile", shared.place.profile(domain.as_str()).into());
    }
    if member.name == "hub" {
        budget(shared.budget).into_iter().for_each(|(flag, value)| set(flag, value.into()));
    } else if let Some(models) = shared.models {
        set("--models", models.into());
    }
    let filter = std::env::var_os("CASEBOOK_LOG").unwrap_or_else(|| LOG.into());
    Ok(Plan {
        program: program(member.program)?,
        arguments,
        environment: vec![("CASEBOOK_LOG".into(), filter)],
        // A team is as it is said here, whatever else is set for processes of this machine.
        without: [CONFIG_ENV, "CASEBOOK_PROFILE"]
            .into_iter()
            .chain(casebook_agent::service::KEYS.iter().map(|key| key.env))
            .filter(|name| *name != common::DRAIN.env)
            .collect(),
        log: shared.place.log(&member.name),
    })
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

/// The program `name`: beside this one, else in the path.
fn program(name: &str) -> Result<PathBuf, Failure> {
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join(name)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).map(|folder| folder.join(name)).collect();
    beside.into_iter().chain(folders).find(|program| program.is_file()).ok_or_else(|| {
        Failure::usage(
            format!("there is no program {name}, neither beside casebook nor in the PATH"),
            "build all of them: cargo build --release --workspace --bins",
        )
    })
}

/// The profile of an Expert of `domain`.
#[must_use]
pub fn profile(evidence: Option<(&Path, &Path)>, team: Option<&Path>, domain: &Domain) -> String {
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
