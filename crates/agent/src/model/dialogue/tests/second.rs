//! What comes with an answer, and what is returned once.

use super::*;

/// A reply with these calls and an answer, in the form of `way`.
fn with_answer(way: &str, tools: &[&str], question: &str) -> Result<Reply, Fault> {
    let mut reply = calls(tools)?;
    let object = json!({"question": question}).to_string();
    match way {
        "native" => reply.text = object,
        _ => reply.calls.push(Called { id: "s".into(), tool: "submit".into(), arguments: object }),
    }
    Ok(reply)
}

#[test]
fn calls_beside_an_answer_are_made_first_and_then_the_answer_counts() {
    for way in ["native", "submit_tool"] {
        let mut table = Table::new(way);
        table.take(with_answer(way, &["journal", "search"], "who?"));
        let Action::Call(requests) = table.next() else { panic!("{way}: no call") };
        assert_eq!(requests.iter().map(|r| r.tool.as_str()).collect::<Vec<_>>(), ["journal", "search"], "{way}");
        table.done(1, 0, "{}");
        table.done(1, 1, "{}");
        assert!(matches!(answer(table.next()), Answer::Plan(q) if q.question.text == "who?"), "{way}");
    }
}

#[test]
fn a_failed_call_beside_an_answer_is_told_and_the_answer_stands_without_another() {
    for way in ["native", "submit_tool"] {
        let mut table = Table::new(way);
        table.take(with_answer(way, &["journal"], "who?"));
        table.done(1, 0, "the entry has no text");
        Arc::make_mut(&mut table.past.done)[0].call.status = CallStatus::Failed;
        let Action::Ask(asking) = table.next() else { panic!("{way}: no request") };
        let told = asking.ask.canonical();
        assert!(told.contains("the entry has no text") && told.contains("a call beside it failed"), "{way}: {told}");
        assert!(matches!(asking.stands.as_deref(), Some(Answer::Plan(q)) if q.question.text == "who?"), "{way}");
        table.take(Err(Fault::Rejected));
        table.take(Err(Fault::Rejected));
        assert!(matches!(answer(table.next()), Answer::Plan(q) if q.question.text == "who?"), "{way}");
    }
}

#[test]
fn the_result_of_a_journal_entry_gives_its_number() {
    let mut table = Table::new("native");
    table.take(calls(&["journal", "search", "journal"]));
    for (place, tool) in [(0, "journal"), (1, "search"), (2, "journal")] {
        table.done(1, place, "{}");
        Arc::make_mut(&mut table.past.done)[place as usize].call.tool = tool.into();
    }
    let Some(Message::Results(results)) = table.ask().messages.pop() else { panic!("no results") };
    let numbers: Vec<bool> =
        [(0, 1), (2, 2)].map(|(at, n)| results[at].text.contains(&format!("\"number\":{n}}}"))).into();
    assert_eq!(numbers, [true, true], "{results:?}");
    assert!(!results[1].text.contains("number"));
}

#[test]
fn faulty_findings_are_returned_once_and_what_comes_back_counts() {
    for way in ["native", "submit_tool"] {
        let mut table = Table::new(way);
        table.take(with_answer(way, &[], "faulty"));
        let chance = table.ask();
        assert!(chance.canonical().contains("it quotes nothing"), "{way}");
        assert_eq!((chance.purpose, chance.tools.is_empty()), (Purpose::Turn, false), "{way}: tools may be called");
        let before = table.past.clone();
        table.take(calls(&["search"]));
        table.done(1, 0, "one");
        table.take(with_answer(way, &[], "faulty"));
        let Action::Corrected(mended, 1) = table.next() else { panic!("{way}: {:?}", table.next()) };
        assert!(matches!(*mended, Answer::Plan(q) if q.question.text == "faulty then faulty"), "{way}");
        // Whatever comes instead of a correction, the first answer is not lost.
        for end in [says("prose"), says(r#"{"question": "bad"}"#), Err(Fault::Rejected)] {
            let mut table = Table { past: before.clone(), ..Table::new(way) };
            table.take(end.clone());
            if end.is_err() {
                table.take(end);
            }
            assert!(matches!(answer(table.next()), Answer::Plan(q) if q.question.text == "faulty"), "{way}");
        }
    }
}

#[test]
fn findings_are_also_returned_after_a_repair() {
    let mut table = Table::new("native");
    table.take(says("prose"));
    table.take(says(r#"{"question": "faulty"}"#));
    assert_eq!(table.ask().purpose, Purpose::Turn);
    table.take(says(r#"{"question": "who?"}"#));
    assert!(matches!(table.next(), Action::Corrected(..)));
}

#[test]
fn a_task_that_comes_again_says_the_same_again() {
    let mut table = Table::new("submit_tool");
    let mut said = vec![table.ask()];
    table.take(calls(&["search"]));
    table.done(1, 0, "one");
    said.push(table.ask());
    table.take(says("prose"));
    said.push(table.ask());
    table.take(with_answer("submit_tool", &[], "faulty"));
    said.push(table.ask());
    let whole = table.past.clone();
    for (n, ask) in said.iter().enumerate() {
        let past = Past {
            done: Arc::new(whole.done.iter().take(n).cloned().collect()),
            asked: Arc::new(whole.asked.iter().take(n).cloned().collect()),
        };
        assert_eq!(Table { past, ..Table::new("submit_tool") }.ask(), *ask, "after {n} calls");
    }
}
