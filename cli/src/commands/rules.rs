use std::path::Path;
use std::sync::Arc;

use casebook_evidence::rules::{ExplainedPart, Level, Origin, Rule, RuleFile, RuleSet, built_in_rules};
use casebook_evidence::{Catalog, Declared, EvidenceTools};
use casebook_expert::rules;
use casebook_report::words;
use casebook_runtime::config::ConfigFaults;
use serde_json::{Value, json};

use crate::args::{CheckRules, ExplainRules, ListRules, RuleFolders, Rules, RulesCommand, TestRules};
use crate::embedded;
use crate::failure::{Exit, Failure};
use crate::progress::loaded;
use crate::screen::{BOLD, DIM, GREEN, PLAIN, RED, Screen, YELLOW, paint, safe};
use crate::stop;

pub(super) async fn run(data: &Path, args: &Rules, screen: &mut Screen) -> Result<Exit, Failure> {
    match &args.command {
        RulesCommand::List(args) => list(args, screen),
        RulesCommand::Check(args) => Ok(check(args, screen)),
        RulesCommand::Test(args) => test(args, screen).await,
        RulesCommand::Explain(args) => explain(data, args, screen).await,
    }
}

/// The rules that the options name.
fn files(from: &RuleFolders) -> Result<Vec<RuleFile>, Failure> {
    let team = embedded::team_folder(from.team.as_deref());
    rules::files(team.as_deref(), &from.rules).map_err(|faults| refused(&faults))
}

fn set(files: Vec<RuleFile>) -> Result<Arc<RuleSet>, Failure> {
    rules::set(files).map_err(|faults| refused(&faults))
}

pub(crate) fn refused(faults: &ConfigFaults) -> Failure {
    let many = faults.0.len();
    let first = faults.0.first().map(ToString::to_string).unwrap_or_default();
    let more = if many > 1 { format!(" (and {} more)", words::count(many as u64 - 1, "fault")) } else { String::new() };
    Failure::usage(format!("{first}{more}"), "`casebook rules check DIR` shows all faults of a folder of rules")
}

fn list(args: &ListRules, screen: &mut Screen) -> Result<Exit, Failure> {
    let set = set(files(&args.from)?)?;
    let wanted = |rule: &&Rule| args.level.is_none_or(|level| rule.level >= level);
    let listed: Vec<&Rule> = set.rules().iter().filter(wanted).collect();
    if args.json {
        screen.line(serde_json::to_string_pretty(&listed).unwrap_or_default());
        return Ok(Exit::Done);
    }
    let (parts, own): (Vec<&Rule>, Vec<&Rule>) = listed.into_iter().partition(|rule| rule.part);
    for rule in &own {
        let kind = match &rule.correlation {
            Some(kind) => format!("correlation ({kind})"),
            None => rule.logsource.clone(),
        };
        let says = words::bearing(rule.judgement.bearing, rule.judgement.strength);
        screen.line(format_args!(
            "{}  {}",
            paint(of_level(rule.level), rule.level.name()),
            paint(BOLD, safe(&rule.title, 200))
        ));
        screen.line(paint(
            DIM,
            format_args!("    {}; {says}; {}", safe(&kind, 80), safe(&rule.file.display().to_string(), 200)),
        ));
    }
    let parts = words::count(parts.len() as u64, "part");
    screen.line(format_args!("{}, and {parts} of correlations", words::count(own.len() as u64, "rule")));
    Ok(Exit::Done)
}

fn of_level(level: Level) -> anstyle::Style {
    match level {
        Level::Critical | Level::High => RED,
        Level::Medium => YELLOW,
        Level::Low | Level::Informational => PLAIN,
    }
}

fn check(args: &CheckRules, screen: &mut Screen) -> Exit {
    let read = rules::files(None, &args.paths);
    let many = read.as_ref().map_or(0, Vec::len);
    let own = |set: Arc<RuleSet>| {
        for (number, rule) in set.rules().iter().enumerate().filter(|(_, rule)| rule.origin == Origin::User) {
            if !set.has_log_source(number) {
                let what = format!(
                    "logsource: no log that Casebook reads is {}; the rule will not match (docs/rules.md lists the log sources)",
                    rule.logsource
                );
                let file = safe(&rule.file.display().to_string(), 300);
                screen.line(format_args!("{file}:{}: {}", rule.line, paint(YELLOW, safe(&what, 600))));
            }
        }
    };
    let faults = read.and_then(rules::set).map(own).err().map(|faults| faults.0).unwrap_or_default();
    for fault in &faults {
        let file = safe(&fault.file.display().to_string(), 300);
        screen.line(format_args!("{file}:{}: {}", fault.line, paint(RED, safe(&fault.what, 600))));
    }
    let files = words::count(many as u64, "file");
    match faults.len() {
        0 => screen.line(format_args!("{files}: no faults")),
        n => screen.line(format_args!("{} in {files}", words::count(n as u64, "fault"))),
    }
    if faults.is_empty() { Exit::Done } else { Exit::Usage }
}

