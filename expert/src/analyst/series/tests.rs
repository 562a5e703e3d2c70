//! Scenes in text files. The first records are what the look around the alerted one (line 5) returned. The sections
//! `--- found` and `--- counted` answer the calls that follow, in turn; `--- looked` is the answer to one more look.
//!
//! A record begins with its line, its time and its file; with `+` it is the record before it except for what follows.
//! `> ` is its text; without one its fields are. After `found` comes how many there are in all, after `counted` how
//! many distinct values there are.

use casebook_agent::reasoner::Done;
use casebook_protocol::{Alert, ExpertView, Question, Toolset};
use casebook_table::{blocks, expect_file};
use casebook_trust::Exhibits;
use serde_json::{Map, Value};

use super::super::{Case, compose, plan};
use super::*;

fn done(number: usize, request: &CallRequest, result: &Value) -> Done {
    let id = format!("r1.investigate.identity.t4.{number}");
    Rec::answered(&id, &request.tool, &request.arguments, &result.to_string())
}

/// The fields and the text of a record; the next one may begin with them.
type Last = (Map<String, Value>, Option<String>);

fn record(head: &str, lines: &[&str], last: &mut Last) -> Value {
    let mut words = head.trim_start_matches('+').split(' ');
    let (line, time) = (words.next().unwrap().parse::<u64>().unwrap(), words.next().unwrap());
    if !head.starts_with('+') {
        *last = Last::default();
    }
    let (texts, pairs): (Vec<&str>, Vec<&str>) = lines.iter().partition(|line| line.starts_with("> "));
    let pairs = pairs.iter().map(|pair| pair.split_once(" = ").unwrap());
    last.0.extend(pairs.map(|(name, value)| (name.to_owned(), value.into())));
    if !texts.is_empty() {
        last.1 = Some(texts.iter().map(|text| &text[2..]).collect::<Vec<_>>().join("\n"));
    }
    let own = || last.0.iter().map(|(name, value)| format!("{name}: {}\n", value.as_str().unwrap())).collect();
    let time = if time.contains('T') { time.to_owned() } else { format!("2026-03-01T{time}Z") };
    json!({"source": "auth", "file": words.next().unwrap_or("auth.log"), "line": line, "time": time,
        "time_basis": "record", "precision": "second", "time_field": "timestamp",
        "raw": last.1.clone().unwrap_or_else(own), "fields": last.0})
}

fn section(text: &str, last: &mut Last) -> Value {
    let (head, body) = text.split_once('\n').unwrap_or((text, ""));
    let (kind, number) = head.split_once(' ').unwrap_or((head, ""));
    let number = |otherwise: usize| number.parse().unwrap_or(otherwise);
    let mut answer = json!({"searched": ["auth"], "window": {"from": null, "to": null}});
    if kind == "counted" {
        let pairs = body.lines().filter_map(|line| line.split_once(" = "));
        let counts: Vec<(&str, usize)> = pairs.map(|(value, n)| (value, n.parse().unwrap())).collect();
        let groups: Vec<Value> = counts.iter().map(|(value, n)| json!({"value": value, "count": n})).collect();
        answer["distinct"] = number(groups.len()).into();
        answer["total"] = counts.iter().map(|count| count.1).sum::<usize>().max(number(0)).into();
        answer["groups"] = groups.into();
        return answer;
    }
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in body.lines().filter(|line| !line.is_empty()) {
        match all.last_mut().filter(|_| line.starts_with("> ") || line.contains(" = ")) {
            Some((_, lines)) => lines.push(line),
            None => all.push((line, Vec::new())),
        }
    }
    let records: Vec<Value> = all.iter().map(|(head, lines)| record(head, lines, last)).collect();
    answer["total"] = number(records.len()).into();
    answer["returned"] = records.len().into();
    answer["records"] = records.into();
    answer
}

/// The case of a scene in which `requests` are made, and what was answered.
pub(in crate::analyst) fn scene(text: &str, requests: impl Fn(&Case) -> Vec<CallRequest>) -> (Case, Vec<Done>) {
    let alert =
        br#"{"id":"a","title":"Failed logins","src_ip":"203.0.113.9","event_ref":{"file":"auth.log","line":5}}"#;
    let view = ExpertView {
        alert: Alert::parse(alert).unwrap(),
        journal: Vec::new(),
        question: Question { text: "?".into(), follow: Vec::new(), to: Vec::new() },
        toolset: Toolset { name: "evidence".into(), about: String::new(), tools: Vec::new() },
        sources: Vec::new(),
        earlier: vec![],
        snapshot: vec![],
    };
    let look = || call("around", &json!({}));
    let text = format!("found\n{text}");
    let mut sections = text.split("\n--- ");
    let mut last = Last::default();
    let mut all = vec![done(0, &look(), &section(sections.next().unwrap(), &mut last))];
    let mut requests = requests(&Case::of(&view, &all, plan::sources_of(&all), 1)).into_iter();
    for (text, n) in sections.zip(1..) {
        let request = if text.starts_with("looked") { Some(look()) } else { requests.next() };
        let answer = section(text, &mut last);
        all.extend(request.map(|request| done(n, &request, &answer)));
    }
    (Case::of(&view, &all, plan::sources_of(&all), 1), all)
}

