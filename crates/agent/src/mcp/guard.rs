//! Decides which tools of a server are offered, and which arguments reach the server.

use casebook_protocol::hash::canonical_json;
use casebook_protocol::{ToolSpec, offered_name, one_line};
use serde_json::{Map, Value};

use super::Listed;
use super::pattern::any;
use super::pins::{Pinned, fingerprint};
use super::policy::{Kind, ServerPolicy};
use crate::json_schema::JsonSchema;
use crate::model::data::{head, visible};

mod cost;

/// The longest description of an offered tool, in bytes. A longer one is cut.
const DESCRIPTION: usize = 4096;
/// The most faults of a call's arguments in an error.
const FAULTS: usize = 5;

#[derive(Debug)]
pub struct Judged {
    pub listed: Listed,
    pub fingerprint: String,
    pub pinned: Pinned,
    /// It may change something, and the policy allows that.
    pub writes: bool,
    pub standing: Result<Offer, String>,
}

#[derive(Debug)]
pub struct Offer {
    pub spec: ToolSpec,
    fixed: Map<String, Value>,
    /// The server's own schema.
    schema: JsonSchema,
}

pub fn judge(server: &str, policy: &ServerPolicy, listed: Listed, pinned: Pinned) -> Judged {
    let evidence = policy.kind == Kind::Evidence;
    let known_to_read = evidence || any(&policy.read_only, &listed.name);
    let writes = !known_to_read && any(&policy.writes, &listed.name);
    let reads = known_to_read || listed.read_only == Some(true);
    let standing = match pinned {
        Pinned::Changed => Err(format!(
            "it has changed since it was pinned; check it, then run `casebook tools --confirm {server}/{}`",
            one_line(&listed.name, 80)
        )),
        Pinned::New => Err(format!(
            "it is new since its server was pinned; check it, then run `casebook tools --confirm {server}/{}`",
            one_line(&listed.name, 80)
        )),
        Pinned::Same | Pinned::Never if !reads && !writes => Err(format!(
            "expected a tool that only reads; list it in tools.yaml under servers.{server}.read_only if it does, or \
             under `writes` if it may change something"
        )),
        Pinned::Same | Pinned::Never => offer(server, policy, &listed),
    };
    Judged { fingerprint: fingerprint(&listed), listed, pinned, writes, standing }
}

fn offer(server: &str, policy: &ServerPolicy, listed: &Listed) -> Result<Offer, String> {
    let fixed = fixed(policy, &listed.name);
    cost::bounded(&listed.schema)?;
    let evidence = policy.kind == Kind::Evidence;
    let mut held_to = listed.schema.clone();
    if let (true, Some(map)) = (evidence, held_to.as_object_mut()) {
        // Our own tools know the arguments by other names as well, and say what an unknown one is.
        map.remove("additionalProperties");
    }
    let schema = JsonSchema::compile(&held_to).map_err(|e| format!("its schema cannot be used: {e}"))?;
    let shown = without(&listed.schema, &fixed)?;
    let input_schema = if evidence { shown.to_string() } else { seen(&shown) };
    let description = if evidence {
        listed.description.clone()
    } else {
        let shown = visible(&listed.description);
        let cut = head(&shown, DESCRIPTION);
        let more = if cut.len() < shown.len() { "…" } else { "" };
        // A JSON text cannot imitate a line of ours.
        let quoted = Value::from(format!("{cut}{more}"));
        format!("A tool of server {server}.{} In its own words: {quoted}", words(&fixed))
    };
    let name = if evidence { listed.name.clone() } else { offered_name(server, &listed.name) };
    // Code may call a repeatable tool again to check a citation, so it must not change anything.
    let repeatable = evidence || (any(&policy.repeatable, &listed.name) && !any(&policy.writes, &listed.name));
    Ok(Offer { spec: ToolSpec { name, description, input_schema, repeatable }, fixed, schema })
}

/// The arguments that the policy fixes for `tool`. Later patterns override earlier ones.
fn fixed(policy: &ServerPolicy, tool: &str) -> Map<String, Value> {
    let all = policy.scope.iter().filter(|(pattern, _)| pattern.matches(tool));
    all.flat_map(|(_, arguments)| arguments.clone()).collect()
}

fn words(fixed: &Map<String, Value>) -> String {
    if fixed.is_empty() {
        return String::new();
    }
    let all: Vec<String> =
        fixed.iter().map(|(name, value)| format!("{name} = {}", visible(&value.to_string()))).collect();
    format!(" Fixed by configuration, for every call: {}.", all.join(", "))
}

/// The schema as models see it, with hidden characters made visible.
fn seen(schema: &Value) -> String {
    fn all(value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(visible(text)),
            Value::Array(items) => Value::Array(items.iter().map(all).collect()),
            Value::Object(map) => Value::Object(map.iter().map(|(k, v)| (visible(k), all(v))).collect()),
            other => other.clone(),
        }
    }
    // Sorted keys, so that a server may list its arguments in any order.
    canonical_json(&all(schema))
}

