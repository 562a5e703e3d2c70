use casebook_agent::reasoner::{Action, Done};
use casebook_protocol::{Answer, Conclusion, Report, Task, Verdict};
use casebook_runtime::Env;
use casebook_runtime::bus::memory::MemoryBus;
use casebook_runtime::clock::TickingClock;
use casebook_runtime::process::run;

use super::*;
use crate::actor::HubHandle;
use crate::actor::tests::{soon, team};
use crate::intake::investigation_id;
use crate::tests::script::{case, think};
use crate::verify::verify;
use casebook_report::compare::stable;

const ROSTER: [&str; 2] = ["endpoint", "network"];

/// The team that thinks so on `store`; resumes `id`, or opens the case of the script.
async fn worked(
    store: Arc<dyn Store>,
    reasoner: fn(&Task, &[Done], bool) -> Action,
    id: Option<&InvestigationId>,
) -> Report {
    let bus = MemoryBus::default();
    let env = Env { bus: Arc::new(bus.clone()), store, clock: Arc::new(TickingClock::default()) };
    team(&env, reasoner, &ROSTER);
    let hub = HubHandle::start(env, std::time::Duration::from_millis(30));
    let id = match id {
        Some(id) => {
            hub.resume(id).await.unwrap();
            id.clone()
        }
        None => {
            let id = investigation_id(&case(&ROSTER).alert.id, 1);
            hub.open(&id, case(&ROSTER)).await.unwrap();
            id
        }
    };
    let report = soon(hub.wait(&id)).await.unwrap();
    bus.close();
    report
}

/// As the honest team, but it believes nothing in the end.
fn doubting(task: &Task, done: &[Done], last: bool) -> Action {
    match think(task, done, last) {
        Action::Answer(answer) => match *answer {
            Answer::Report(honest) => {
                Action::Answer(Box::new(Answer::Report(Conclusion { verdict: Verdict::Inconclusive, ..honest })))
            }
            other => Action::Answer(Box::new(other)),
        },
        other => other,
    }
}

#[test]
fn branch_leaves_the_original_unchanged() {
    run(async {
        let original = MemoryStore::default();
        let before = worked(Arc::new(original.clone()), think, None).await;
        let id = before.investigation.clone();
        let log = original.log(&id, 1).await.unwrap();
        for round in 1..=before.usage.rounds {
            let branch = Branch::before_round(Arc::new(original.clone()), &id, round).await.unwrap();
            let kept = usize::try_from(branch.kept()).unwrap();
            assert_eq!(branch.log(&id, 1).await.unwrap(), log[..kept]);
            assert_eq!(branch.recorded(&id, archive::REPORT_KEY).await.unwrap(), None);
            let store: Arc<dyn Store> = Arc::new(branch);
            let after = worked(Arc::clone(&store), doubting, Some(&id)).await;
            assert_eq!((before.verdict, after.verdict), (Verdict::TruePositive, Verdict::Inconclusive));
            assert_eq!(after.findings.len(), before.findings.len());
            assert_eq!(verify(store.as_ref(), &id).await.unwrap().problems, []);
        }
        assert_eq!(original.log(&id, 1).await.unwrap(), log);
        assert_eq!(verify(&original, &id).await.unwrap().problems, []);
        assert_eq!(archive::report(&original, &id).await.unwrap(), before);
    })
    .unwrap();
}

#[test]
fn same_team_on_a_branch_gives_the_same_report() {
    run(async {
        let original = MemoryStore::default();
        let before = worked(Arc::new(original.clone()), think, None).await;
        let branch = Branch::before_round(Arc::new(original), &before.investigation, 2).await.unwrap();
        let after = worked(Arc::new(branch), think, Some(&before.investigation)).await;
        assert_eq!(stable(&after), stable(&before));
    })
    .unwrap();
}

#[tokio::test]
async fn branch_shares_only_records_from_before_its_start() {
    let original = MemoryStore::default();
    let log = crate::tests::script::Driver::honest().log;
    let id = crate::tests::script::investigation();
    original.append(&id, 0, &log).await.unwrap();
    for key in ["outcome/r1.plan", "call/r2.plan.t1.0", "model/r3.plan.m1", "outcome/r10.plan", "report"] {
        original.record_once(&id, key, b"then").await.unwrap();
    }
    let artifact = original.put(b"bytes").await.unwrap();
    let branch = Branch::before_round(Arc::new(original.clone()), &id, 3).await.unwrap();
    let check = async |key: &str, expect: &[u8]| {
        branch.record_once(&id, key, b"now").await.unwrap();
        assert_eq!(branch.recorded(&id, key).await.unwrap().as_deref(), Some(expect), "{key}");
        assert_eq!(original.recorded(&id, key).await.unwrap().as_deref(), Some(&b"then"[..]), "{key}");
    };
    check("outcome/r1.plan", b"then").await;
    check("call/r2.plan.t1.0", b"then").await;
    check("model/r3.plan.m1", b"now").await;
    check("outcome/r10.plan", b"now").await;
    check("report", b"now").await;
    assert_eq!(branch.get(&artifact).await.unwrap().as_deref(), Some(&b"bytes"[..]));
    let fresh = branch.put(b"fresh").await.unwrap();
    assert_eq!((branch.get(&fresh).await.unwrap().is_some(), original.get(&fresh).await.unwrap()), (true, None));
}

#[tokio::test]
async fn unknown_round_or_investigation_is_named() {
    let original = MemoryStore::default();
    let id = crate::tests::script::investigation();
    original.append(&id, 0, &crate::tests::script::Driver::honest().log).await.unwrap();
    let error = |investigation: InvestigationId, round| {
        let original = Arc::new(original.clone());
        async move { Branch::before_round(original, &investigation, round).await.map(|_| ()).unwrap_err().to_string() }
    };
    assert_eq!(error(id.clone(), 9).await, "investigation inv-1 has no round 9: its rounds are 1 to 4");
    assert_eq!(error(id, 0).await, "investigation inv-1 has no round 0: its rounds are 1 to 4");
    let unknown = error(InvestigationId::new("other").unwrap(), 1).await;
    assert!(unknown.contains("investigation other not found"), "{unknown}");
}
