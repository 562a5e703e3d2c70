//! What the result of one call shows.

use serde_json::Value;

use super::*;

impl Exhibit {
    /// The result comes from an MCP server, so nothing that it says about itself is believed.
    pub(super) fn served(&self) -> bool {
        tool::server_of(&self.call.tool).is_some()
    }

    /// Checks that a query that found nothing covers the window, and that the claim is about what it searched for.
    pub(super) fn nothing(
        &self,
        (finding, alerted): (&FindingDraft, Option<&str>),
        window: [Option<Timestamp>; 2],
        times: &mut Vec<CitedTime>,
    ) -> Result<(), String> {
        if self.call.tool == SQL {
            return Err(
                "code cannot know what a query in SQL would have found: cite a `search` or a `count_by`".to_owned()
            );
        }
        // A search with a limit of 0 returns no records even if it found some, so check the total.
        let total = self.json.as_ref().and_then(|json| json.get("total")).and_then(Value::as_u64);
        if let Some(total) = total.filter(|total| *total > 0 && !self.served()) {
            return Err(format!("the citation says that nothing is there, the query found {total} records"));
        }
        if self.served() {
            served::window(self, window, times)?;
        } else {
            covers(self, window[0], window[1])?;
            let edges = window.into_iter().flatten();
            times.extend(edges.map(|at| CitedTime { at, basis: TimeBasis::Record }));
        }
        asked_for(self, &finding.claim)?;
        coverage::covered(self, finding, alerted, window)
    }

    /// Adds what a number is about: the query, the edges of its window, and the group that the number is of.
    pub(super) fn counted(
        &self,
        at: &Locator,
        corpus: &mut Corpus,
        times: &mut Vec<CitedTime>,
        check: &mut CitationCheck,
    ) -> Result<(), String> {
        queried(self, corpus, check)?;
        if self.served() {
            served::asked(self, times);
            return Ok(());
        }
        let edges = ["from", "to"].into_iter().filter_map(|key| edge(self, key));
        times.extend(edges.map(|at| CitedTime { at, basis: TimeBasis::Aggregation }));
        if let Locator::Pointer(pointer) = at
            && let Some(group) = self.group(pointer)
        {
            cite::group(group, corpus, times, check);
        }
        Ok(())
    }

    /// True if the quotation is the whole value of a field of one record. An item of a list that an MCP server returned
    /// is a record.
    pub(super) fn is_whole_value(&self, at: &Locator, quote: &str) -> bool {
        let (Locator::Pointer(pointer), Some(json)) = (at, &self.json) else { return false };
        let text = match json.pointer(pointer) {
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
            _ => return false,
        };
        let in_record = if self.served() { served::in_item(json, pointer) } else { self.record(pointer).is_some() };
        in_record && !quote.trim().is_empty() && text == quote.trim()
    }

    /// The group of a `count_by` around `pointer`.
    pub(super) fn group(&self, pointer: &str) -> Option<&Value> {
        let number = pointer.strip_prefix("/groups/").filter(|_| self.call.tool == COUNT_BY)?.split('/').next()?;
        self.json.as_ref()?.pointer(&format!("/groups/{number}"))
    }

    /// Rejects a citation of a call that only read the result of another call.
    pub(super) fn looked_into(&self) -> Option<String> {
        let tool = tool::RESULT_TOOLS.contains(&self.call.tool.as_str()).then_some(&self.call.tool)?;
        let arguments: Option<Value> = serde_json::from_str(&self.call.arguments).ok();
        let text = |key: &str| arguments.as_ref().and_then(|a| a.get(key)?.as_str());
        let call = text("call").map_or_else(|| "the call".to_owned(), |call| casebook_protocol::one_line(call, 80));
        let at = text("pointer")
            .map_or_else(|| "the place that it names".to_owned(), |p| casebook_protocol::one_line(p, 80));
        Some(format!("{tool} looked into another result: cite the call itself, {call} at {at}"))
    }

    /// For a list that an MCP server returned, its length.
    pub(super) fn number(&self, found: &Value) -> Option<u64> {
        if self.served() { served::number(found) } else { found.as_u64() }
    }

    /// The value for a message, cut if an MCP server chose its length.
    pub(super) fn shown(&self, found: &Value) -> String {
        match found {
            Value::Array(items) if self.served() => format!("{} items", items.len()),
            other if self.served() => casebook_protocol::one_line(&other.to_string(), 80),
            other => other.to_string(),
        }
    }

    pub(super) fn as_recorded(&self) -> bool {
        self.served() && !self.repeatable
    }

    pub(super) fn computed(&self, value: impl std::fmt::Display) -> String {
        if self.as_recorded() { format!("{value}, as recorded") } else { format!("{value}, recomputed") }
    }

    pub(super) fn searched(&self) -> String {
        if self.as_recorded() { "nothing found, as recorded" } else { "nothing found, searched again" }.to_owned()
    }

    /// False if the result says that the number at `at` is not the whole number. What the object around it says goes
    /// before what is said of the total.
    pub(super) fn is_exact(&self, at: &Locator) -> bool {
        let Some(json) = &self.json else { return true };
        let around = match at {
            Locator::Pointer(pointer) => pointer.rsplit_once('/').and_then(|(around, _)| json.pointer(around)),
            _ => None,
        };
        let own = around.and_then(|object| object.get("count_is_exact"));
        own.or_else(|| json.get("total_is_exact")).and_then(Value::as_bool) != Some(false)
    }

    pub(super) fn value(&self, at: &Locator) -> Result<&Value, String> {
        match at {
            Locator::Pointer(pointer) => {
                let json = self.json.as_ref().ok_or("the result is not JSON: cite a line of it")?;
                json.pointer(pointer).ok_or_else(|| format!("there is nothing at {pointer:?} in the result"))
            }
            Locator::Line(_) => Err("a number is cited by JSON pointer".to_owned()),
        }
    }

    /// The records of a query that returned all that it found.
    pub(super) fn rows(&self) -> Vec<RecordRef> {
        let json = self.json.as_ref().filter(|_| !self.served());
        let Some(records) = json.and_then(|json| json.get("records")?.as_array()) else { return Vec::new() };
        let total = json.and_then(|json| json.get("total")?.as_u64());
        if total != Some(records.len() as u64) {
            return Vec::new();
        }
        let text = |record: &Value, key: &str| record.get(key).and_then(Value::as_str).map(str::to_owned);
        let row = |record: &Value| {
            Some(RecordRef {
                source: text(record, "source")?,
                file: text(record, "file")?,
                line: record.get("line")?.as_u64()?,
            })
        };
        records.iter().filter_map(row).collect()
    }

    /// The innermost object around `pointer` that has a file and a line, and its pointer. Of `sql` it is a row that the
    /// tool found to be one record, since a query can name its columns as it likes.
    pub(super) fn record(&self, pointer: &str) -> Option<(String, &Value)> {
        let json = self.json.as_ref().filter(|_| !self.served())?;
        if self.call.tool == SQL {
            let number = pointer.strip_prefix("/rows/")?.split('/').next()?;
            let path = format!("/rows/{number}");
            let row = json.pointer(&path).filter(|row| row.get(OF_RECORD) == Some(&Value::Bool(true)))?;
            return Some((path, row));
        }
        let mut path = pointer;
        loop {
            let value = json.pointer(path)?;
            if value.get("file").is_some_and(Value::is_string) && value.get("line").is_some_and(Value::is_u64) {
                return Some((path.to_owned(), value));
            }
            path = path.get(..path.rfind('/')?)?;
        }
    }
}