fn without(schema: &Value, fixed: &Map<String, Value>) -> Result<Value, String> {
    let mut shown = schema.clone();
    let object = shown.as_object_mut().filter(|o| o.get("type").is_none_or(|t| t == "object"));
    let object = object.ok_or_else(|| "its schema is not that of an object".to_owned())?;
    for name in fixed.keys() {
        let properties = object.get_mut("properties").and_then(Value::as_object_mut);
        let takes = properties.is_some_and(|all| {
            let before = all.len();
            // The order is kept, since models read the arguments in it.
            all.retain(|key, _| key != name);
            all.len() < before
        });
        if !takes {
            return Err(format!(
                "the scope in tools.yaml fixes the argument {name:?}, which it does not have; limit the scope to tools \
                 that have this argument"
            ));
        }
        if let Some(required) = object.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|one| one.as_str() != Some(name));
        }
    }
    Ok(shown)
}

impl Offer {
    /// The recorded arguments of a call: those of the caller and the fixed ones.
    pub fn sent(&self, asked: &str) -> String {
        match serde_json::from_str::<Value>(asked) {
            // A refused call is recorded as it was made.
            Ok(Value::Object(mut arguments)) if !self.fixed.is_empty() && self.arguments(asked, None).is_ok() => {
                arguments.extend(self.fixed.clone());
                canonical_json(&Value::Object(arguments))
            }
            _ => asked.to_owned(),
        }
    }

