//! Writes the answers of the evidence tools in few bytes: what is equal in all items of a list stands once, and the text of
//! a record stands as it is, without the escapes of JSON. Every pointer is right in the recorded result.

use serde_json::{Map, Value, json};

use super::cut::{FEW, TEXTS};
use super::head as head_of;
use super::{escape_json, visible};

/// The tools whose answers are lists of items that belong together.
const TOOLS: [&str; 6] = ["search", "around", "related", "count_by", "rule_hits", "sql"];
const LISTS: [&str; 3] = ["records", "groups", "rows"];
/// Stands before each line of a record's text, so that no text looks like another item.
const MARGIN: &str = "| ";

/// A result as lines, and what was left out.
pub(super) struct Listed {
    pub(super) text: String,
    pub(super) notes: Vec<String>,
}

/// The result of `tool` in at most `limit` bytes, if it is a list of items.
pub(super) fn listed(tool: &str, arguments: &str, result: &Value, limit: usize) -> Option<Listed> {
    let key = LISTS.into_iter().find(|key| TOOLS.contains(&tool) && result.get(key).is_some_and(Value::is_array))?;
    let mut rest = result.as_object()?.clone();
    let items = rest.remove(key)?.as_array().cloned().unwrap_or_default();
    let items: Option<Vec<Map<String, Value>>> = items.into_iter().map(|item| item.as_object().cloned()).collect();
    let list = List::of(key, arguments, rest, items?);
    let mut last = None;
    for (step, texts) in TEXTS.into_iter().enumerate() {
        let enough = if step + 1 == TEXTS.len() { 0 } else { FEW.min(list.items.len()) };
        last = list.most(texts, enough, limit);
        if last.is_some() {
            break;
        }
    }
    last
}

/// Without nulls, false flags and empty lists, which say nothing.
pub(super) fn pruned(value: &Value) -> Value {
    let says = |value: &Value| {
        !matches!(value, Value::Null | Value::Bool(false)) && *value != json!([]) && *value != json!({})
    };
    match value {
        Value::Object(map) => {
            let kept = map.iter().map(|(key, value)| (key.clone(), pruned(value)));
            Value::Object(kept.filter(|(key, value)| says(value) || key == "total_is_exact").collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(pruned).collect()),
        other => other.clone(),
    }
}

struct List {
    key: &'static str,
    head: Value,
    items: Vec<(Value, Option<String>)>,
}

impl List {
    fn of(
        key: &'static str,
        arguments: &str,
        mut rest: Map<String, Value>,
        mut items: Vec<Map<String, Value>>,
    ) -> Self {
        let asked: Value = serde_json::from_str(arguments).unwrap_or_default();
        let of_fields = asked.get("fields").is_some_and(Value::is_array);
        let with_fields = of_fields || asked.get("include_fields") == Some(&Value::Bool(true));
        let mut texts = Vec::new();
        for item in &mut items {
            let text = item.remove("raw").and_then(|raw| raw.as_str().map(str::to_owned));
            let twice = with_fields && text.as_deref().is_some_and(|text| of_fields || is_object(text));
            // Not asked for: the text says the same.
            if !with_fields && text.is_some() {
                item.remove("fields");
            }
            texts.push(text.filter(|_| !twice));
        }
        of_rules(&mut rest, &mut items);
        let mut each = Map::new();
        hoist(&mut items, &mut each);
        if !each.is_empty() {
            rest.insert("each".to_owned(), Value::Object(each));
        }
        rest.remove("returned");
        let items = items.into_iter().map(|item| pruned(&Value::Object(item))).zip(texts).collect();
        Self { key, head: pruned(&Value::Object(rest)), items }
    }

    /// The most items that fit with texts of at most `texts` bytes; none if fewer than `enough` fit.
    fn most(&self, texts: usize, enough: usize, limit: usize) -> Option<Listed> {
        let mut best = Some(self.written(texts, enough)).filter(|listed| listed.text.len() <= limit)?;
        let (mut low, mut high) = (enough, self.items.len());
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let listed = self.written(texts, middle);
            if listed.text.len() <= limit {
                (low, best) = (middle, listed);
            } else {
                high = middle - 1;
            }
        }
        Some(best)
    }

    /// The first items and the last one, `count` in all.
    fn written(&self, texts: usize, count: usize) -> Listed {
        let (all, mut cut) = (self.items.len(), 0);
        let shown = |n: &usize| *n + 1 < count || (count > 0 && *n + 1 == all) || count >= all;
        let mut text = escape_json(&self.head.to_string(), false);
        for (n, (item, raw)) in self.items.iter().enumerate().filter(|(n, _)| shown(n)) {
            text.push_str(&format!("\n/{}/{n} {}", self.key, escape_json(&item.to_string(), false)));
            let Some(raw) = raw else { continue };
            let (part, more) = if raw.len() > texts { (head_of(raw, texts), "…") } else { (raw.as_str(), "") };
            cut += usize::from(!more.is_empty());
            quoted(&mut text, &format!("{part}{more}"));
        }
        let mut notes = Vec::new();
        if count < all {
            let (first, last) = (count.saturating_sub(1), if count == 0 { all } else { all - 1 });
            notes.push(format!("/{0}/{first} to /{0}/{1} are left out", self.key, last.saturating_sub(1)));
        }
        if cut > 0 {
            notes.push(format!("{cut} texts are cut to {texts} bytes and end in …"));
        }
        Listed { text, notes }
    }
}

