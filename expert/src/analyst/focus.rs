//! The subject of the alert in a log about many: searches that find too much are repeated for its records alone, and
//! records about others rank below all that are tied to the alert.

use std::collections::BTreeMap;

use casebook_agent::reasoner::{CallRequest, Done};
use casebook_agent::worker::call;
use casebook_evidence::facet::{Class, Facet};
use casebook_protocol::CallStatus;
use serde_json::{Map, Value, json};

use super::plan::Sources;
use super::rec::Rec;

#[derive(Debug, Clone)]
pub(crate) struct Focus {
    source: String,
    facet: Facet,
    field: String,
    value: String,
}

/// A source with at most this many records is searched whole.
const SMALL: u64 = 2_000;
/// Sources that are searched for the subject alone.
const MOST: usize = 8;

impl Focus {
    /// The subject in each source that names it.
    pub(crate) fn all(alerted: &[&Rec], recs: &[Rec], hosts: &[&str]) -> Vec<Self> {
        let first = Self::of(alerted);
        let mut all: BTreeMap<String, Self> = first.iter().map(|focus| (focus.source.clone(), focus.clone())).collect();
        let own = |rec: &Rec| match &first {
            Some(focus) => rec.facets.get(focus.facet).is_some_and(|v| v.eq_ignore_ascii_case(&focus.value)),
            None => rec.facets.get(Facet::Host).is_some_and(|v| hosts.iter().any(|host| v.eq_ignore_ascii_case(host))),
        };
        let facet = first.as_ref().map_or(Facet::Host, |focus| focus.facet);
        for rec in recs.iter().filter(|rec| own(rec)) {
            if !all.contains_key(&rec.source)
                && let Some((field, value)) = rec.facets.field_of(facet, &rec.fields)
            {
                all.insert(rec.source.clone(), Self { source: rec.source.clone(), facet, field, value });
            }
        }
        all.into_values().take(MOST).collect()
    }

    /// The host of the alerted record, or else the address or account.
    fn of(alerted: &[&Rec]) -> Option<Self> {
        let wire = |rec: &Rec| {
            matches!(rec.class(), Class::NetworkConnection | Class::DnsQuery | Class::HttpRequest | Class::TlsSession)
                && rec.facets.get(Facet::Process).is_none()
        };
        alerted.iter().find_map(|rec| {
            // A network sensor names itself as the host.
            let order = if wire(rec) {
                [Facet::SrcIp, Facet::Host, Facet::User]
            } else {
                [Facet::Host, Facet::User, Facet::SrcIp]
            };
            let found = |facet: &Facet| Some((*facet, rec.facets.field_of(*facet, &rec.fields)?));
            let (facet, (field, value)) = order.iter().find_map(found)?;
            Some(Self { source: rec.source.clone(), facet, field, value })
        })
    }

    /// Counts the records of the subject in its source.
    pub(crate) fn count(&self) -> CallRequest {
        self.narrow(&call("search", &json!({"limit": 0})))
    }

    /// The records of the subject, if most of a large source are about others.
    fn few(&self, done: &[Done], sources: &Sources) -> Option<u64> {
        let asked = self.count().arguments;
        let own = done.iter().find(|d| d.call.arguments == asked && d.call.status == CallStatus::Answered)?;
        let own = serde_json::from_str::<Value>(&own.result).ok()?.get("total")?.as_u64()?;
        let all = sources.held.get(&self.source).copied().unwrap_or(0);
        (all > SMALL && own > 0 && own.saturating_mul(2) < all).then_some(own)
    }

    fn narrow(&self, request: &CallRequest) -> CallRequest {
        let Some(mut arguments) = arguments_of(&request.arguments) else { return request.clone() };
        let condition = self.condition();
        match arguments.get_mut("where").and_then(Value::as_array_mut) {
            Some(conditions) => conditions.push(condition),
            None => drop(arguments.insert("where".into(), json!([condition]))),
        }
        arguments.insert("sources".into(), json!([self.source]));
        call(&request.tool, &Value::Object(arguments))
    }

    fn condition(&self) -> Value {
        json!({"field": self.field, "op": "eq", "value": self.value})
    }

    /// True if the record is about another host, address or account.
    pub(crate) fn excludes(&self, rec: &Rec) -> bool {
        rec.facets.get(self.facet).is_some_and(|value| !value.eq_ignore_ascii_case(&self.value))
    }
}

/// The sources that are mostly about others.
pub(crate) struct Crowd(Vec<(Focus, u64)>);

impl Crowd {
    pub(crate) fn of<'f>(all: impl Iterator<Item = &'f Focus>, done: &[Done], sources: &Sources) -> Self {
        Self(all.filter_map(|focus| Some((focus.clone(), focus.few(done, sources)?))).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The sources with the records of the subject alone.
    pub(crate) fn calm(&self, mut sources: Sources) -> Sources {
        for (focus, own) in &self.0 {
            sources.held.insert(focus.source.clone(), *own);
        }
        sources.records = sources.held.values().sum();
        sources
    }

    /// A search in parts: the records of the subject in each crowded source, and the other sources.
    pub(crate) fn parts(&self, request: CallRequest, sources: &Sources) -> Vec<CallRequest> {
        let Some(mut arguments) = arguments_of(&request.arguments) else { return vec![request] };
        if !matches!(request.tool.as_str(), "search" | "count_by") || arguments.contains_key("sources") {
            return vec![request];
        }
        let calm = |id: &&String| self.0.iter().all(|(focus, _)| focus.source != **id);
        let others: Vec<&String> = sources.held.keys().filter(calm).collect();
        let mut parts: Vec<CallRequest> = self.0.iter().map(|(focus, _)| focus.narrow(&request)).collect();
        if !others.is_empty() {
            arguments.insert("sources".into(), json!(others));
            parts.push(call(&request.tool, &Value::Object(arguments)));
        }
        parts
    }

    /// The call with the arguments of the search that it is a part of.
    pub(crate) fn whole(&self, done: &Done) -> Done {
        let mut done = done.clone();
        if let Some(mut arguments) = arguments_of(&done.call.arguments) {
            let source = arguments.remove("sources");
            let focus = self.0.iter().map(|(focus, _)| focus).find(|focus| source == Some(json!([focus.source])));
            if let Some((focus, conditions)) = focus.zip(arguments.get_mut("where").and_then(Value::as_array_mut)) {
                conditions.retain(|known| *known != focus.condition());
                if conditions.is_empty() {
                    arguments.remove("where");
                }
            }
            done.call.arguments = call(&done.call.tool, &Value::Object(arguments)).arguments;
        }
        done
    }
}

fn arguments_of(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

/// True if a call counts after a new beginning in the records of the subject.
pub(crate) fn stays(done: &Done, turn: Option<u32>) -> bool {
    matches!(done.call.tool.as_str(), "list_sources" | "get_record") || turn.is_some_and(|turn| turn > super::COUNT)
}
