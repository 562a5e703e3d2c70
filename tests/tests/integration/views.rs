//! What each task is shown beyond its own answer: honest labels, and the Critic's leads from a Review to the report.

use std::sync::Arc;

use casebook_protocol::{Budget, Fate, Report, Rule, TaskKind};
use casebook_report::Form;
use casebook_tests::lab::{FORMS, Lab};
use casebook_tests::model::brain::Brain;
use casebook_tests::model::play::{Ask, Changed, Play, Reply, Script};
use casebook_tests::model::{Request, prompt};
use casebook_tests::run::demo;
use casebook_trust::Backing;
use serde_json::{Value, json};

use crate::cited::finding;
use crate::forms::{Slip, brain, investigated, sloppy};

pub(crate) fn requests(lab: &Lab, kind: TaskKind) -> Vec<Arc<Request>> {
    let all = lab.server.log().captured();
    all.iter().filter(|one| one.kind == Some(kind)).map(|one| Arc::clone(&one.request)).collect()
}

fn markdown(report: &Report) -> String {
    Form::Md.render(report, &Backing::default()).unwrap()
}

#[test]
fn finding_capped_for_its_form_is_called_citation_incomplete() {
    let believed = |_: &Request, answer: &mut Value| {
        let findings = answer["findings"].as_array_mut().unwrap();
        findings.iter_mut().for_each(|one| one["score"] = json!(0.95));
    };
    for form in [FORMS[0], FORMS[7]] {
        let script = sloppy(Slip::Quote, false);
        let (lab, report) = investigated(Changed { script, kind: TaskKind::Review, change: believed }, form);
        let capped: Vec<_> =
            report.findings.iter().filter(|f| f.capped_by.iter().any(|rule| rule.is_of_form())).collect();
        assert!(capped.len() >= 4, "{form:?}: {}", capped.len());
        for found in &capped {
            assert_eq!((found.score.unwrap().get(), found.proposed.unwrap().get()), (0.29, 0.95), "{form:?}");
            let differs = report.disagreements.iter().any(|one| one.findings == [found.finding.id.clone()]);
            assert!(!differs, "{form:?}: the Critic agrees, only the form is faulty");
        }
        let page = markdown(&report);
        assert!(page.contains("**0.29 citation incomplete (the Critic's score: 0.95)**"), "{form:?}");
        assert!(page.contains("A single source caps") && !page.contains("Misguided"), "{form:?}");
        assert!(!page.contains("Capped by rule `single_source`"), "{form:?}: one line says it for all");
        let shown: Vec<Value> =
            requests(&lab, TaskKind::Decide).iter().filter_map(|r| prompt::json_section(r, "review")).collect();
        let findings = shown.iter().flat_map(|review| review["findings"].as_array().unwrap());
        let incomplete: Vec<&Value> = findings.filter(|one| one["label"] == "citation incomplete").collect();
        assert!(!incomplete.is_empty(), "{form:?}");
        for one in incomplete {
            assert_eq!(one["proposed"], json!(0.95), "{form:?}");
            assert_eq!(one["fault"], json!("citation 1: the quoted text \"…\" is not there"), "{form:?}");
        }
        assert!(shown.iter().all(|review| review["capped"].is_string()), "{form:?}: said once");
    }
}

/// The place of a citation of the first finding, as a lead.
fn lead(request: &Request, what: &str) -> Option<Value> {
    let findings = prompt::json_section(request, "findings")?;
    let citation = findings
        .as_array()?
        .iter()
        .flat_map(|f| f["citations"].as_array().unwrap())
        .find(|c| c["kind"] == "literal" && c["at"].as_str().is_some_and(|at| at.ends_with("/raw")))?;
    let at = citation["at"].as_str()?.trim_end_matches("/raw").to_owned();
    Some(json!({"what": what, "why": "It could widen the case.", "call": citation["call"], "at": at}))
}