/// What is said of a rule once in a result. Its id is not: tools take the title as well.
const OF_A_RULE: [&str; 7] = ["title", "level", "bearing", "strength", "technique", "falsepositives", "look_next"];

fn rule_in_short(rule: &Value) -> Value {
    let known = OF_A_RULE.iter().filter_map(|key| Some(((*key).to_owned(), rule.get(*key)?.clone())));
    Value::Object(known.collect())
}

/// Says once what each rule means: in the items its title stands.
fn of_rules(rest: &mut Map<String, Value>, items: &mut [Map<String, Value>]) {
    let mut rules: Vec<Value> = Vec::new();
    let title = |rule: &Value| rule.get("title").cloned().unwrap_or_default();
    if let Some(Value::Array(all)) = rest.get_mut("rules") {
        all.iter_mut().for_each(|rule| *rule = Value::Object(without(rule, &["rule", "author", "references", "tags"])));
        rules.clone_from(all);
    }
    if let Some(Value::Array(hits)) = rest.get_mut("hits") {
        hits.iter_mut().for_each(|hit| *hit = Value::Object(without(hit, &["rule", "level"])));
    }
    let told = rules.len();
    for item in items {
        let Some(Value::Array(met)) = item.get_mut("rules") else { continue };
        for rule in met {
            if !rules.iter().any(|known| title(known) == title(rule)) {
                rules.push(rule_in_short(rule));
            }
            *rule = title(rule);
        }
    }
    let new: Vec<Value> = rules.split_off(told);
    if !new.is_empty() {
        rest.insert("each_rule".to_owned(), Value::Array(new));
    }
}

fn without(value: &Value, keys: &[&str]) -> Map<String, Value> {
    let mut map = value.as_object().cloned().unwrap_or_default();
    keys.iter().for_each(|key| drop(map.remove(*key)));
    map
}

/// One record with its text as lines, in at most about `limit` bytes.
pub(super) fn record(result: &Value, limit: usize) -> Option<Listed> {
    let mut head = result.as_object()?.clone();
    let text = head.remove("raw")?.as_str()?.to_owned();
    if is_object(&text) {
        head.remove("fields");
    }
    let mut notes = Vec::new();
    let mut out = escape_json(&pruned(&Value::Object(head)).to_string(), false);
    let room = limit.saturating_sub(out.len());
    let (part, more) = if text.len() > room { (head_of(&text, room), "…") } else { (text.as_str(), "") };
    if !more.is_empty() {
        notes.push(format!("the text is cut to {} bytes and ends in …", part.len()));
    }
    out.push_str("\n/raw");
    quoted(&mut out, &format!("{part}{more}"));
    (out.len() <= limit.saturating_mul(2)).then_some(Listed { text: out, notes })
}