async fn test(args: &TestRules, screen: &mut Screen) -> Result<Exit, Failure> {
    let mut own = files(&args.from)?;
    if own.is_empty() {
        own = built_in_rules();
    }
    // The index of the data folder must not change: the next investigation uses it.
    let scratch =
        tempfile::tempdir().map_err(|e| Failure::failed(format!("cannot make a folder: {e}"), "free some space"))?;
    let set = RuleSet::read(&own).map_err(|found| {
        let faults = found.into_iter().map(|f| casebook_runtime::config::ConfigFault {
            file: f.file,
            line: f.line,
            what: f.what,
        });
        refused(&ConfigFaults(faults.collect()))
    })?;
    let declared = Declared { rule_set: Some(Arc::new(set)), ..Declared::default() };
    let mut stop = stop::listen()?;
    let catalog = loaded(&args.evidence, scratch.path(), None, &declared, &mut stop).await?;
    let sources: Vec<String> = catalog.sources().iter().map(|source| source.id.clone()).collect();
    let tools = EvidenceTools::new(Arc::clone(&catalog), &sources);
    let call = |arguments: &Value| -> Result<Value, Failure> {
        let answer =
            tools.call("rule_hits", &arguments.to_string()).map_err(|why| Failure::failed(why, "try again"))?;
        Ok(serde_json::from_str(&answer).unwrap_or_default())
    };
    let all = call(&json!({"limit": 1}))?;
    let rules = items(&all, "rules");
    for rule in rules {
        shown_rule(rule, screen);
        let found = call(&json!({"rule": rule["rule"], "limit": args.show.clamp(1, 200)}))?;
        for hit in items(&found, "hits") {
            shown_hit(hit, items(&found, "records"), screen);
        }
    }
    let records = catalog.sources().iter().map(|source| source.records).sum();
    screen.line(format_args!(
        "{} with hits in {}",
        words::count(rules.len() as u64, "rule"),
        words::count(records, "record")
    ));
    Ok(Exit::Done)
}

fn items<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

fn shown_rule(rule: &Value, screen: &mut Screen) {
    let level =
        Level::ALL.iter().find(|(name, _)| *name == text(rule, "level")).map_or(Level::Medium, |(_, level)| *level);
    let hits = words::count(rule["hits"].as_u64().unwrap_or(0), "hit");
    let title = paint(BOLD, safe(text(rule, "title"), 200));
    screen.line(format_args!("{}  {title}: {hits}", paint(of_level(level), level.name())));
}

fn shown_hit(hit: &Value, records: &[Value], screen: &mut Screen) {
    let at = |key: &str| usize::try_from(hit[key].as_u64()?).ok().and_then(|place| records.get(place));
    let place = |record: &Value| format!("{}:{}", safe(text(record, "file"), 120), record["line"]);
    let Some(record) = at("record") else { return };
    let mut line = place(record);
    if let Some(count) = hit["count"].as_u64() {
        let by = hit["by"].as_object().into_iter().flatten();
        let by: Vec<String> =
            by.map(|(name, value)| format!("{name} {}", value.as_str().unwrap_or_default())).collect();
        let first = at("first").map(place).unwrap_or_default();
        line = format!("{first} to {line}, {}, {}", words::count(count, "time"), safe(&by.join(", "), 120));
    }
    screen.line(format_args!("    {}  {line}", safe(text(hit, "time"), 40)));
    screen.line(paint(DIM, format_args!("        {}", safe(text(record, "raw"), 200))));
}

async fn explain(data: &Path, args: &ExplainRules, screen: &mut Screen) -> Result<Exit, Failure> {
    let set = set(files(&args.from)?)?;
    let mut stop = stop::listen()?;
    let catalog = loaded(&args.evidence, data, None, &Declared::default(), &mut stop).await?;
    let (file, line) = &args.record;
    let record = catalog.record(file, *line).map_err(|e| Failure::usage(e, "`casebook sources` lists the files"))?;
    let named = |rule: &Rule| match &args.rule {
        Some(name) => rule.id.eq_ignore_ascii_case(name) || rule.title.eq_ignore_ascii_case(name),
        None => true,
    };
    if let Some(name) = args.rule.as_ref().filter(|_| !set.rules().iter().any(&named)) {
        return Err(Failure::usage(format!("no rule {name:?}"), "`casebook rules list` lists the rules"));
    }
    screen.line(paint(DIM, safe(&record.text(), 300)));
    let sensor = sensor_of(&catalog, &record.source);
    let (mut elsewhere, mut of) = (0, String::new());
    for (number, told) in set.explain(&sensor, &record.file, &record.fields(), &named) {
        let Some(rule) = set.rules().get(number) else { continue };
        let title = paint(BOLD, safe(&rule.title, 200));
        match told {
            Err(sources) if args.rule.is_none() => (elsewhere, of) = (elsewhere + 1, sources),
            Err(sources) => {
                let what = format!("the rule is for {}; the record is of {sources}", rule.logsource);
                screen.line(format_args!("{} {title}: {}", paint(YELLOW, "-"), safe(&what, 400)));
            }
            Ok(told) => {
                screen.line(format_args!("{} {title}", mark(told.matched)));
                told.parts.iter().for_each(|part| shown_part(part, screen));
            }
        }
    }
    let correlation = |rule: &&Rule| rule.correlation.is_some() && args.rule.is_some() && named(rule);
    for rule in set.rules().iter().filter(correlation) {
        screen.line(format_args!("{}: a correlation; explain the rules that it counts", safe(&rule.title, 200)));
    }
    if elsewhere > 0 {
        screen.line(format_args!(
            "{} for other logs; this record is of {}",
            words::count(elsewhere, "rule"),
            safe(&of, 200)
        ));
    }
    Ok(Exit::Done)
}

fn sensor_of(catalog: &Catalog, source: &str) -> String {
    catalog.sources().iter().find(|s| s.id == source).map(|s| s.sensor.clone()).unwrap_or_default()
}

fn mark(matched: bool) -> String {
    if matched { paint(GREEN, "+") } else { paint(RED, "-") }
}

fn shown_part(part: &ExplainedPart, screen: &mut Screen) {
    let indent = " ".repeat(2 + part.depth * 2);
    screen.line(format_args!("{indent}{} {}", mark(part.matched), safe(&part.what, 500)));
}