/// The findings of a scene, a line each. What they cite holds.
pub(in crate::analyst) fn told((_, done): &(Case, Vec<Done>), all: &[FindingDraft]) -> String {
    let mut exhibits = Exhibits::default();
    done.iter().for_each(|d| exhibits.add(d.call.clone(), false, d.result.as_bytes()));
    let one = |finding: &FindingDraft| {
        assert!(exhibits.check(finding).valid(), "{finding:?}: {:?}", exhibits.check(finding));
        let about = if finding.about_alert { ", about the alert" } else { "" };
        let at = finding.time.as_ref().map_or_else(String::new, |time| format!(", {}", time.at));
        let technique = finding.technique.iter().map(|t| format!(" ({t})")).collect::<String>();
        let (weight, bearing, cited) = (finding.weight, finding.bearing, finding.citations.len());
        format!("{weight:?} {bearing:?}{about}{at}, {cited} cited: {}{technique}\n", finding.claim)
    };
    all.iter().map(one).collect()
}

fn asked(requests: &[CallRequest]) -> String {
    requests.iter().map(|request| format!("{} {}\n", request.tool, request.arguments)).collect()
}

fn core(case: &Case) -> &Rec {
    case.alerted()[0]
}

/// What is asked in a scene, and what is looked for in the answers.
type Requests = fn(&Case) -> Vec<CallRequest>;
type Places = fn(&Case, &[Done]) -> BTreeSet<(String, u64)>;

/// The word before the colon of a title names what is looked for: the findings, or the lines of records.
#[test]
fn each_scene_is_told_as_on_file() {
    blocks(&expect_file!["cases.txt"], |title, text| {
        let in_scene = |requests: Requests, places: Places| {
            let (case, done) = scene(text, requests);
            format!("{:?}", places(&case, &done).iter().map(|place| place.1).collect::<Vec<_>>())
        };
        match title.split_once(':').unwrap().0 {
            "series" => {
                let scene = scene(text, ask);
                told(&scene, &findings(&scene.0, &scene.1))
            }
            "findings" => {
                let scene = scene(text, ask);
                told(&scene, &compose::findings(&scene.0, &scene.1))
            }
            "shows" => {
                let ids = |rec: &Rec| rec.shows.iter().map(|b| format!(" {}", b.id)).collect::<String>();
                scene(text, ask).0.recs.iter().map(|rec| format!("{}{}\n", rec.line, ids(rec))).collect()
            }
            "asks" => asked(&alerted(&scene(text, ask).0).map_or_else(Vec::new, |series| series.asked())),
            "asks commands" => asked(&beside::commands(core(&scene(text, ask).0))),
            "means" => {
                let (case, _) = scene(text, |_| Vec::new());
                assert_eq!(core(&case).class(), Class::Alert);
                format!("{:?}", meant::by(&case, core(&case)).map(|rec| rec.line))
            }
            "after guesses" => in_scene(ask, after_guesses),
            "led to" => in_scene(ask, led_to),
            "spread" => in_scene(ask, spread),
            "changed" => in_scene(ask, changed),
            "named" => in_scene(|_| Vec::new(), |case, _| named(case)),
            "sharing" => in_scene(|_| Vec::new(), |case, _| sharing(case)),
            "installed" => in_scene(|case| around::packages(case).into_iter().collect(), installed),
            "let through" => in_scene(|case| around::sent_to(core(case)).into_iter().collect(), around::let_through),
            "commands" => in_scene(|case| beside::commands(core(case)), beside_it),
            "sentences" => in_scene(|case| beside::sentences_near(core(case)).into_iter().collect(), sentences),
            "used" => in_scene(|case| used::request(case).into_iter().collect(), used::places),
            other => panic!("nothing is looked for by {other:?}"),
        }
    });
}

#[test]
fn domain_of_a_name_is_what_can_be_registered() {
    let check = |name: &str, expect: Option<&str>| assert_eq!(domain(name).as_deref(), expect, "{name}");
    check("a.b.example.org.", Some(".example.org"));
    check("www.shop.co.uk", Some(".shop.co.uk"));
    check("shop.co.uk", None);
    check("example.org", None);
    check("5.0.0.10.in-addr.arpa", None);
}
