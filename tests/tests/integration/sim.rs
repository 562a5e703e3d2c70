//! Simulation in one process: the real Hub, Director, Experts and Critic over an in-memory bus that
//! loses, doubles and reorders from a seed, killed before any write and after any model call.
//!
//! A life is what one process does until it dies. The next life begins on what the store kept.

mod world;

use std::sync::atomic::Ordering::SeqCst;

use casebook_hub::MemoryStore;
use casebook_protocol::{Event, Recorded, Report};
use casebook_report::compare::stable;
use casebook_runtime::bus::memory::Faults;
use casebook_runtime::process;
use casebook_runtime::store::Store;
use casebook_tests::model::brain::Brain;
use casebook_tests::{generate, run};

use self::world::{Death, ROUNDS, World, intact};

/// Kills before every write of the beginning (opening, planning, first calls), then before a spread of
/// the others.
async fn kill_before_writes(world: &World, kills: usize) {
    let (report, life) = world.undisturbed(&MemoryStore::default()).await;
    let (expected, writes) = (world.stable(&report), life.writes.load(SeqCst));
    assert!(writes > 100, "only {writes} writes: the test kills at too few places");
    let kills = kills as u64;
    let places = (0..kills).chain((kills..writes).step_by((writes / kills).max(1) as usize));
    for place in places.take_while(|place| *place < writes) {
        let kept = MemoryStore::default();
        let (mut report, first) = world.live(&kept, Death::Write(place), Faults::default()).await;
        // Batched appends differ from run to run, so the last places may come after the end.
        if report.is_none() {
            let (last, second) = world.undisturbed(&kept).await;
            report = Some(last);
            let finished = first.finished.lock().unwrap().clone();
            let again: Vec<_> = second.asked().into_iter().filter(|id| finished.contains(id)).collect();
            assert_eq!(again, [""; 0], "killed before write {place}: a finished call was made again");
            let (recorded, ran) = (first.recorded_runs.lock().unwrap(), second.ran.lock().unwrap());
            for (asked, times) in &*life.ran.lock().unwrap() {
                let left = times - recorded.get(asked).unwrap_or(&0);
                assert_eq!(ran.get(asked).unwrap_or(&0), &left, "killed before write {place}: {asked}");
            }
        }
        assert_eq!(world.stable(&report.unwrap()), expected, "killed before write {place}");
        assert_eq!(*first.again.lock().unwrap(), [""; 0], "killed before write {place}");
        intact(&kept).await;
    }
}

#[test]
fn kill_before_any_write_gives_the_same_report() {
    process::run(async { kill_before_writes(&World::new(None), super::kills(60)).await }).unwrap();
}

#[test]
fn kill_before_any_write_with_models_gives_the_same_report() {
    process::run(async {
        let world = World::new(Some(Brain { rounds: 2, ..Brain::default() }));
        kill_before_writes(&world, super::kills(15)).await;
        assert!(world.lab().server.log().counts().requests > 200);
        assert_eq!(world.lab().violations(), [""; 0]);
    })
    .unwrap();
}

async fn whole(kept: &MemoryStore, report: &Report) {
    let failed: Vec<_> = report.usage.tasks.iter().filter_map(|t| t.failed.as_ref()).collect();
    assert_eq!(failed, Vec::<&String>::new());
    assert_eq!(report.usage.rounds, ROUNDS);
    intact(kept).await;
}

#[test]
fn kill_after_each_recorded_model_call_repeats_none() {
    process::run(async {
        let world = World::benchmark();
        let kept = MemoryStore::default();
        let (mut lives, mut calls, mut tools, mut unrecorded) = (0_u64, 0, 0, 0);
        let report = loop {
            let (report, life) = world.live(&kept, Death::Recorded(1), Faults::default()).await;
            let asked = life.asked().len() as u64;
            lives += 1;
            calls += asked;
            tools += life.tools();
            unrecorded += asked - life.recorded.load(SeqCst);
            assert_eq!(*life.again.lock().unwrap(), [""; 0]);
            if let Some(report) = report {
                break report;
            }
            assert!(lives < 500, "it comes to no end");
        };
        whole(&kept, &report).await;
        let log = kept.log(&report.investigation, 1).await.unwrap();
        let models = log.iter().filter(|e| matches!(e.event, Event::ModelCalled { .. })).count() as u64;
        let tool = |e: &&Recorded| matches!(&e.event, Event::CallRecorded { call, .. } if call.domain.is_some());
        let recorded_tools = log.iter().filter(tool).count() as u64;
        assert_eq!(models, report.usage.total.model_calls);
        assert!(models >= 61 && lives == models + 1, "{lives} lives for {models} calls");
        // Experts ask at once: what is answered to one while another's call is the death of both is
        // in flight. Of all that is recorded nothing was asked for again.
        assert_eq!(calls, models + unrecorded);
        let again = world.lab().server.log().counts().answered_again;
        assert!(again <= unrecorded, "{again} of {unrecorded}");
        assert!(tools >= recorded_tools, "{tools} of {recorded_tools}");
    })
    .unwrap();
}

#[test]
fn kill_at_each_answer_repeats_only_calls_in_flight() {
    process::run(async {
        let world = World::benchmark();
        let kept = MemoryStore::default();
        let (report, life) = world.undisturbed(&kept).await;
        whole(&kept, &report).await;
        let (all, tools) = (life.asked().len() as u64, life.tools());
        assert!(all >= 61 && tools >= 60, "{all} model calls, {tools} tool calls");
        for at in (1..=all).step_by((all as usize / super::kills(12)).max(1)) {
            let kept = MemoryStore::default();
            let (none, first) = world.live(&kept, Death::Answered(at), Faults::default()).await;
            assert!(none.is_none(), "killed at answer {at}");
            let (report, second) = world.undisturbed(&kept).await;
            whole(&kept, &report).await;
            let (before, after, recorded) = (first.asked(), second.asked(), first.recorded.load(SeqCst));
            let repeated: Vec<&String> = before.iter().filter(|id| after.contains(id)).collect();
            assert!(!repeated.is_empty(), "killed at answer {at}: that call was in flight");
            assert_eq!(repeated.len() as u64, before.len() as u64 - recorded, "killed at answer {at}: {repeated:?}");
            assert_eq!(after.len() as u64, all - recorded, "killed at answer {at}");
            // A tool that had run when the process died, and was not on record, was in flight, too.
            let (ran, ran_again) = (first.tools(), second.tools());
            assert!(ran + ran_again - tools <= 3 * 4, "killed at answer {at}: {ran} and {ran_again} of {tools}");
        }
    })
    .unwrap();
}

#[test]
fn lost_doubled_and_reordered_messages_change_nothing() {
    process::run(async {
        let world = World::new(None);
        let expected = world.stable(&world.undisturbed(&MemoryStore::default()).await.0);
        for seed in 0..12 {
            let (kept, faults) = (MemoryStore::default(), Faults { seed, lose: 150, double: 150, reorder: 300 });
            let (report, _) = world.live(&kept, Death::Never, faults).await;
            assert_eq!(world.stable(&report.unwrap()), expected, "seed {seed}");
            intact(&kept).await;
        }
    })
    .unwrap();
}

#[test]
fn same_input_gives_the_same_report() {
    let folder = generate::case().unwrap();
    let [alert, evidence, one, two] = ["alert.json", "evidence", "one", "two"].map(|name| folder.path().join(name));
    let [first, second] = [one, two].map(|data| run::investigate_in(&alert, &evidence, &data).unwrap());
    assert_eq!(stable(&first), stable(&second));
}
