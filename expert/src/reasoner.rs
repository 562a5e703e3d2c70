//! Chooses the reasoner of an Expert by its definition: model, instructions and limits.

use std::collections::BTreeSet;
use std::sync::Arc;

use casebook_agent::model::config::{ANALYST, Config, NoModel};
use casebook_agent::model::open::Models;
use casebook_agent::model::reasoner::assign;
use casebook_agent::model::reword::Prompts;
use casebook_agent::reasoner::{Analyst, Reasoner};
use casebook_protocol::{Member, Phase, Role, TaskKind, server_of};

use crate::analyst;
use crate::brief::ExpertBrief;
use crate::definition::Definition;
use crate::roster::TeamMember;
use crate::scope::ScopedToSources;

/// The reasoner that `models` has for the Expert's domain, with `prompts` and the instructions of the
/// definition. If `member` is given, it only performs tasks over the evidence of this member.
pub fn of(
    definition: Option<&Definition>,
    member: Option<Member>,
    models: Option<&Models>,
    prompts: Option<&Arc<Prompts>>,
) -> Arc<dyn Reasoner> {
    let reasoner = assign(models, prompts, &added(definition), Arc::new(ExpertBrief), Analyst(analyst::think));
    let limits = definition.map(|d| d.limits).unwrap_or_default();
    Arc::new(ScopedToSources { reasoner, member, limits })
}

fn added(definition: Option<&Definition>) -> String {
    match definition.map(|d| d.instructions.trim()) {
        None | Some("") => String::new(),
        Some(text) => format!("\n\n# Your domain\n\n{text}\n"),
    }
}

/// What the built-in analyst does not use, of the Experts in files that it plays.
pub fn unused(config: Option<&Config>, members: &[TeamMember]) -> Option<String> {
    let played = |one: &&TeamMember| {
        let domain = Some(&one.member.domain);
        let model = |phase: &Phase| config?.select(Role::Expert, TaskKind::Investigate, *phase, domain);
        // A preset has its name in angle brackets; the analyst knows what it says.
        let own = one.definition.as_ref().is_some_and(|own| !own.file.to_string_lossy().starts_with('<'));
        own && Phase::ALL.iter().find_map(model).is_none()
    };
    let played: Vec<&TeamMember> = members.iter().filter(played).collect();
    let names: Vec<&str> = played.iter().map(|one| one.member.domain.as_str()).collect();
    let tools = played.iter().flat_map(|one| &one.member.toolset.tools);
    let servers: BTreeSet<&str> = tools.filter_map(|tool| server_of(&tool.name)).collect();
    let servers: Vec<&str> = servers.into_iter().collect();
    let calls = if servers.is_empty() { String::new() } else { format!(", or the servers {}", servers.join(", ")) };
    let names = (!names.is_empty()).then(|| names.join(", "))?;
    Some(format!("the built-in analyst plays {names}: it does not use the instructions in their files{calls}"))
}

/// Seats in `config` the models that `definitions` name.
pub fn with_expert_models<'d>(
    config: Config,
    definitions: impl IntoIterator<Item = &'d Definition>,
) -> Result<Config, NoModel> {
    definitions.into_iter().try_fold(config, |config, definition| match &definition.model {
        Some(model) => config.with_expert(&definition.name, model),
        None => Ok(config),
    })
}

/// The first definition that names a model, so that a missing models file can be reported.
pub fn wants_model<'d>(definitions: impl IntoIterator<Item = &'d Definition>) -> Option<&'d Definition> {
    definitions.into_iter().find(|d| d.model.as_deref().is_some_and(|model| model != ANALYST))
}

#[cfg(test)]
mod tests {
    use casebook_agent::model::brief::{Brief, Briefing};
    use casebook_agent::model::reword::Reworded;
    use casebook_agent::reasoner::{Action, CallRequest, Past, Turn};
    use casebook_protocol::{
        Alert, Allowance, Domain, ExpertView, InvestigationId, Phase, Question, Task, TaskId, TaskKind, Toolset, View,
    };

    use super::*;

