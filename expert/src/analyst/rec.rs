//! The records in tool results, without duplicates.

use std::collections::BTreeMap;

use casebook_agent::reasoner::Done;
use casebook_protocol::tool::{RESULT_TOOLS, server_of};
use casebook_protocol::{Bearing, CallId, CallStatus, EventTime, Precision, TimeBasis, Timestamp, ToolCall, Weight};
use casebook_trust::claim::{Corpus, has_word};
use serde::Deserialize;
use serde_json::Value;

use super::answers::{Answer, Answers};
use super::kin::Kin;
use super::ruled;
use casebook_evidence::decodings;
use casebook_evidence::facet::{Class, Facet, Facets, last, of_honeypot};

/// A Sigma rule that a record meets.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Rule {
    pub(crate) rule: String,
    pub(crate) title: String,
    pub(crate) bearing: Bearing,
    #[serde(rename = "strength")]
    pub(crate) weight: Weight,
    #[serde(default)]
    pub(crate) technique: Option<String>,
    #[serde(default)]
    pub(crate) look_next: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Rec {
    pub(crate) call: CallId,
    pub(crate) pointer: String,
    pub(crate) source: String,
    pub(crate) file: String,
    pub(crate) line: u64,
    pub(crate) time: Option<Timestamp>,
    pub(crate) basis: TimeBasis,
    pub(crate) precision: Precision,
    pub(crate) time_field: String,
    pub(crate) raw: String,
    pub(crate) fields: BTreeMap<String, String>,
    pub(crate) facets: Facets,
    pub(crate) shows: Vec<Rule>,
    /// How the tool `related` says that it belongs to the alerted record.
    pub(crate) tie: Option<Kin>,
    /// How it is linked to the alert.
    pub(crate) kin: Option<Kin>,
    lower: String,
}

impl Rec {
    pub(crate) fn class(&self) -> Class {
        self.facets.class.unwrap_or(Class::Other)
    }

    /// The weight of the gravest rule that points in this direction.
    pub(crate) fn heaviest(&self, bearing: Bearing) -> Option<Weight> {
        self.shows.iter().filter(|rule| rule.bearing == bearing).map(|rule| rule.weight).max()
    }

    pub(crate) fn names(&self, name: &str) -> bool {
        has_word(&self.lower, &name.to_lowercase())
    }

    /// Like [`Rec::names`], but not by the name of the host alone, which may contain that of a user.
    pub(crate) fn names_beside_host(&self, name: &str) -> bool {
        let Some(host) = self.facets.get(Facet::Host).map(str::to_lowercase) else { return self.names(name) };
        let name = name.to_lowercase();
        let other = |value: &String| {
            let value = value.to_lowercase();
            value != host && value != self.lower && has_word(&value, &name)
        };
        self.names(&name) && (!has_word(&host, &name) || self.fields.values().any(other))
    }

    /// None if the record covers a period.
    pub(crate) fn event_time(&self) -> Option<EventTime> {
        let at = self.time.filter(|_| self.basis != TimeBasis::Aggregation)?;
        let field = self.time_field.clone();
        Some(EventTime { at, until: None, precision: self.precision, basis: self.basis, field })
    }