/// Gives two leads in the first Review, one of them without a place, and none later.
fn leads(request: &Request, answer: &mut Value) {
    let first = prompt::json_section(request, "findings")
        .is_some_and(|all| all.as_array().unwrap().iter().all(|f| f["id"].as_str().unwrap().starts_with("r1-")));
    if !first {
        return;
    }
    let good = lead(request, "A credential stands in the ancestry of a process.").unwrap();
    let mut bad = lead(request, "A log stops.").unwrap();
    bad["at"] = json!("/records/9999");
    answer["leads"] = json!([good, bad]);
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Follows {
    AtOnce,
    Returned,
    InTheJournal,
    Never,
}

fn follows(how: Follows) -> impl Fn(&Request, &mut Value) + Send + Sync + 'static {
    move |request, answer| {
        let told = String::from_utf8_lossy(&request.bytes).contains("left open");
        let open = prompt::json_section(request, "leads").unwrap_or_default();
        let ids: Vec<&Value> = open.as_array().into_iter().flatten().map(|one| &one["id"]).collect();
        if how == Follows::AtOnce || (how == Follows::Returned && told) {
            answer["takes_up"] = json!(ids);
        }
    }
}

/// Names the lead in a Journal entry.
struct Noted(Brain);

impl Script for Noted {
    fn reply(&self, request: &Request) -> Play {
        let Play::Reply(mut reply) = self.0.reply(request) else { return self.0.reply(request) };
        let open = prompt::json_section(request, "leads").is_some();
        for call in reply.calls.iter_mut().filter(|call| call.name == "journal" && open) {
            let mut entry: Value = serde_json::from_str(&call.arguments).unwrap();
            entry["text"] = json!("r1-lead-1 is what backups do here: it is not followed.");
            call.arguments = entry.to_string();
        }
        Play::Reply(reply)
    }
}

fn case_with_leads(how: Follows, form: (&str, &str)) -> (Lab, Report) {
    let script: Arc<dyn Script> = match how {
        Follows::InTheJournal => Arc::new(Noted(brain())),
        how => Arc::new(Changed { script: brain(), kind: TaskKind::Plan, change: follows(how) }),
    };
    investigated(Changed { script, kind: TaskKind::Review, change: leads }, form)
}

#[test]
fn lead_is_checked_shown_apart_and_followed_or_declined() {
    let expected = [
        (Follows::AtOnce, Fate::TakenUp, 1, "taken up in round 2"),
        (Follows::Returned, Fate::TakenUp, 2, "taken up in round 2"),
        (Follows::InTheJournal, Fate::Declined, 1, "not followed; Journal entry"),
        (Follows::Never, Fate::NotTakenUp, 2, "neither a question nor the Journal takes it up"),
    ];
    for form in [FORMS[0], FORMS[7]] {
        for (how, fate, answers, words) in expected {
            let (lab, report) = case_with_leads(how, form);
            let [state] = report.leads.as_slice() else { panic!("{form:?} {how:?}: {:?}", report.leads) };
            assert_eq!((state.lead.id.as_str(), state.fate), ("r1-lead-1", fate), "{form:?} {how:?}");
            assert!(!state.lead.records.is_empty(), "{form:?} {how:?}");
            let ruled = |rule| report.guards.iter().filter(|g| g.rule == rule).count();
            assert_eq!(ruled(Rule::LeadWithoutPlace), 1, "{form:?} {how:?}");
            assert_eq!(ruled(Rule::LeadNotTakenUp), usize::from(how == Follows::Never), "{form:?} {how:?}");
            let page = markdown(&report);
            assert!(page.contains("A credential stands in the ancestry of a process."), "{form:?} {how:?}");
            assert!(page.contains(words) && page.contains("and did not mention it."), "{form:?} {how:?}: {page}");
            assert!(!page.contains("A log stops."), "{form:?} {how:?}");
            let plans = requests(&lab, TaskKind::Plan);
            let second: Vec<_> = plans.iter().filter(|r| prompt::json_section(r, "leads").is_some()).collect();
            let told = second.iter().filter(|r| String::from_utf8_lossy(&r.bytes).contains("left open")).count();
            assert_eq!(told, answers - 1, "{form:?} {how:?}: it is returned once");
            for kind in [TaskKind::Investigate, TaskKind::Timeline] {
                let seen = requests(&lab, kind);
                let found = seen.iter().any(|r| String::from_utf8_lossy(&r.bytes).contains("ancestry of a process"));
                assert!(!found, "{form:?} {how:?}: {kind:?} is not shown the lead");
            }
            let events = report.timeline.events.iter().any(|event| event.description.contains("ancestry"));
            assert!(!events, "{form:?} {how:?}: a lead has no place on the Timeline");
        }
    }
}

