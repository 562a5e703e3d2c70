//! The descriptions of the tools.

use casebook_protocol::{ToolSpec, Toolset};

use crate::{Format, Source};

pub(super) const TOOLS: [(&str, &str, &str); 8] = [
    (
        "list_sources",
        "Lists the sources of evidence that you may see: file, format, what wrote it (`sensor`), number of records, \
         first and last time, what the times rest on, and notes such as clock offsets that were found. Begin here. \
         Two sources are independent only if their sensors differ; `written_on_subject_host` says that a process on \
         the host in question could have written the log, so that an attacker who controls the host controls it. If \
         `confirmed` is false, no person has said what wrote the log: `guessed_sensor` is a guess from its content, \
         and the log counts as written on that host. `acts` are the kinds of acts that the sensor records in full.",
        r#"{"type":"object","properties":{},"additionalProperties":false}"#,
    ),
    (
        "describe_source",
        "Describes one source: first the fields that most records have and that name who, what and where, with type, \
         number of records, number of distinct values and the three most frequent ones; the others as names \
         (`other_fields`), which `fields` or `prefix` describes; which fields are times and what each tells. Use it \
         before filtering by a field whose name or values you do not know.",
        r#"{"type":"object","properties":{"source":{"type":"string","description":"id or file of the source"},"fields":{"type":"array","items":{"type":"string"},"maxItems":100},"prefix":{"type":"string","description":"of the names of fields"}},"required":["source"],"additionalProperties":false}"#,
    ),
    (
        "search",
        "Finds records. `terms` are texts that a record must contain (all of them, or any with mode=any), in any \
         case, exactly as characters: no wildcards, no stemming; a term is also found where the record has it escaped \
         in JSON, XML or CSV, or in hexadecimal in audit logs. `where` adds conditions on fields; a field is a path \
         such as `a.b.c` or the end of one, in any case, and one that no record has is an error if a \
         record has the terms; values compare in any case; `gt` and `lt` compare numbers and \
         times; `ne`, `not_contains` and `not_regex` need the field to be present. `from` and `to` are inclusive and \
         apply to the record's `time` \
         (records without a time are then left out). Returns the total, the window and sources that were searched, \
         and the records with file, line, time and text: cite these; with mode=any also `by_term`, how many hold each term \
         that occurs. `fields` shows only these fields of each record. `near` gives the records nearest a moment first. \
         A total of 0 is evidence of absence for exactly \
         that window and those sources.",
        r#"{"type":"object","properties":{"terms":{"type":"array","items":{"type":"string","minLength":1},"maxItems":500},"mode":{"enum":["all","any"],"default":"all"},"where":{"type":"array","maxItems":20,"items":{"type":"object","properties":{"field":{"type":"string"},"op":{"enum":["eq","ne","contains","not_contains","starts_with","ends_with","gt","lt","exists","regex","not_regex"],"default":"eq"},"value":{"type":["string","number","boolean"]}},"required":["field"],"additionalProperties":false}},"from":{"type":"string","format":"date-time"},"to":{"type":"string","format":"date-time"},"sources":{"type":"array","items":{"type":"string"},"description":"ids; default: all that you may see"},"order":{"enum":["time","time_desc","file"],"default":"time"},"near":{"type":"string","format":"date-time"},"limit":{"type":"integer","minimum":0,"maximum":500,"default":20},"offset":{"type":"integer","minimum":0,"maximum":100000,"default":0},"include_fields":{"type":"boolean","default":false},"fields":{"type":"array","items":{"type":"string"},"maxItems":40}},"additionalProperties":false}"#,
    ),
    (
        "count_by",
        "Counts records by the values of a field, for the same selection as `search`: the most frequent values, each \
         with its count, first and last time and one example place: cite a group as `/groups/N`. `missing` counts records without the field. A \
         record with several values of the field counts once for each. Instead of a field: `$source`, `$minute`, \
         `$hour`, `$day`.",
        r#"{"type":"object","properties":{"field":{"type":"string"},"terms":{"type":"array","items":{"type":"string","minLength":1},"maxItems":500},"mode":{"enum":["all","any"],"default":"all"},"where":{"type":"array","maxItems":20,"items":{"type":"object","properties":{"field":{"type":"string"},"op":{"enum":["eq","ne","contains","not_contains","starts_with","ends_with","gt","lt","exists","regex","not_regex"],"default":"eq"},"value":{"type":["string","number","boolean"]}},"required":["field"],"additionalProperties":false}},"from":{"type":"string","format":"date-time"},"to":{"type":"string","format":"date-time"},"sources":{"type":"array","items":{"type":"string"}},"top":{"type":"integer","minimum":1,"maximum":1000,"default":20}},"required":["field"],"additionalProperties":false}"#,
    ),
    (
        "around",
        "Gives the records around a moment, over all sources in order of time: the moment is `time`, or the time of \
         the record at `file` and `line`. Where there are more than `limit`, the nearest are given.",
        r#"{"type":"object","properties":{"time":{"type":"string","format":"date-time"},"file":{"type":"string"},"line":{"type":"integer","minimum":1},"nth":{"type":"integer","minimum":1},"before_seconds":{"type":"number","minimum":0,"default":60},"after_seconds":{"type":"number","minimum":0,"default":60},"sources":{"type":"array","items":{"type":"string"}},"terms":{"type":"array","items":{"type":"string","minLength":1}},"limit":{"type":"integer","minimum":1,"maximum":500,"default":50},"include_fields":{"type":"boolean","default":false},"fields":{"type":"array","items":{"type":"string"},"maxItems":40}},"additionalProperties":false}"#,
    ),
    (
        "get_record",
        "Gives one record whole, with all its fields, by file and line (`nth` where several records start on one \
         line). A long record comes in parts: `offset` and `length` in bytes, and `next_offset` says where to go on.",
        r#"{"type":"object","properties":{"file":{"type":"string"},"line":{"type":"integer","minimum":1},"nth":{"type":"integer","minimum":1,"default":1},"offset":{"type":"integer","minimum":0,"default":0},"length":{"type":"integer","minimum":1,"maximum":262144,"default":65536}},"required":["file","line"],"additionalProperties":false}"#,
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
        "Runs one read-only SELECT (SQLite) over the view records(id, source, file, line, nth, time, time_ns, \
         time_basis, raw): `time` is RFC 3339 in UTC, `time_ns` nanoseconds since 1970. The function \
         field(id, 'name') gives a field's first value. Reading `raw` or a field reads the file for each row, and a \
         query is stopped after five seconds: narrow down by source, line or time_ns first. Select file and line, \
         and columns and fields as they are, where a row is to be quoted: it then has `of_record`. A number is cited as \
         `count` or `aggregate`. Finding nothing by SQL is no evidence of an absence.",
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
