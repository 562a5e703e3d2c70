//! The descriptions of the tools.

use casebook_protocol::{ToolSpec, Toolset};

use crate::{Format, Source};

pub(super) const TOOLS: [(&str, &str, &str); 11] = [
    (
        "list_sources",
        "Lists the sources that you may see: file, format, sensor (what wrote it), records, first and last time, what the \
         times rest on, notes. Begin here. Sources are independent only if their sensors differ. If `confirmed` is false, the \
         sensor is a guess, and the log counts as `written_on_subject_host`: one who controls the host controls it. `acts` are \
         the acts that the sensor records in full.",
        r#"{"type":"object","properties":{},"additionalProperties":false}"#,
    ),
    (
        "coverage",
        "Says what the sources cover: for each host and source the number of records, from when to when, and of which kinds \
         (event ids, programs, operations). `host` \"\" are records that name no host. An absence counts only if a searched \
         source covers its host and window: look here before you claim one. Cite a number as `/rows/N/records`.",
        r#"{"type":"object","properties":{"host":{"type":"string"},"sources":{"type":"array","items":{"type":"string"}},"limit":{"type":"integer","minimum":1,"maximum":500,"default":100}},"additionalProperties":false}"#,
    ),
    (
        "describe_source",
        "Describes the fields of a source: first those that most records have and that name who, what and where, each with \
         its three most frequent values; of `other_fields` the names, which `fields` or `prefix` describes; which are times. \
         Use it before filtering by a field that you do not know.",
        r#"{"type":"object","properties":{"source":{"type":"string","description":"id or file"},"fields":{"type":"array","items":{"type":"string"}},"prefix":{"type":"string"}},"required":["source"],"additionalProperties":false}"#,
    ),
    (
        "search",
        "Finds records. `terms` are texts that a record must contain (all, or any with mode=any), in any case, exactly as \
         characters; they are found also where the record has them escaped. `where` adds conditions on fields: a path such as \
         `a.b.c` or its end, in any case; one that no record has is an error. Values compare in any case, `gt` and `lt` \
         numbers and times; `ne`, `not_contains` \
         and `not_regex` need the field. `from` and `to` are inclusive. Gives the total, the window and sources searched, and \
         records with file, line, time and text: cite these; with mode=any also `by_term`. `fields` shows only these fields; \
         `near` gives the records nearest a moment, `each_source` at most so many of each source, and `by_source` their numbers. A total of 0 is evidence of absence for that window and those sources.",
        r#"{"type":"object","properties":{"terms":{"type":"array","items":{"type":"string"}},"mode":{"enum":["all","any"]},"where":{"type":"array","items":{"type":"object","properties":{"field":{"type":"string"},"op":{"enum":["eq","ne","contains","not_contains","starts_with","ends_with","gt","lt","exists","regex","not_regex"]},"value":{"type":["string","number","boolean"]}},"required":["field"],"additionalProperties":false}},"from":{"type":"string"},"to":{"type":"string"},"sources":{"type":"array","items":{"type":"string"}},"order":{"enum":["time","time_desc","file"]},"near":{"type":"string"},"limit":{"type":"integer","minimum":0,"maximum":500,"default":20},"each_source":{"type":"integer","minimum":1,"maximum":500},"offset":{"type":"integer","minimum":0},"include_fields":{"type":"boolean"},"fields":{"type":"array","items":{"type":"string"}}},"additionalProperties":false}"#,
    ),
    (
        "count_by",
        "Counts records by the values of a field, for the same selection as `search`: the most frequent values, each with \
         count, first and last time and an example: cite a group as `/groups/N`. `missing` counts records without the field. \
         Instead of a field: `$source`, `$minute`, `$hour`, `$day`, \
         or `$outcome`: how many of the records succeeded and failed, over all kinds of refusal.",
        r#"{"type":"object","properties":{"field":{"type":"string"},"terms":{"type":"array","items":{"type":"string"}},"mode":{"enum":["all","any"]},"where":{"type":"array","items":{"type":"object"},"description":"as in search"},"from":{"type":"string"},"to":{"type":"string"},"sources":{"type":"array","items":{"type":"string"}},"top":{"type":"integer","minimum":1,"maximum":1000,"default":20}},"required":["field"],"additionalProperties":false}"#,
    ),
    (
        "around",
        "Gives the records around a moment, over all sources in order of time: around `time`, or the time of the record at \
         `file` and `line`; the nearest if there are more than `limit`.",
        r#"{"type":"object","properties":{"time":{"type":"string"},"file":{"type":"string"},"line":{"type":"integer","minimum":1},"nth":{"type":"integer","minimum":1},"before_seconds":{"type":"number","minimum":0,"default":60},"after_seconds":{"type":"number","minimum":0,"default":60},"sources":{"type":"array","items":{"type":"string"}},"terms":{"type":"array","items":{"type":"string"}},"limit":{"type":"integer","minimum":1,"maximum":500,"default":50},"include_fields":{"type":"boolean"},"fields":{"type":"array","items":{"type":"string"}}},"additionalProperties":false}"#,
    ),
    (
        "related",
        "Gives the records that belong to the one at `file` and `line` by ids that sensors wrote, each with `tie`: `above` \
         (the starts of the processes above, up to the first), `same_process`, `below` (what the processes that it started \
         did), `same_connection`, `same_session`. Closest first. Use it to find who or what started a process, and what came \
         of it.",
        r#"{"type":"object","properties":{"file":{"type":"string"},"line":{"type":"integer","minimum":1},"nth":{"type":"integer","minimum":1},"limit":{"type":"integer","minimum":1,"maximum":500,"default":100}},"required":["file","line"],"additionalProperties":false}"#,
    ),
    (
        "baseline",
        "Says what is normal for a name: a user, address, host, program, client or domain, given whole. How often it occurs in \
         that part, at which hours (UTC), and with which users, addresses, programs, actions and outcomes; `before` splits this \
         at a moment, such as the time of the alert, and `new_from_then_on` lists what was not there before. Cite a number as a \
         count, such as `/before/by/source_ip/values/0/count`.",
        r#"{"type":"object","properties":{"entity":{"type":"string","minLength":1},"before":{"type":"string","format":"date-time"},"sources":{"type":"array","items":{"type":"string"}}},"required":["entity"],"additionalProperties":false}"#,
    ),
    (
        "get_record",
        "Gives one record whole with all its fields, by file and line (`nth` on this line); a long one in parts from \
         `offset`.",
        r#"{"type":"object","properties":{"file":{"type":"string"},"line":{"type":"integer","minimum":1},"nth":{"type":"integer","minimum":1},"offset":{"type":"integer","minimum":0},"length":{"type":"integer","minimum":1,"maximum":262144}},"required":["file","line"],"additionalProperties":false}"#,
    ),
    (
        "rule_hits",
        "Lists what the Sigma rules found when the evidence was loaded: rules about single records, and correlations such \
         as many refused passwords and then an accepted one. `rules` says what each rule means, `hits` which records it \
         matched: `record`, `first` and `last` are places in `records`. A rule is a judgement about its record. Its title \
         is not evidence: cite the record, as `/records/N`, and a number as `/hits/N/count`. `rule` is an id or a title, \
         `level` the least level, `entity` a name or address that a record or group contains, `around` a moment (with \
         `within_seconds` on each side). Of each rule and source at most 1000 hits are stored: the first, the last and a \
         sample; `rules` has the whole numbers. No hits are no evidence of an absence.",
        r#"{"type":"object","properties":{"rule":{"type":"string","minLength":1},"level":{"enum":["informational","low","medium","high","critical"]},"entity":{"type":"string","minLength":1},"around":{"type":"string","format":"date-time"},"within_seconds":{"type":"number","minimum":0,"default":3600},"sources":{"type":"array","items":{"type":"string"}},"limit":{"type":"integer","minimum":1,"maximum":200,"default":20}},"additionalProperties":false}"#,
    ),
    (
        "sql",
        "One read-only SELECT (SQLite) over records(id, source, file, line, nth, time, time_ns, time_basis, raw); \
         field(id, 'name') gives a field. `raw` and fields read the file for each row, and a query stops after five seconds: \
         narrow down by source, line or time_ns first. Select file and line, and columns as they are, where a row is to be \
         quoted (`of_record`); cite a number as `count` or `aggregate`. An empty result is not evidence.",
        r#"{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":5000,"default":200}},"required":["query"],"additionalProperties":false}"#,
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