    const FILE: &str = "name: code\ndescription: Knows.\ninstructions: Look at the tags.\ntools: [evidence/*]\n";
    const MODELS: &str = "[models.small]\nprovider = \"openai-compatible\"\nmodel = \"s\"\nbase_url = \"http://127.0.0.1:9/v1\"\nwindow = 32768\n[models.big]\nprovider = \"openai-compatible\"\nmodel = \"b\"\nbase_url = \"http://127.0.0.1:9/v1\"\nwindow = 32768\n[roles.expert]\nmodel = \"small\"\n";

    fn expert(more: &str) -> Definition {
        Definition::parse(std::path::Path::new("code.yaml"), &format!("{FILE}{more}")).unwrap()
    }

    fn task() -> Task {
        let domain = Domain::new("code").unwrap();
        let view = ExpertView {
            alert: Alert::parse(b"{}").unwrap(),
            journal: vec![],
            question: Question { text: "what was built?".into(), to: vec![], follow: vec![] },
            toolset: Toolset { name: "evidence".into(), about: "logs".into(), tools: vec![] },
            sources: vec![],
            earlier: vec![],
            snapshot: Vec::new(),
        };
        Task {
            id: TaskId::of(1, TaskKind::Investigate, Some(&domain)),
            investigation: InvestigationId::new("i").unwrap(),
            domain: Some(domain),
            phase: Phase::Discovery,
            round: 1,
            view: View::Investigate(Box::new(view)),
            allowance: Allowance::default(),
        }
    }

    #[test]
    fn a_file_uses_only_the_model_that_it_names() {
        let selected = |definition: &Definition, domain: &str| {
            let config = with_expert_models(Config::parse("models.toml", MODELS).unwrap(), [definition])?;
            let domain = Domain::new(domain).unwrap();
            let selected =
                config.select(casebook_protocol::Role::Expert, TaskKind::Investigate, Phase::Trace, Some(&domain));
            Ok::<_, NoModel>(selected.map(|selected| selected.chain[0].name.clone()))
        };
        assert_eq!(selected(&expert(""), "code"), Ok(Some("small".into())));
        assert_eq!(selected(&expert("model: big\n"), "code"), Ok(Some("big".into())));
        assert_eq!(selected(&expert("model: big\n"), "cloud"), Ok(Some("small".into())));
        assert_eq!(selected(&expert("model: analyst\n"), "code"), Ok(None));
        let error = selected(&expert("model: huge\n"), "code").unwrap_err().to_string();
        assert!(error.contains("expected a model of the models file (big, small), got \"huge\""), "{error}");
        assert!(wants_model([&expert("model: big\n")]).is_some());
        assert!(wants_model([&expert("model: analyst\n"), &expert("")]).is_none());
    }

    #[tokio::test]
    async fn limits_of_a_file_hold_and_never_give_more_of_the_budget() {
        let limits = "limits: { turns: 40, tool_calls: 3, tokens: 999999999, time: 1m }\n";
        let reasoner = of(Some(&expert(limits)), None, None, None);
        let (given, held) = (Allowance::default(), reasoner.allowance(&task()));
        assert_eq!((held.turns, held.tool_calls, held.seconds), (40, 3, 60));
        assert_eq!((held.tokens, held.model_calls), (given.tokens, given.model_calls));
        let turn = Turn {
            toolset: Arc::new(Toolset { name: String::new(), about: String::new(), tools: vec![] }),
            last: false,
            prompt_cache: casebook_agent::reasoner::PromptCache::default(),
        };
        let next = reasoner.next(&Arc::new(task()), &Past::default(), &turn).await;
        let listed = CallRequest { tool: "list_sources".into(), arguments: "{}".into() };
        assert_eq!(next, Action::Call(vec![listed]), "without a model the analyst plays");
    }

    #[test]
    fn what_a_file_tells_stands_at_the_end_of_what_every_expert_is_told() {
        let plain = ExpertBrief.brief(&task(), 100_000).system;
        let told = Reworded { brief: Arc::new(ExpertBrief), prompts: None, added: added(Some(&expert(""))) };
        let system = told.brief(&task(), 100_000).system;
        assert_eq!(system, format!("{plain}\n\n# Your domain\n\nLook at the tags.\n"));
        let bytes = |b: &Briefing| b.system.len() + b.parts.iter().map(|p| p.text.len()).sum::<usize>();
        let room = bytes(&told.brief(&task(), 0)) + 100;
        assert!(bytes(&told.brief(&task(), room)) <= room);
    }
}
