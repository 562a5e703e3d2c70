//! Many generated investigations, for measurements of lists.

use std::sync::Arc;

use casebook_protocol::{
    Alert, Budget, Conclusion, Event, InvestigationId, Phase, Recorded, Ruling, Timestamp, Verdict,
};
use casebook_runtime::store::Store;

use crate::Result;

/// How many are written at once, so that they share commits.
const AT_ONCE: u32 = 256;

/// Writes so many investigations.
pub async fn fill(store: &Arc<dyn Store>, investigations: u32) -> Result<()> {
    for from in (0..investigations).step_by(AT_ONCE as usize) {
        let group = (from..(from + AT_ONCE).min(investigations)).map(|n| tokio::spawn(write(Arc::clone(store), n)));
        for one in group.collect::<Vec<_>>() {
            one.await??;
        }
    }
    Ok(())
}

/// One log of eight events; one of a hundred stays open.
pub async fn write(store: Arc<dyn Store>, n: u32) -> Result<()> {
    let pick = |of: &[&'static str]| of.get(n as usize % of.len()).copied().unwrap_or_default();
    let title =
        pick(&["Kernel module load", "Password spray", "New admin in tenant", "Rare parent of a shell", "Beacon"]);
    let body = serde_json::json!({
        "id": format!("alert-{n}"), "title": format!("{title} on web-{n:05}"), "host": {"name": format!("web-{n:05}")},
        "user": format!("user-{}", n % 997), "severity": pick(&["low", "medium", "high", "medium", "medium", "critical"]),
    });
    let verdict = Verdict::ALL.into_iter().nth(n as usize % 4).unwrap_or(Verdict::Inconclusive);
    let conclusion = Conclusion {
        verdict,
        summary: format!("{title} on web-{n:05}, explained by a package that the host installed."),
        root_cause: String::new(),
        actions: Vec::new(),
        open_questions: Vec::new(),
        findings: Vec::new(),
    };
    let ruling = Ruling { verdict, proposed: verdict, grounds: Vec::new(), missing: Vec::new(), accounting: None };
    let alert = Alert::parse(body.to_string().as_bytes())?;
    let evidence = format!("/srv/evidence/site-{}", n % 40);
    let mut events = vec![Event::Opened { alert, budget: Budget::default(), roster: Vec::new(), evidence }];
    events.extend((1..=3).map(|round| Event::RoundStarted { phase: Phase::Trace, round }));
    events.extend((1..=2).map(|n| Event::BudgetNear { limit: format!("limit {n}") }));
    if !n.is_multiple_of(100) {
        events.extend([Event::Concluded { conclusion, ruling }, Event::Closed {}]);
    }
    let id = InvestigationId::new(format!("{n:08x}-789c-5a27-9229-858a8549a102"))?;
    let mut log: Vec<Recorded> = Vec::new();
    for event in events {
        log.push(Recorded::next(&id, log.last(), Timestamp::from_second(1_700_000_000 + i64::from(n) * 60)?, event));
    }
    store.append(&id, 0, &log).await?;
    Ok(())
}
