use casebook_protocol::{Budget, Event, Usage};
use casebook_runtime::bus::memory::Faults;
use casebook_runtime::process::run;

use super::known::{Earlier, duplicate};
use super::*;
use crate::actor::tests::{ROSTER, World, begin, soon, world};
use crate::memory::MemoryStore;
use crate::tests::script::case;

fn intake(world: &World, hub: &HubHandle, settings: Settings) -> Intake {
    let members = Arc::new(|| Some(case(&ROSTER).roster));
    Intake::new(world.env.clone(), hub.clone(), settings, members)
}

fn settings(evidence: &str) -> Settings {
    let budget = case(&ROSTER).budget;
    Settings { budget, at_once: 1, waiting: Some(3), evidence: evidence.into(), record_first: true }
}

fn alert(id: &str, severity: &str) -> Vec<u8> {
    format!(r#"{{"id":"{id}","severity":"{severity}"}}"#).into_bytes()
}

#[test]
fn duplicate_alert_keeps_its_investigation_unless_a_person_asks_again() {
    use Earlier::{Closed, Elsewhere, Open};
    let check = |earlier: &[Earlier], again: Option<usize>, same: Option<usize>| {
        for source in [Source::Command, Source::Http(Wish { again: true, ..Wish::default() })] {
            assert_eq!(duplicate(earlier, source), again, "{earlier:?}");
        }
        for source in [Source::Http(Wish::default()), Source::Mcp, Source::Nats] {
            assert_eq!(duplicate(earlier, source), same, "{earlier:?}");
        }
    };
    check(&[], None, None);
    check(&[Open], Some(0), Some(0));
    check(&[Closed], None, Some(0));
    check(&[Closed, Closed], None, Some(1));
    check(&[Closed, Open, Elsewhere], Some(1), Some(1));
    check(&[Elsewhere, Elsewhere], None, None);
}

#[test]
fn most_urgent_alert_begins_first_and_the_others_wait() {
    let world = world(Arc::new(MemoryStore::default()), Faults::default());
    run(async {
        // Without a team the first investigation never ends: the others wait.
        let hub = HubHandle::start(world.env.clone(), Duration::from_secs(3600));
        let intake = intake(&world, &hub, settings("/logs"));
        let mut accepted = Vec::new();
        for (id, severity) in [("a", "low"), ("b", "critical"), ("c", "high")] {
            accepted.push(intake.accept(&alert(id, severity), Source::Mcp).await.unwrap());
        }
        let refused = intake.accept(&alert("d", "critical"), Source::Mcp).await.unwrap_err();
        assert!(matches!(refused, Refused::Full { waiting: 3 }), "{refused}");
        let same = intake.accept(&alert("b", "critical"), Source::Mcp).await.unwrap();
        assert!(!same.fresh, "an alert that waits takes no second place");
        assert!(matches!(intake.accept(b"[]", Source::Command).await, Err(Refused::Alert(_))));
        for one in &accepted {
            let log = world.env.store.log(&one.investigation, 1).await.unwrap();
            assert!(matches!(log[0].event, Event::Opened { .. }), "an accepted alert is in the log");
        }
        let working = tokio::spawn({
            let intake = intake.clone();
            async move { intake.work().await }
        });
        while hub.observe().await.unwrap().open.is_empty() {
            tokio::task::yield_now().await;
        }
        let open: Vec<_> = hub.observe().await.unwrap().open.into_iter().map(|one| one.investigation).collect();
        assert_eq!((open, intake.under_way()), (vec![accepted[1].investigation.clone()], 1));
        soon(intake.drain()).await.unwrap();
        soon(working).await.unwrap();
    })
    .unwrap();
}

#[test]
fn cases_without_an_answer_of_an_expert_are_limited_by_severity() {
    let world = world(Arc::new(MemoryStore::default()), Faults::default());
    run(async {
        // Without a team no Expert answers.
        let hub = HubHandle::start(world.env.clone(), Duration::from_secs(3600));
        let many = Settings { at_once: 64, waiting: Some(64), ..settings("/logs") };
        let intake = intake(&world, &hub, many).paced(Arc::new(|| Some(2)));
        let mut critical = BTreeSet::new();
        for n in 0..20 {
            let severity = if n % 5 == 4 { "critical" } else { "low" };
            let accepted = intake.accept(&alert(&n.to_string(), severity), Source::Nats).await.unwrap();
            critical.extend((n % 5 == 4).then_some(accepted.investigation));
        }
        let working = tokio::spawn({
            let intake = intake.clone();
            async move { intake.work().await }
        });
        while hub.observe().await.unwrap().open.len() < 4 {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(pace::SOON * 2).await;
        let open: BTreeSet<_> = hub.observe().await.unwrap().open.into_iter().map(|one| one.investigation).collect();
        assert_eq!(open, critical);
        soon(intake.drain()).await.unwrap();
        soon(working).await.unwrap();
    })
    .unwrap();
}

#[test]
fn limits_of_a_person_are_recorded_and_refused_if_they_allow_no_call() {
    let world = world(Arc::new(MemoryStore::default()), Faults::default());
    run(async {
        let hub = HubHandle::start(world.env.clone(), Duration::from_secs(3600));
        let mut roster = case(&ROSTER).roster;
        for member in &mut roster {
            member.one_call = Some(Usage { input_tokens: 900, output_tokens: 100, ..Usage::default() });
        }
        let intake = Intake::new(world.env.clone(), hub, settings("/logs"), Arc::new(move || Some(roster.clone())));
        let wish = |tokens| {
            let budget = Budget { tokens, ..settings("/logs").budget };
            Source::Http(Wish { budget: Some(budget), ..Wish::default() })
        };
        let refused = intake.accept(&alert("a", "high"), wish(1_000)).await.unwrap_err();
        let Refused::Hub(HubError::Rejected(Rejection::BudgetTooSmall(why))) = &refused else { panic!("{refused}") };
        assert!(why.contains("1000 tokens"), "{why}");
        let accepted = intake.accept(&alert("a", "high"), wish(50_000)).await.unwrap();
        assert!(accepted.fresh, "the refused alert left no investigation");
        let log = world.env.store.log(&accepted.investigation, 1).await.unwrap();
        let Event::Opened { budget, .. } = &log[0].event else { panic!("{log:?}") };
        assert_eq!(budget.tokens, 50_000);
        let same = intake.accept(&alert("a", "high"), wish(1_000)).await.unwrap();
        assert!(!same.fresh, "limits are those of the investigation that exists");
    })
    .unwrap();
}

#[test]
fn finished_alert_is_investigated_again_only_by_command() {
    let world = world(Arc::new(MemoryStore::default()), Faults::default());
    run(async {
        let hub = begin(&world);
        let (here, other) = (intake(&world, &hub, settings("/logs")), intake(&world, &hub, settings("/other")));
        let working = here.clone();
        tokio::spawn(async move { working.work().await });
        let raw = alert("a", "high");
        let first = here.accept(&raw, Source::Command).await.unwrap();
        let same = here.accept(&raw, Source::Mcp).await.unwrap();
        assert_eq!((first.fresh, same.fresh, &same.investigation), (true, false, &first.investigation));
        let elsewhere = other.accept(&raw, Source::Mcp).await.unwrap();
        assert!(elsewhere.fresh && elsewhere.investigation != first.investigation);
        let report = soon(first.ended).await.unwrap().unwrap();
        assert_eq!(report.investigation, first.investigation);
        let finished = here.accept(&raw, Source::Nats).await.unwrap();
        assert_eq!((finished.fresh, &finished.investigation), (false, &first.investigation));
        let again = here.accept(&raw, Source::Command).await.unwrap();
        assert!(again.fresh && again.investigation != first.investigation);
        assert_eq!(soon(again.ended).await.unwrap().unwrap().investigation, again.investigation);
        world.bus.close();
    })
    .unwrap();
}

#[test]
fn recorded_alert_goes_on_after_the_queue_is_lost() {
    let store: Arc<MemoryStore> = Arc::default();
    let before = world(store.clone(), Faults::default());
    let id = run(async {
        let hub = HubHandle::start(before.env.clone(), Duration::from_secs(3600));
        intake(&before, &hub, settings("/logs")).accept(&alert("a", "high"), Source::Mcp).await.unwrap().investigation
    })
    .unwrap();
    let after = world(store.clone(), Faults::default());
    run(async {
        let hub = begin(&after);
        let intake = intake(&after, &hub, settings("/logs"));
        let state = crate::archive::state(store.as_ref(), &id).await.unwrap();
        intake.again(&id, &state).await.unwrap();
        tokio::spawn(async move { intake.work().await });
        soon(async {
            while crate::archive::state(store.as_ref(), &id).await.unwrap().closed.is_none() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        after.bus.close();
    })
    .unwrap();
}