    /// Checks and completes the arguments of a call. `held` are fixed for this caller.
    pub fn arguments(&self, asked: &str, held: Option<&Map<String, Value>>) -> Result<Map<String, Value>, String> {
        let name = &self.spec.name;
        let asked = if asked.trim().is_empty() { "{}" } else { asked };
        let value: Value =
            serde_json::from_str(asked).map_err(|e| format!("expected the arguments of {name} as JSON: {e}"))?;
        let Value::Object(mut arguments) = value else {
            return Err(format!("expected the arguments of {name} as a JSON object, such as {{}}"));
        };
        // A repeated call, which checks a citation, has the recorded arguments, fixed ones included.
        let fixed = |key: &String, value: &Value| {
            self.fixed.get(key).is_some_and(|fixed| fixed != value) || held.is_some_and(|held| held.contains_key(key))
        };
        if let Some((taken, _)) = arguments.iter().find(|(key, value)| fixed(key, value)) {
            return Err(format!("{name}: the argument {taken:?} is fixed by configuration; leave it out"));
        }
        arguments.extend(held.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
        arguments.extend(self.fixed.clone());
        let arguments = Value::Object(arguments);
        let faults = self.schema.faults(&arguments, FAULTS);
        let faults: Vec<String> =
            faults.into_iter().map(|(at, what)| if at.is_empty() { what } else { format!("{at}: {what}") }).collect();
        match (faults.is_empty(), arguments) {
            (true, Value::Object(arguments)) => Ok(arguments),
            (_, _) => Err(format!("{name} was not called, its arguments do not fit its schema: {}", faults.join("; "))),
        }
    }
}

/// The schema in `text` without the arguments in `held`; unchanged if it does not have them.
pub fn hide(text: &str, held: &Map<String, Value>) -> String {
    let shown = serde_json::from_str::<Value>(text).ok().and_then(|schema| without(&schema, held).ok());
    shown.map_or_else(|| text.to_owned(), |schema| schema.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::pattern::Pattern;
    use super::*;

    fn listed(read_only: Option<bool>) -> Listed {
        Listed {
            name: "search".into(),
            description: "Finds\u{202e} rows".into(),
            schema: json!({"type": "object", "required": ["tenant", "text"], "additionalProperties": false,
                "properties": {"tenant": {"type": "string"}, "text": {"type": "string"}, "limit": {"type": "integer", "maximum": 5}}}),
            read_only,
        }
    }

    fn patterns(all: &[&str]) -> Vec<Pattern> {
        all.iter().map(|p| Pattern::new(*p)).collect()
    }

    fn scoped() -> ServerPolicy {
        let scope = json!({"tenant": "acme"}).as_object().unwrap().clone();
        ServerPolicy { scope: [(Pattern::new("sea*"), scope)].into(), ..ServerPolicy::default() }
    }

    #[test]
    fn nothing_is_offered_that_is_not_known_to_read_or_allowed_to_write() {
        let check = |read_only: Option<bool>, reads: &[&str], writes: &[&str], expect: (bool, bool)| {
            let policy =
                ServerPolicy { read_only: patterns(reads), writes: patterns(writes), ..ServerPolicy::default() };
            let judged = judge("db", &policy, listed(read_only), Pinned::Same);
            assert_eq!((judged.standing.is_ok(), judged.writes), expect, "{read_only:?} {reads:?} {writes:?}");
        };
        check(None, &[], &[], (false, false));
        check(Some(false), &[], &[], (false, false));
        check(Some(true), &[], &[], (true, false));
        check(None, &["sea*"], &[], (true, false));
        check(None, &["other"], &[], (false, false));
        check(Some(false), &[], &["search"], (true, true));
    }

    #[test]
    fn what_has_changed_or_is_new_is_held_back() {
        for (pinned, expect) in
            [(Pinned::Same, true), (Pinned::Never, true), (Pinned::Changed, false), (Pinned::New, false)]
        {
            let judged = judge("db", &ServerPolicy::default(), listed(Some(true)), pinned);
            assert_eq!(judged.standing.is_ok(), expect, "{pinned:?}");
            if let Err(why) = judged.standing {
                assert!(why.contains("casebook tools --confirm db/search"), "{why}");
            }
        }
    }

    #[test]
    fn a_caller_neither_sees_nor_sets_what_is_fixed() {
        let offer = judge("db", &scoped(), listed(Some(true)), Pinned::Same).standing.unwrap();
        assert_eq!(offer.spec.name, "db__search");
        assert_eq!(
            offer.spec.description,
            "A tool of server db. Fixed by configuration, for every call: tenant = \"acme\". In its own words: \"Finds\\\\u{202e} rows\""
        );
        let schema: Value = serde_json::from_str(&offer.spec.input_schema).unwrap();
        assert_eq!(schema["required"], json!(["text"]));
        assert!(schema["properties"].get("tenant").is_none());
        let sent = offer.arguments(r#"{"text":"x"}"#, None).unwrap();
        assert_eq!(Value::Object(sent), json!({"tenant": "acme", "text": "x"}));
        let refused = offer.arguments(r#"{"text":"x","tenant":"evil"}"#, None).unwrap_err();
        assert_eq!(refused, "db__search: the argument \"tenant\" is fixed by configuration; leave it out");
        let recorded = offer.sent(r#"{"text":"x"}"#);
        assert_eq!(recorded, r#"{"tenant":"acme","text":"x"}"#);
        assert!(offer.arguments(&recorded, None).is_ok(), "it can be made again as it is recorded");
        let evil = r#"{"tenant":"evil","text":"x"}"#;
        assert_eq!(offer.sent(evil), evil, "what is refused is recorded as it was asked");
    }

    #[test]
    fn a_scope_that_cannot_hold_holds_the_tool_back() {
        let scope = json!({"window": "1h"}).as_object().unwrap().clone();
        let policy = ServerPolicy { scope: [(Pattern::new("*"), scope)].into(), ..ServerPolicy::default() };
        let why = judge("db", &policy, listed(Some(true)), Pinned::Same).standing.unwrap_err();
        assert!(why.contains("fixes the argument \"window\", which it does not have"), "{why}");
    }

    #[test]
    fn a_schema_that_cannot_be_checked_in_bounded_time_holds_its_tool_back() {
        let held = |schema: Value| {
            judge("db", &ServerPolicy::default(), Listed { schema, ..listed(Some(true)) }, Pinned::Same).standing
        };
        let doubled: Map<String, Value> = (0..60)
            .map(|n| {
                let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
                (format!("d{n}"), json!({"allOf": [next, next]}))
            })
            .chain([("d60".to_owned(), json!({"type": "object"}))])
            .collect();
        let bomb = json!({"type": "object", "allOf": [{"$ref": "#/$defs/d0"}], "$defs": doubled});
        assert!(held(bomb).unwrap_err().contains("bounded time"));
        let circle = json!({"type": "object", "properties": {"a": {"$ref": "#"}}});
        assert!(held(circle).unwrap_err().contains("refers to itself"));
        let large = json!({"type": "object", "description": "x".repeat(cost::SCHEMA)});
        assert!(held(large).unwrap_err().contains("bytes, more than"));
        let plain = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/s"}, "b": {"$ref": "#/$defs/s"}},
            "$defs": {"s": {"type": "string"}}});
        assert!(held(plain).is_ok());
    }

    #[test]
    fn what_may_write_is_never_called_again_by_code() {
        let policy =
            ServerPolicy { writes: patterns(&["search"]), repeatable: patterns(&["*"]), ..ServerPolicy::default() };
        let offer = judge("db", &policy, listed(None), Pinned::Same).standing.unwrap();
        assert!(!offer.spec.repeatable);
    }

    #[test]
    fn arguments_are_checked_before_the_call() {
        let offer = judge("db", &scoped(), listed(Some(true)), Pinned::Same).standing.unwrap();
        let refused = |asked: &str, part: &str| {
            let why = offer.arguments(asked, None).unwrap_err();
            assert!(why.contains(part), "{asked}: {why}");
        };
        refused("{}", "missing properties 'text'");
        refused(r#"{"text":7}"#, "/text: want string, but got number");
        refused(r#"{"text":"x","limit":9}"#, "/limit: must be <=5, but got 9");
        refused(r#"{"text":"x","where":1}"#, "additionalProperties 'where' not allowed");
        refused("[]", "as a JSON object");
        refused("{", "as JSON");
    }

    #[test]
    fn the_tools_over_the_evidence_are_as_they_are_in_process() {
        let policy = ServerPolicy { kind: Kind::Evidence, ..ServerPolicy::default() };
        let offer = judge("evidence", &policy, listed(None), Pinned::Same).standing.unwrap();
        assert_eq!(offer.spec.name, "search");
        assert_eq!(offer.spec.description, "Finds\u{202e} rows");
        assert!(offer.spec.repeatable);
    }
}