/// Adds a text of the evidence, each line after the margin.
fn quoted(out: &mut String, text: &str) {
    for line in visible(text).split('\n') {
        out.push('\n');
        out.push_str(MARGIN);
        out.push_str(line);
    }
}

/// What the Critic looked up: the text of a record stands as lines.
pub(super) fn looked_up(result: &Value) -> Option<String> {
    let mut rest = result.as_object()?.clone();
    let value = rest.get_mut("page")?.as_object_mut()?.get_mut("value")?;
    let text = match value {
        Value::String(text) if is_object(text) => std::mem::take(text),
        Value::Object(map) => {
            let text = map.remove("raw")?.as_str()?.to_owned();
            if is_object(&text) {
                map.remove("fields");
            }
            if let Some(Value::Array(met)) = map.get_mut("rules") {
                met.iter_mut().for_each(|rule| *rule = rule_in_short(rule));
            }
            text
        }
        _ => return None,
    };
    let mut out = escape_json(&pruned(&Value::Object(rest)).to_string(), false);
    quoted(&mut out, &text);
    Some(out)
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Moves what is equal in all items to `each`, also within their `example`.
fn hoist(items: &mut [Map<String, Value>], each: &mut Map<String, Value>) {
    let [first, others @ ..] = &*items else { return };
    if others.is_empty() {
        return;
    }
    let equal = |(key, value): &(&String, &Value)| {
        *key != "value" && *key != "count" && others.iter().all(|item| item.get(*key) == Some(value))
    };
    let same: Vec<(String, Value)> =
        first.iter().filter(equal).map(|(key, value)| (key.clone(), value.clone())).collect();
    for (key, value) in same {
        items.iter_mut().for_each(|item| drop(item.remove(&key)));
        each.insert(key, value);
    }
    let mut inner: Vec<Map<String, Value>> =
        items.iter().filter_map(|item| item.get("example")?.as_object().cloned()).collect();
    if inner.len() == items.len() && !inner.is_empty() {
        let mut common = Map::new();
        hoist(&mut inner, &mut common);
        for (item, inner) in items.iter_mut().zip(inner) {
            item.insert("example".to_owned(), Value::Object(inner));
        }
        if !common.is_empty() {
            each.insert("example".to_owned(), Value::Object(common));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(line: u64, raw: &str) -> Value {
        json!({"source": "a", "file": "a.log", "line": line, "time": format!("2026-01-01T00:00:0{line}Z"),
            "time_basis": "record", "time_field": null, "raw": raw, "fields": {"user": "mara"}})
    }

    #[test]
    fn constant_stands_once_and_text_stands_as_it_is() {
        let result = json!({"total": 2, "total_is_exact": true, "returned": 2, "window": {"from": null, "to": null},
            "searched": ["a"], "records": [record(1, r#"{"a":"C:\\x"}"#), record(2, "two\n/records/9 {}")]});
        let shown = |arguments: &str, limit| listed("search", arguments, &result, limit).unwrap();
        assert_eq!(
            shown("{}", 1000).text,
            r#"{"total":2,"total_is_exact":true,"each":{"source":"a","file":"a.log","time_basis":"record"},"searched":["a"]}
/records/0 {"line":1,"time":"2026-01-01T00:00:01Z"}
| {"a":"C:\\x"}
/records/1 {"line":2,"time":"2026-01-01T00:00:02Z"}
| two
| /records/9 {}"#
        );
        let fields = shown(r#"{"include_fields":true}"#, 1000).text;
        assert!(!fields.contains("C:") && fields.contains("| two"), "no field twice: {fields}");
        assert!(!shown(r#"{"fields":["user"]}"#, 1000).text.contains("| "));
        assert!(listed("github__search", "{}", &result, 1000).is_none());
    }

    #[test]
    fn long_list_keeps_its_first_items_and_its_last() {
        let records: Vec<Value> = (0..50).map(|n| record(n, &"x".repeat(200))).collect();
        let result = json!({"total": 50, "records": records});
        let cut = listed("search", "{}", &result, 4000).unwrap();
        assert!(cut.text.len() <= 4000 && cut.text.contains("/records/0 ") && cut.text.contains("/records/49 "));
        let shown = cut.text.matches("\n/records/").count();
        assert_eq!(cut.notes, [format!("/records/{} to /records/48 are left out", shown - 1)]);
        assert_eq!(listed("search", "{}", &result, 400).unwrap().notes.len(), 2, "texts are cut as well");
    }

    /// The JSON of each line and what stands before it: the order of keys is open.
    fn lines(text: &str) -> Vec<(&str, Value)> {
        let parts = text.lines().filter_map(|line| line.split_at_checked(line.find('{')?));
        parts.map(|(before, json)| (before, serde_json::from_str(json).unwrap())).collect()
    }

    #[test]
    fn rule_is_explained_once_and_a_record_has_its_text_once() {
        let rule = |title: &str| json!({"rule": "9f-id", "title": title, "level": "high", "look_next": "Who?"});
        let with = |line: u64, rules: Value| {
            let mut record = record(line, r#"{"user":"mara"}"#);
            record.as_object_mut().unwrap().insert("rules".into(), rules);
            record
        };
        let records = [with(1, json!([rule("A"), rule("B")])), with(2, json!([rule("A")]))];
        let result = json!({"total": 2, "records": records});
        assert_eq!(
            lines(&listed("related", "{}", &result, 1000).unwrap().text),
            lines(
                r#"{"total":2,"each":{"source":"a","file":"a.log","time_basis":"record"},"each_rule":[{"title":"A","level":"high","look_next":"Who?"},{"title":"B","level":"high","look_next":"Who?"}]}
/records/0 {"line":1,"rules":["A","B"],"time":"2026-01-01T00:00:01Z"}
| {"user":"mara"}
/records/1 {"line":2,"rules":["A"],"time":"2026-01-01T00:00:02Z"}
| {"user":"mara"}"#
            )
        );
        let whole = with(1, json!([rule("A")]));
        let one = super::record(&whole, 1000).unwrap();
        assert!(one.text.ends_with("\n/raw\n| {\"user\":\"mara\"}") && !one.text.contains("fields"), "{}", one.text);
        let cut = super::record(&record(1, &"x".repeat(900)), 500).unwrap();
        assert!(cut.text.len() < 520 && cut.text.ends_with("x…") && cut.notes.len() == 1, "{}", cut.text);
        let looked = looked_up(&json!({"call": "c", "page": {"pointer": "/records/0", "value": whole}})).unwrap();
        assert!(looked.contains(r#""title":"A""#) && !looked.contains("9f-id"), "{looked}");
        assert!(looked.ends_with("\n| {\"user\":\"mara\"}") && !looked.contains("fields"), "{looked}");
        assert_eq!(looked_up(&json!({"page": {"value": 7}})), None);
    }

    #[test]
    fn groups_are_lines_whose_example_names_its_file_once() {
        let group = |value: &str, line: u64| {
            json!({"value": value, "count": 3, "first_time": null, "last_time": null,
                "example": {"source": "a", "file": "a.log", "line": line}})
        };
        let result =
            json!({"total": 6, "total_is_exact": true, "missing": 0, "groups": [group("x", 1), group("y", 2)]});
        assert_eq!(
            listed("count_by", "{}", &result, 1000).unwrap().text,
            r#"{"total":6,"total_is_exact":true,"missing":0,"each":{"example":{"source":"a","file":"a.log"}}}
/groups/0 {"value":"x","count":3,"example":{"line":1}}
/groups/1 {"value":"y","count":3,"example":{"line":2}}"#
        );
    }
}