    /// The value of a field with this last path part.
    pub(crate) fn field(&self, wanted: &[&str]) -> Option<&str> {
        let named = |path: &str| wanted.contains(&last(path, 1).as_str());
        self.fields.iter().find(|(path, value)| named(path) && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    pub(crate) fn key(&self) -> (&str, u64) {
        (&self.file, self.line)
    }

    /// Records in order of time.
    pub(crate) fn order(&self) -> (Option<Timestamp>, &str, u64) {
        (self.time, &self.file, self.line)
    }
}

/// What the records state.
pub(crate) fn corpus(recs: &[&Rec]) -> Corpus {
    let mut corpus = Corpus::default();
    for rec in recs {
        corpus.add_text(&rec.raw);
        rec.fields.values().for_each(|value| corpus.add_text(value));
    }
    corpus
}

/// Every answer, and every record in the answers, in order of file and line. Results of MCP servers are not trusted to
/// be records, and a partial read of a result adds nothing to the result itself.
pub(crate) fn collect(done: &[Done]) -> (Answers, Vec<Rec>) {
    let mut answers = Vec::new();
    let mut all: BTreeMap<(String, u64), Rec> = BTreeMap::new();
    let ours = |call: &ToolCall| server_of(&call.tool).is_none() && !RESULT_TOOLS.contains(&call.tool.as_str());
    for Done { call, result } in done.iter().filter(|d| d.call.status == CallStatus::Answered && ours(&d.call)) {
        let Ok(mut found) = serde_json::from_str::<Value>(result) else { continue };
        let listed = list(&found, "records").iter().enumerate().map(|(i, item)| (format!("/records/{i}"), item));
        let single = Some((String::new(), &found)).filter(|_| found.get("records").is_none());
        for mut rec in listed.chain(single).filter_map(|(pointer, item)| read(&call.id, pointer, item)) {
            // Later calls are about records that are not the alerted ones.
            if super::turn_of(call.id.as_str()) != Some(super::plan::ALERTED) {
                rec.tie = rec.tie.map(|_| Kin::Named);
            }
            match all.get_mut(&(rec.file.clone(), rec.line)) {
                Some(known) => {
                    let tie = [known.tie, rec.tie].into_iter().flatten().min();
                    if known.fields.is_empty() && !rec.fields.is_empty() {
                        *known = rec;
                    }
                    known.tie = tie;
                }
                None => {
                    all.insert((rec.file.clone(), rec.line), rec);
                }
            }
        }
        if let Some(records) = found.get_mut("records").filter(|_| call.tool != ruled::TOOL) {
            records.take();
        }
        let asked = serde_json::from_str(&call.arguments).unwrap_or_default();
        answers.push(Answer { call: call.id.clone(), tool: call.tool.clone(), asked, found });
    }
    (Answers::new(answers), all.into_values().collect())
}

pub(super) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The text of a field. A repeated field counts only if all values are equal, because the recorded party may
/// have written lines into a message.
fn text_of(value: &Value) -> String {
    let same = |all: &Vec<Value>| all.windows(2).all(|two| two.first() == two.last());
    let one = value.as_array().filter(|all| same(all)).and_then(|all| all.first()).unwrap_or(value);
    one.as_str().map_or_else(|| one.to_string(), str::to_owned)
}

pub(super) fn read(call: &CallId, pointer: String, item: &Value) -> Option<Rec> {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    let known = |key: &str| item.get(key).cloned().unwrap_or_default();
    let raw = text("raw").unwrap_or_default().to_owned();
    let fields = item.get("fields").and_then(Value::as_object).into_iter().flatten();
    let fields: BTreeMap<String, String> = fields.map(|(key, value)| (key.clone(), text_of(value))).collect();
    let facets = Facets::read(&fields, &raw);
    let written = facets.get(Facet::Text).unwrap_or(&raw);
    // A name in a web address is the name of a file.
    let lower = decodings(written).last().as_deref().unwrap_or(written).to_lowercase();
    let mut shows: Vec<Rule> = serde_json::from_value(known("rules")).unwrap_or_default();
    shows.retain(|rule| rule.bearing != Bearing::Exonerating || !of_honeypot(&fields));
    shows.sort_by_key(|rule| std::cmp::Reverse(rule.weight));
    Some(Rec {
        call: call.clone(),
        pointer,
        source: text("source")?.to_owned(),
        file: text("file")?.to_owned(),
        line: item.get("line").and_then(Value::as_u64)?,
        time: text("time").and_then(|t| t.parse().ok()),
        basis: serde_json::from_value(known("time_basis")).unwrap_or(TimeBasis::Inferred),
        precision: serde_json::from_value(known("precision")).unwrap_or(Precision::Second),
        time_field: text("time_field").unwrap_or_default().to_owned(),
        raw,
        fields,
        facets,
        shows,
        tie: serde_json::from_value(known("tie")).ok(),
        kin: None,
        lower,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Rec {
        pub(crate) fn of(call: CallId, fields: BTreeMap<String, String>, facets: Facets) -> Self {
            Self {
                call,
                pointer: "/records/0".into(),
                source: "a".into(),
                file: "a.log".into(),
                line: 1,
                time: None,
                basis: TimeBasis::Record,
                precision: Precision::Second,
                time_field: "time".into(),
                raw: String::new(),
                fields,
                facets,
                shows: Vec::new(),
                tie: None,
                kin: None,
                lower: String::new(),
            }
        }

        pub(crate) fn with(fields: &[(&str, &str)]) -> Self {
            let fields: BTreeMap<String, String> =
                fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let facets = Facets::read(&fields, "");
            let call = CallId::new("r1.investigate.endpoint.t1.0").unwrap_or_else(|error| panic!("{error}"));
            Self::of(call, fields, facets)
        }

        pub(crate) fn says(&mut self, text: &str) {
            text.clone_into(&mut self.raw);
            self.lower = text.to_lowercase();
        }

        pub(crate) fn answered(id: &str, tool: &str, arguments: &str, result: &str) -> Done {
            let call = ToolCall {
                id: CallId::new(id).unwrap_or_else(|error| panic!("{error}")),
                domain: None,
                tool: tool.into(),
                arguments: arguments.into(),
                status: CallStatus::Answered,
                result: casebook_protocol::ArtifactId::of(result.as_bytes()),
                bytes: result.len() as u64,
                started: Timestamp::UNIX_EPOCH,
                ended: Timestamp::UNIX_EPOCH,
            };
            Done { call, result: std::sync::Arc::from(result) }
        }
    }

    #[test]
    fn file_in_a_web_address_is_named_however_often_it_is_encoded() {
        for url in
            ["/e.php?f=patterns%2Fhidden.php", "/e.php?f=patterns%25252Fhidden.php", "/e.php?f=patterns/hidden.php"]
        {
            let item = serde_json::json!({"source": "a", "file": "a", "line": 1, "raw": format!("GET {url} 200")});
            let rec = read(&CallId::new("r1.investigate.network.t1.0").unwrap(), "/record".into(), &item).unwrap();
            assert!(rec.names("hidden.php"), "{url}");
            assert!(!rec.names("den.php"), "{url}");
        }
    }

    #[test]
    fn a_field_that_stands_twice_says_what_it_says_each_time() {
        let item = serde_json::json!({"source": "a", "file": "a", "line": 1, "raw": "a",
            "fields": {"Message.Name": ["Keeper", "Keeper"], "Message.User": ["SYSTEM", "mara"]}});
        let rec = read(&CallId::new("r1.investigate.endpoint.t1.0").unwrap(), "/record".into(), &item).unwrap();
        assert_eq!(rec.field(&["name"]), Some("Keeper"));
        assert_eq!(rec.field(&["user"]), Some(r#"["SYSTEM","mara"]"#), "one of them may be forged");
    }
}
