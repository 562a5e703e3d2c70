//! The descriptions of the tools.

use casebook_protocol::{ToolSpec, Toolset};

use crate::{Format, Source};

pub(super) const TOOLS: [(&str, &str, &str); 11] = [
    (
        "list_sources",
        "Lists your sources: file, sensor (a guess unless `confirmed`; then the log counts as written on the subject's \
         host), records, times and what they rest on, notes, `acts` that the sensor records in full.",
        r#"{"type":"object","properties":{}}"#,
    ),
    (
        "coverage",
        "Says of which hosts (\"\": none named) each source has how many records, of which kinds, from when to when. Look \
         here before you claim an absence. Cite a number as `/rows/N/records`.",
        r#"{"type":"object","properties":{"host":{"type":"string"},"sources":{"type":"array","items":{"type":"string"}},"limit":{"type":"integer","maximum":500}}}"#,
    ),
    (
        "describe_source",
        "Describes the fields of a source, the most telling first, with frequent values; `fields` or `prefix`: those \
         that `other_fields` only names. Use it before you filter.",
        r#"{"type":"object","properties":{"source":{"type":"string"},"fields":{"type":"array","items":{"type":"string"}},"prefix":{"type":"string"}},"required":["source"]}"#,
    ),
    (
        "search",
        "Finds records that contain all `terms` (mode=any: any; in any case, also where the record has them escaped) and \
         fulfil `where`: a `field` is a path such as `a.b.c` or its end; values compare in any case, `gt` and `lt` \
         numbers and times; `ne` and `not_…` need the field. `from` and `to` are inclusive. Shows file, line, time and \
         text, or only `fields`, of 20 records unless `limit` says otherwise; `near`: the nearest to a moment; \
         `each_source`: at most so many of each. Gives the total, `by_source` and `by_term` (mode=any), and what was \
         searched: a total of 0 is evidence of absence there.",
        r#"{"type":"object","properties":{"terms":{"type":"array","items":{"type":"string"}},"mode":{"enum":["all","any"]},"where":{"type":"array","items":{"type":"object","properties":{"field":{"type":"string"},"op":{"enum":["eq","ne","contains","not_contains","starts_with","ends_with","gt","lt","exists","regex","not_regex"]},"value":{"type":["string","number","boolean"]}},"required":["field"]}},"from":{"type":"string"},"to":{"type":"string"},"sources":{"type":"array","items":{"type":"string"}},"order":{"enum":["time","time_desc","file"]},"near":{"type":"string"},"limit":{"type":"integer","maximum":500},"each_source":{"type":"integer","maximum":500},"offset":{"type":"integer"},"fields":{"type":"array","items":{"type":"string"}}}}"#,
    ),
    (
        "count_by",
        "Counts the records that `search` would find by the values of `field`, or by `$source`, `$minute`, `$hour`, \
         `$day`, `$outcome` (succeeded or failed): the most frequent, with count, first and last time, an example. Cite \
         a group as `/groups/N`. `missing` have no such field.",
        r#"{"type":"object","properties":{"field":{"type":"string"},"terms":{"type":"array","items":{"type":"string"}},"mode":{"enum":["all","any"]},"where":{"type":"array","items":{"type":"object"}},"from":{"type":"string"},"to":{"type":"string"},"sources":{"type":"array","items":{"type":"string"}},"top":{"type":"integer","maximum":1000}},"required":["field"]}"#,
    ),
    (
        "around",
        "Gives the records of all sources around `time` or the record at `file` and `line`, in order of time: the nearest \
         50 within 60 seconds unless you say otherwise.",
        r#"{"type":"object","properties":{"time":{"type":"string"},"file":{"type":"string"},"line":{"type":"integer"},"before_seconds":{"type":"number"},"after_seconds":{"type":"number"},"sources":{"type":"array","items":{"type":"string"}},"terms":{"type":"array","items":{"type":"string"}},"limit":{"type":"integer","maximum":500},"fields":{"type":"array","items":{"type":"string"}}}}"#,
    ),
    (
        "related",
        "Gives the records tied to the one at `file` and `line` by ids of process, connection or session, closest first: \
         who started a process (`tie` `above`), what it did (`same_process`), what came of it (`below`).",
        r#"{"type":"object","properties":{"file":{"type":"string"},"line":{"type":"integer","minimum":1},"nth":{"type":"integer"},"limit":{"type":"integer","maximum":500}},"required":["file","line"]}"#,
    ),
    (
        "baseline",
        "Says what is normal for a user, address, host, program, client or domain, given whole: how often, at which \
         hours (UTC), with which users, addresses, programs, actions, outcomes; split at the moment `before`, and \
         `new_from_then_on`. Cite a count, such as `/before/by/source_ip/values/0/count`.",
        r#"{"type":"object","properties":{"entity":{"type":"string"},"before":{"type":"string"},"sources":{"type":"array","items":{"type":"string"}}},"required":["entity"]}"#,
    ),
    (
        "get_record",
        "Gives one record whole, by `file` and `line` (`nth` on this line); a long one in parts.",
        r#"{"type":"object","properties":{"file":{"type":"string"},"line":{"type":"integer","minimum":1},"nth":{"type":"integer"},"offset":{"type":"integer"},"length":{"type":"integer"}},"required":["file","line"]}"#,
    ),
    (
        "rule_hits",
        "Lists what Sigma rules (`rule`: id or title; `level`: the least) found at load, in single records and in \
         groups, with an `entity`, or `around` a moment: `rules` says what each means and how often it hit, `hits` \
         which `records`. A title is not evidence: cite the record, `/records/N`, or a number, `/hits/N/count`. No hits \
         are no evidence of an absence.",
        r#"{"type":"object","properties":{"rule":{"type":"string"},"level":{"enum":["informational","low","medium","high","critical"]},"entity":{"type":"string"},"around":{"type":"string"},"within_seconds":{"type":"number"},"sources":{"type":"array","items":{"type":"string"}},"limit":{"type":"integer","maximum":200}}}"#,
    ),
    (
        "sql",
        "One read-only SELECT (SQLite) over records(id, source, file, line, nth, time, time_ns, time_basis, raw) and \
         field(id, 'name'), for five seconds: narrow down by source, line or time_ns before you read `raw` or fields. \
         To quote a row, select file, line and columns as they are. An empty result is not evidence.",
        r#"{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","maximum":5000}},"required":["query"]}"#,
    ),
];

pub(super) fn toolset<'s>(sources: impl Iterator<Item = &'s Source>) -> Toolset {
    let about = about(sources.map(|s| (s.id.as_str(), s.format, s.records, s.sensor.as_str(), s.confirmed)));
    let tools = TOOLS
        .iter()
        .map(|(name, description, schema)| ToolSpec {
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            input_schema: (*schema).to_owned(),
            repeatable: true,
        })
        .collect();
    Toolset { name: "evidence".into(), about, tools }
}

/// Describes the sources: id, format, number of records and sensor, and whether the sensor is confirmed.
pub fn about<'s>(sources: impl Iterator<Item = (&'s str, Format, u64, &'s str, bool)>) -> String {
    let names: Vec<String> = sources
        .map(|(id, format, records, sensor, confirmed)| {
            let guess = if confirmed { "" } else { ", a guess" };
            format!("{id} ({}, {records} records of {sensor}{guess})", format.words())
        })
        .collect();
    match names.len() {
        0 => "Log files of the case: none that you may see.".to_owned(),
        n => format!("Log files of the case, {n} sources: {}.", names.join("; ")),
    }
}
