//! Read-only SQL over the visible records.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::functions::FunctionFlags;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Statement};
use serde_json::{Map, Value, json};

use super::EvidenceTools;
use super::args::Args;
use super::find::put;
use super::shown::{Shown, Wanted};
use super::table::{self, Records};
use crate::catalog::kept;
use crate::profile::cut;
use crate::query::values;

pub(super) const SQL: &[&str] = &["query", "limit"];

/// The mark of a row that is one record. The check of citations relies on it.
const OF_RECORD: &str = "of_record";
/// Later rows get no mark.
const MARKED_MAX: usize = 500;
const TIME_MAX: Duration = Duration::from_secs(5);
const BYTES_MAX: usize = 900 << 10;
const CELL_MAX: usize = 16 << 10;

impl EvidenceTools {
    pub(super) fn sql(&self, args: &Args) -> Result<Value, String> {
        let query = args.required("query")?;
        let limit = usize::try_from(args.number("limit", 1, 5_000)?.unwrap_or(200)).unwrap_or(200);
        let mut db = self.guarded().map_err(|e| format!("sql: {e}"))?;
        let begun = Instant::now();
        db.progress_handler(1_000, Some(move || begun.elapsed() > TIME_MAX)).map_err(|e| format!("sql: {e}"))?;
        let mut statement = db.prepare(query).map_err(|e| explain(&e))?;
        if statement.is_explain() != 0 || !statement.readonly() {
            return args.fail("only SELECT is allowed");
        }
        if statement.column_names().any(|name| name == OF_RECORD) {
            return args.fail(&format!("a column cannot have the name {OF_RECORD}"));
        }
        self.rows(&mut statement, limit).map_err(|e| explain(&e))
    }

    fn rows(&self, statement: &mut Statement<'_>, limit: usize) -> rusqlite::Result<Value> {
        let columns = distinct(statement.column_names());
        let (mut found, mut size, mut truncated) = (Vec::new(), 0, None);
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if found.len() >= limit {
                truncated = Some(format!("there are more than {limit} rows"));
                break;
            }
            let cells = columns.iter().enumerate().map(|(i, name)| Ok((name.clone(), cell(row.get_ref(i)?))));
            let mut cells = cells.collect::<rusqlite::Result<Map<String, Value>>>()?;
            if found.len() < MARKED_MAX {
                self.mark(&mut cells);
            }
            size += Value::Object(cells.clone()).to_string().len();
            if size > BYTES_MAX {
                truncated = Some(format!("the answer would be too large after {} rows", found.len()));
                break;
            }
            found.push(cells);
        }
        let mut answer = json!({ "columns": columns, "rows": found, "truncated": truncated.is_some() });
        if let Some(why) = truncated {
            put(&mut answer, "why", json!(why));
        }
        Ok(answer)
    }

    /// Marks a row whose cells are all of the record at its `file` and `line`, and adds its source and time. Any other
    /// row may say what the query made up.
    fn mark(&self, cells: &mut Map<String, Value>) -> Option<()> {
        let number = |key: &str| cells.get(key).and_then(Value::as_u64);
        let (file, line, nth) = (cells.get("file")?.as_str()?, number("line")?, number("nth").unwrap_or(1));
        self.catalog.source_of(file).filter(|place| self.visible.contains(place))?;
        let entry = self.catalog.find(file, line, u32::try_from(nth).ok()?).ok()?;
        let record = self.catalog.record_of(&entry, self.catalog.bytes(&entry, 0, kept(&entry)).ok()?);
        let (text, fields) = (record.text(), record.fields());
        let shown = serde_json::to_value(Shown::new(&record, Vec::new(), &Wanted::None)).ok()?;
        let is_of = |(name, cell): (&String, &Value)| match name.as_str() {
            "source" | "file" | "line" | "time" | "time_basis" => shown.get(name) == Some(cell),
            "raw" => cell.as_str() == Some(cut(&text, CELL_MAX)),
            "id" => cell.as_u64() == Some(record.id),
            "nth" => cell.as_u64() == Some(u64::from(record.nth)),
            "time_ns" => cell.as_i64() == entry.time,
            _ => cell.is_null() || fields.iter().any(|(_, value)| cut(value, CELL_MAX) == plain(cell)),
        };
        if !cells.iter().all(is_of) {
            return None;
        }
        for key in ["source", "time", "time_basis", "time_field", "precision", "nth"] {
            if let Some(value) = shown.get(key) {
                cells.entry(key).or_insert_with(|| value.clone());
            }
        }
        if text.len() > CELL_MAX && cells.contains_key("raw") {
            cells.insert("raw_cut".to_owned(), json!(true));
        }
        cells.insert(OF_RECORD.to_owned(), json!(true));
        Some(())
    }

    /// A connection that can only read the table `records` of visible records.
    fn guarded(&self) -> rusqlite::Result<Connection> {
        let mut db = Connection::open_in_memory()?;
        let records = Records::new(&self.catalog, &self.visible);
        table::add(&db, &records)?;
        self.field(&db, records)?;
        db.set_limit(Limit::SQLITE_LIMIT_LENGTH, 4 << 20)?;
        db.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, 64 << 10)?;
        db.set_limit(Limit::SQLITE_LIMIT_EXPR_DEPTH, 200)?;
        db.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        db.authorizer(Some(|context: AuthContext<'_>| allowed(&context)))?;
        Ok(db)
    }

    /// The function `field(id, name)`.
    fn field(&self, db: &Connection, records: Records) -> rusqlite::Result<()> {
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
        let (tools, known) = (self.clone(), Mutex::new(BTreeSet::new()));
        db.create_scalar_function("field", 2, flags, move |context| {
            let name: String = context.get(1)?;
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            if !known.contains(&name) {
                let failed = |why: String| rusqlite::Error::UserFunctionError(why.into());
                tools.known_field(&tools.visible, &name).map_err(failed)?;
                known.insert(name.clone());
            }
            drop(known);
            let record = records.record(context.get(0)?)?;
            Ok(record.and_then(|r| values(&r.fields(), &name).first().map(|v| (*v).to_owned())))
        })
    }
}