#[test]
fn lead_of_a_call_that_the_critic_did_not_see_is_returned_once() {
    let foreign = |request: &Request, answer: &mut Value| {
        if let Some(mut one) = lead(request, "A log stops.") {
            one["call"] = json!("r9.investigate.endpoint.t1.0");
            answer["leads"] = json!([one]);
        }
    };
    let (lab, report) = investigated(Changed { script: brain(), kind: TaskKind::Review, change: foreign }, FORMS[0]);
    assert_eq!(report.leads, []);
    let told = |r: &&Arc<Request>| String::from_utf8_lossy(&r.bytes).contains("Leads that code cannot check");
    assert_eq!(requests(&lab, TaskKind::Review).iter().filter(told).count(), 2, "once in each of two rounds");
    assert!(report.findings.iter().all(|f| f.score.is_some()), "the Review stands");
}

/// Keeps the events of the previous Timeline by number, if it is `short`, and adds `more` to the narrative of each answer
/// before its second chance, or of each one.
fn folded(short: bool, more: &'static str, always: bool) -> impl Fn(&Request, &mut Value) + Send + Sync + 'static {
    move |request, answer| {
        let told = String::from_utf8_lossy(&request.bytes).contains("states what no finding states");
        if !told || always {
            answer["narrative"] = json!(format!("{}{more}", answer["narrative"].as_str().unwrap()));
        }
        let Some(before) = prompt::json_section(request, "timeline").filter(|_| short) else { return };
        let before: Vec<&Value> = before["events"].as_array().unwrap().iter().collect();
        answer["keep"] = before.iter().map(|event| event["n"].clone()).collect();
        let old = |event: &Value| before.iter().any(|other| other["findings"] == event["findings"]);
        answer["events"].as_array_mut().unwrap().retain(|event| !old(event));
    }
}

#[test]
fn timeline_keeps_events_by_number_and_its_narrative_states_only_findings() {
    let told = |report: &Report| (report.timeline.narrative.clone(), report.timeline.events.clone());
    let script = |change| Changed { script: Brain { rounds: 3, ..brain() }, kind: TaskKind::Timeline, change };
    let answers = |report: &Report| -> u64 {
        let tasks = report.usage.tasks.iter().filter(|task| task.kind == TaskKind::Timeline);
        tasks.map(|task| task.usage.model_calls).sum()
    };
    let (_, whole) = investigated(script(folded(false, "", false)), FORMS[0]);
    assert_eq!(answers(&whole), 3);
    for form in [FORMS[0], FORMS[7]] {
        let (_, kept) = investigated(script(folded(true, "", false)), form);
        assert_eq!((told(&kept), answers(&kept)), (told(&whole), 3), "{form:?}");
        let invented = " It began at 10.9.9.9.";
        let (_, corrected) = investigated(script(folded(true, invented, false)), form);
        assert_eq!((told(&corrected), answers(&corrected)), (told(&whole), 6), "{form:?}: each is returned once");
        let (_, dropped) = investigated(script(folded(true, invented, true)), form);
        assert_eq!((told(&dropped), answers(&dropped)), (told(&whole), 6), "{form:?}");
        let ruled = |report: &Report| report.guards.iter().filter(|g| g.subject == "narrative").count();
        assert_eq!([&kept, &corrected, &dropped].map(ruled), [0, 0, 3], "{form:?}");
    }
}

/// Its Experts look up their own findings first, when they can.
struct Remembers(Brain);

impl Script for Remembers {
    fn reply(&self, request: &Request) -> Play {
        let offered = request.offered().iter().any(|tool| tool.name == "my_findings");
        if offered && request.turns.len() == 1 {
            return Play::Reply(Reply::calls(vec![Ask { name: "my_findings".into(), arguments: "{}".into() }]));
        }
        self.0.reply(request)
    }
}

#[test]
fn expert_looks_up_its_own_earlier_findings_and_its_prompt_does_not_show_them() {
    for form in [FORMS[1], FORMS[6]] {
        let (lab, report) = investigated(Remembers(brain()), form);
        let asked = requests(&lab, TaskKind::Investigate);
        let shown: Vec<Value> = asked
            .iter()
            .flat_map(|request| prompt::all_shown(request))
            .filter(|shown| shown.tool == "my_findings")
            .map(|shown| serde_json::from_str(shown.data).unwrap())
            .collect();
        assert!(!shown.is_empty(), "{form:?}");
        for one in shown.iter().flat_map(|all| all["findings"].as_array().unwrap()) {
            let id = one["id"].as_str().unwrap();
            let found = report.findings.iter().find(|f| f.finding.id.as_str() == id).unwrap();
            assert_eq!(one["claim"], json!(found.finding.draft.claim), "{form:?}");
            assert!(one["calls"][0]["arguments"].is_object(), "{form:?}: {one}");
            assert!(id.starts_with("r1-"), "{form:?}");
        }
        let first = asked.iter().filter(|r| prompt::all_shown(r).is_empty());
        let sections = first
            .flat_map(|r| prompt::task_sections(r).into_iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>());
        let sections: std::collections::BTreeSet<String> = sections.collect();
        let known = ["alert", "journal", "left_out", "question", "sources"];
        assert!(sections.iter().all(|name| known.contains(&name.as_str())), "{form:?}: {sections:?}");
    }
}

#[test]
fn last_task_sees_every_credible_finding_and_the_director_sees_entities() {
    let (lab, report) = investigated(Brain { rounds: 3, ..brain() }, FORMS[7]);
    let request = requests(&lab, TaskKind::Report).pop().unwrap();
    let lines: Vec<&str> = prompt::section(&request, "credible").unwrap().lines().collect();
    let credible = report.findings.iter().filter(|f| f.score.is_some_and(|score| score.get() >= 0.5));
    for found in credible {
        let id = format!("{} ", found.finding.id);
        assert_eq!(lines.iter().filter(|line| line.starts_with(&id)).count(), 1, "{id}");
    }
    let rounds = ["r1-", "r2-", "r3-"].map(|round| lines.iter().any(|line| line.starts_with(round)));
    assert_eq!(rounds, [true; 3]);
    let review = prompt::json_section(&requests(&lab, TaskKind::Decide)[0], "review").unwrap();
    let with = review["findings"].as_array().unwrap().iter().filter(|f| f["entities"][0].is_string());
    assert!(with.count() > 0, "{review}");
}

/// Its Experts search with words that models use, and cite a sum that the tool computes.
struct Computes(Brain);

impl Script for Computes {
    fn reply(&self, request: &Request) -> Play {
        if prompt::kind(&request.system) != Some(TaskKind::Investigate) {
            return self.0.reply(request);
        }
        let call = |name: &str, arguments: Value| Ask { name: name.into(), arguments: arguments.to_string() };
        let shown = prompt::all_shown(request);
        let groups = shown.iter().find(|one| one.tool == "count_by" && !one.failed);
        let sum = shown
            .iter()
            .find(|one| one.tool == "calculate" && !one.failed)
            .and_then(|one| Some((one.call, one.json()?)));
        match (groups, sum) {
            (None, _) => {
                let narrow = json!({"limit": 2, "after": "2000-01-01T00:00:00Z", "before": "2100-01-01T00:00:00Z"});
                let count = json!({"field": "$source", "limit": 5});
                Play::Reply(Reply::calls(vec![call("search", narrow), call("count_by", count)]))
            }
            (Some(groups), None) => {
                let at = |at: &str| json!({"call": groups.call, "at": at});
                let sum = json!({"op": "sum", "values": [at("/total"), at("/missing")]});
                Play::Reply(Reply::calls(vec![call("calculate", sum)]))
            }
            (Some(_), Some((id, answer))) => {
                let value = answer["value"].to_string();
                let findings = [value.clone(), format!("{value}7")].map(|value| {
                    let citation = json!({"kind": "aggregate", "call": id, "at": "/value", "value": value});
                    let claim = format!("The sources have {value} records in all.");
                    finding("aggregate", &claim, Value::Null, citation)
                });
                Play::Reply(casebook_tests::model::brain::answer(request, &json!({"findings": findings})))
            }
        }
    }
}

#[test]
fn sum_in_a_result_is_cited_and_a_false_one_is_not_believed() {
    for form in [FORMS[0], FORMS[7]] {
        let (lab, report) = investigated(Computes(brain()), form);
        let calls = |tool: &str| report.calls.iter().filter(|call| call.tool == tool).collect::<Vec<_>>();
        let failed = |call: &&casebook_protocol::ToolCall| call.status == casebook_protocol::CallStatus::Failed;
        assert!(
            !calls("search").is_empty() && !report.calls.iter().any(|call| failed(&call)),
            "{form:?}: aliases are taken"
        );
        for found in &report.findings {
            let right = found.finding.id.as_str().ends_with("-1");
            assert_eq!(found.citations[0].holds, right, "{form:?}: {:?}", found.citations[0]);
            assert!(found.faults.is_empty(), "{form:?}: {:?}", found.faults);
        }
        // Code made each cited call again, which is not the Expert's.
        let again = report.calls.iter().filter(|call| call.id.is_again()).count();
        let counted: u64 = report.usage.tasks.iter().map(|task| task.usage.tool_calls).sum();
        assert!(again > 0, "{form:?}");
        assert_eq!(counted as usize, report.calls.len() - again, "{form:?}");
        let text = requests(&lab, TaskKind::Investigate);
        let shown = text
            .iter()
            .flat_map(|request| prompt::all_shown(request))
            .find(|one| one.tool == "search" && one.data.contains("/records/"));
        let shown = shown.unwrap();
        assert!(shown.data.contains("\n/records/0 {") && shown.data.contains("\n| "), "{form:?}: {}", shown.data);
    }
}

#[test]
fn notes_on_a_source_reach_critic_director_and_report() {
    let case = tempfile::tempdir().unwrap();
    let evidence = case.path().join("evidence");
    std::fs::create_dir_all(&evidence).unwrap();
    std::fs::copy(demo().join("alert.json"), case.path().join("alert.json")).unwrap();
    let lines: Vec<String> = (10..40)
        .map(|n| format!("Mar  1 02:{n}:00 web-1 sshd[7{n}]: Accepted publickey for root from 10.0.0.{n} port 22 ssh2"))
        .collect();
    std::fs::write(evidence.join("auth.log"), lines.join("\n")).unwrap();
    std::fs::write(evidence.join("disk.7z"), b"7z\xbc\xaf\x27\x1crest").unwrap();
    let lab = Lab::start(Brain { expert_calls: 6, ..brain() }, FORMS[7]).unwrap();
    let report = lab.investigate(case.path(), Budget::default()).unwrap();
    assert_eq!(lab.violations(), [""; 0]);
    let credible = report.findings.iter().any(|f| f.score.is_some_and(|score| score.get() >= 0.5));
    assert!(credible, "{:?}", report.findings);
    let note = report.source_notes.iter().find(|note| note.note.contains("no year")).unwrap();
    let page = markdown(&report);
    let (before, _) = page.split_once("\nCoherence **").unwrap();
    assert!(before.contains(&note.note), "above the Timeline: {before}");
    let left_out = report.source_notes.iter().find(|note| note.source == "disk.7z").unwrap();
    assert!(left_out.note.starts_with("not loaded: 7z archive"), "{}", left_out.note);
    assert!(
        before.contains(&left_out.note.replace('`', "")) || before.contains("disk"),
        "above the Timeline: {before}"
    );
    for kind in [TaskKind::Review, TaskKind::Decide] {
        let all = requests(&lab, kind);
        let shown = prompt::section(&all[0], "source_notes").unwrap();
        assert!(shown.contains("no year") && shown.contains("not loaded: 7z archive"), "{kind:?}: {shown}");
    }
}
