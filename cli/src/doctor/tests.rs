use async_trait::async_trait;
use casebook_agent::model::Fault;
use casebook_agent::model::brief::Brief;
use casebook_agent::model::reword::{Prompts, Reworded};
use casebook_critic::brief::CriticBrief;
use casebook_director::brief::DirectorBrief;
use casebook_expert::brief::ExpertBrief;

use super::*;

#[test]
fn the_bench_has_a_task_of_each_kind_and_the_analyst_passes_it() {
    struct Silent;
    #[async_trait]
    impl Model for Silent {
        async fn ask(&self, _: &Ask, _: Duration) -> Result<Answered, AskError> {
            Err(AskError { fault: Fault::Unavailable, message: "no server there".into(), attempts: 1 })
        }
    }
    casebook_runtime::process::run(async {
        let (_stopper, mut stop) = crate::stop::Stop::by_hand();
        let bench = Bench::prepare(&mut stop).await.unwrap();
        let analyst = Arc::new(Config::default());
        let silent: Arc<dyn Model> = Arc::new(Silent);
        for (kind, n) in TaskKind::ALL.into_iter().zip(1..) {
            let trial = bench.try_on(&analyst, &silent, kind, n).await.unwrap();
            assert!(trial.outcome.result.is_ok(), "{kind:?}: {:?}", trial.outcome.result);
            if kind == TaskKind::Investigate {
                assert!(!trial.outcome.calls.is_empty());
            }
        }
        let text = "[models.m]\nprovider = \"openai-compatible\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9/v1\"\nwindow = 65536\n";
        let model = Arc::new(Config::parse("models.toml", text).unwrap().alone("m").unwrap());
        let trial = bench.try_on(&model, &silent, TaskKind::Plan, 9).await.unwrap();
        assert_eq!(trial.heard.len(), 1);
        assert!(trial.outcome.result.unwrap_err().contains("no server there"));
    })
    .unwrap();
}

#[test]
fn copies_of_the_built_in_prompts_say_what_the_built_in_prompts_say() {
    let built_in = [
        ("plan.md", include_str!("../../../director/prompts/plan.md")),
        ("decide.md", include_str!("../../../director/prompts/decide.md")),
        ("report.md", include_str!("../../../director/prompts/report.md")),
        ("investigate.md", include_str!("../../../expert/prompts/investigate.md")),
        ("review.md", include_str!("../../../critic/prompts/review.md")),
        ("timeline.md", include_str!("../../../critic/prompts/timeline.md")),
    ];
    let mut prompts = Prompts::default();
    for (file, text) in built_in {
        prompts.take(file, text).unwrap();
    }
    let prompts = Arc::new(prompts);
    casebook_runtime::process::run(async {
        let (_stopper, mut stop) = Stop::by_hand();
        let bench = Bench::prepare(&mut stop).await.unwrap();
        for (kind, task) in &bench.tasks {
            let brief: Arc<dyn Brief> = match kind.role() {
                Role::Director => Arc::new(DirectorBrief),
                Role::Expert => Arc::new(ExpertBrief),
                Role::Critic => Arc::new(CriticBrief),
            };
            let reworded =
                Reworded { brief: Arc::clone(&brief), prompts: Some(Arc::clone(&prompts)), added: String::new() };
            assert_eq!(reworded.brief(task, 60_000), brief.brief(task, 60_000), "{kind:?}");
        }
    })
    .unwrap();
}