/// Functions that read files or make large values.
const DENIED: [&str; 7] =
    ["load_extension", "readfile", "writefile", "edit", "fts3_tokenizer", "randomblob", "zeroblob"];

fn allowed(context: &AuthContext<'_>) -> Authorization {
    let fine = match context.action {
        AuthAction::Select | AuthAction::Recursive => true,
        AuthAction::Read { table_name, .. } => !table_name.starts_with("sqlite_"),
        AuthAction::Function { function_name } => !DENIED.contains(&function_name),
        _ => false,
    };
    if fine { Authorization::Allow } else { Authorization::Deny }
}

fn explain(error: &rusqlite::Error) -> String {
    let text = error.to_string();
    if text.contains("interrupted") {
        return format!(
            "sql: stopped after {} s: compare `source`, `time_ns` or `line` with constants before reading `raw` or a field, which reads the file for each row; `search` and `count_by` use an index for terms and times",
            TIME_MAX.as_secs()
        );
    }
    if text.contains("not authorized") || text.contains("prohibited") {
        return "sql: only SELECT over the view `records` and the function field(id, name) is allowed".to_owned();
    }
    format!(
        "sql: {text}; the view is records(id, source, file, line, nth, time, time_ns, time_basis, raw), and field(id, 'name') gives a field"
    )
}

/// The names of the columns; a name that occurs again gets a number.
fn distinct<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        let new = (2..).map(|n| format!("{name}_{n}")).find(|new| !all.contains(new));
        all.push(new.filter(|_| all.iter().any(|known| known == name)).unwrap_or_else(|| name.to_owned()));
    }
    all
}

fn plain(cell: &Value) -> String {
    cell.as_str().map_or_else(|| cell.to_string(), str::to_owned)
}

fn cell(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(n) => json!(n),
        ValueRef::Real(n) => json!(n),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => json!(cut(&String::from_utf8_lossy(bytes), CELL_MAX)),
    }
}
