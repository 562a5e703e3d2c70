use casebook_protocol::Recorded;
use expect_test::expect;

use super::*;

const LOG: &str = include_str!("../../../../hub/fixtures/log-v1.ndjson");

fn shown(mut summary: Summary) -> (String, Vec<Agent>) {
    let events = LOG.lines().map(|line| serde_json::from_str::<Recorded>(line).unwrap().event);
    let lines: Vec<String> = events.flat_map(|event| summary.take(&event)).collect();
    (anstream::adapter::strip_str(&lines.join("\n")).to_string(), summary.agents().to_vec())
}

#[test]
fn terminal_keeps_one_line_for_each_round() {
    let (lines, agents) = shown(Summary::default());
    expect![[r#"
        Alert     Module loaded
        Experts   endpoint, identity
          hub           identity: no Expert for identity is there any more
          critic        r1.timeline failed: confused
        Round 1   discovery: 2 new findings, 2 credible
        Round 2   trace: 2 new findings, 2 credible; Timeline 0.70 Highly-plausible, 1 event, 1 gap
        Round 3   trace: 2 new findings, 2 credible; Timeline 0.70 Highly-plausible, 2 events, 1 gap"#]]
    .assert_eq(&lines);
    assert!(agents.iter().all(|agent| !agent.busy));
    assert_eq!(agents.first().map(|agent| agent.name.as_str()), Some("director"));
    assert_eq!(agents.last().map(|agent| agent.name.as_str()), Some("critic"));
}

#[test]
fn pipe_gets_a_line_for_each_task_of_an_expert() {
    expect![[r#"
        Alert     Module loaded
        Experts   endpoint, identity
          hub           identity: no Expert for identity is there any more
          endpoint      2 findings from 2 tool calls
          critic        r1.timeline failed: confused
        Round 1   discovery: 2 new findings, 2 credible
          endpoint      2 findings from 2 tool calls
        Round 2   trace: 2 new findings, 2 credible; Timeline 0.70 Highly-plausible, 1 event, 1 gap
          endpoint      2 findings from 2 tool calls
        Round 3   trace: 2 new findings, 2 credible; Timeline 0.70 Highly-plausible, 2 events, 1 gap"#]]
    .assert_eq(&shown(Summary::plain()).0);
}
