//! The table of the API: the router is built from it, and `docs/openapi.json` is written from it.

use casebook_protocol::closed;

use crate::problem::Kind;

closed! {
    pub enum Verb {
        Get = "get";
        Post = "post";
        Put = "put";
        Delete = "delete";
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    pub name: &'static str,
    /// A range of numbers, a set of names, or `string`.
    pub kind: &'static str,
    pub about: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub enum Answer {
    /// A schema of the description.
    One(&'static str),
    /// A page of items with this schema.
    Page(&'static str),
    /// Content of another type.
    Other(&'static str),
    /// No content; the text says what was done.
    Done(&'static str),
}

pub struct Route {
    pub verb: Verb,
    /// Below `/api/v1`.
    pub path: &'static str,
    pub endpoint: Endpoint,
    pub about: &'static str,
    pub query: &'static [Parameter],
    pub answer: Answer,
    /// Beside those that every request may get.
    pub problems: &'static [Kind],
}

/// `Endpoint: Verb "path" => Answer, [problems], "what it does", query...;`
macro_rules! table {
    ($($endpoint:ident: $verb:ident $path:literal => $answer:ident($of:literal), [$($problem:ident)*], $about:literal
        $(, $name:ident: $kind:ident $what:literal)*;)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Endpoint { $($endpoint),+ }

        pub const ROUTES: &[Route] = &[$(Route {
            verb: Verb::$verb,
            path: $path,
            endpoint: Endpoint::$endpoint,
            about: $about,
            query: &[$(Parameter { name: stringify!($name), kind: stringify!($kind), about: $what }),*],
            answer: Answer::$answer($of),
            problems: &[$(Kind::$problem),*],
        }),+];
    };
}

table! {
    Investigations: Get "/investigations" => Page("Investigation"), [Unreadable],
        "Lists investigations, the newest first",
        status: status "open, quiet, closed or broken",
        severity: severity "such as high",
        verdict: verdict "such as true_positive; closed investigations alone",
        q: string "a text in title, alert, id, host or user",
        limit: limit "at most so many items",
        cursor: cursor "from `next` of the page before";
    Launch: Post "/investigations" => One("Launched"), [Unreadable NotFound NoTeam OverLimit TooLarge Media Invalid],
        "Investigates an alert; waits for nothing";
    Investigation: Get "/investigations/{id}" => One("Investigation"), [NotFound Unreadable],
        "How an investigation stands",
        at: integer "the state after this event";
    Events: Get "/investigations/{id}/events" => Page("Event"), [NotFound Unreadable],
        "The log. With `Accept: text/event-stream`: from `from` or after `Last-Event-ID`, and then live",
        from: integer "the first event; 1 unless given",
        limit: many "at most so many items",
        type: string "events of this type alone",
        task: string "events of this task alone";
    Event: Get "/investigations/{id}/events/{seq}" => One("Event"), [NotFound Unreadable],
        "One event with its hash";
    Journal: Get "/investigations/{id}/journal" => Page("Entry"), [NotFound Unreadable],
        "The Director's Journal",
        at: integer "the state after this event",
        limit: limit "at most so many items",
        cursor: string "from `next` of the page before";
    Review: Get "/investigations/{id}/review" => One("Review"), [NotFound Unreadable],
        "The Critic's latest Review",
        at: integer "the state after this event";
    Timeline: Get "/investigations/{id}/timeline" => One("Timeline"), [NotFound Unreadable],
        "The Critic's Timeline",
        at: integer "the state after this event";
    Findings: Get "/investigations/{id}/findings" => Page("Finding"), [NotFound Unreadable],
        "Findings with scores, citations and checks",
        at: integer "the state after this event",
        label: string "such as highly-plausible",
        domain: string "of this Expert",
        round: integer "of this round",
        limit: limit "at most so many items",
        cursor: string "from `next` of the page before";
    Finding: Get "/investigations/{id}/findings/{finding}" => One("Finding"), [NotFound Unreadable],
        "One finding",
        at: integer "the state after this event";
    Rounds: Get "/investigations/{id}/rounds" => Page("Round"), [NotFound Unreadable],
        "Questions and decisions",
        at: integer "the state after this event";
    Guards: Get "/investigations/{id}/guards" => Page("Guard"), [NotFound Unreadable],
        "What the rules changed",
        at: integer "the state after this event";
    Usage: Get "/investigations/{id}/usage" => One("Usage"), [NotFound Unreadable],
        "What it used",
        at: integer "the state after this event";
    Tasks: Get "/investigations/{id}/tasks" => Page("Task"), [NotFound Unreadable],
        "Tasks with begin and end",
        at: integer "the state after this event",
        limit: limit "at most so many items",
        cursor: string "from `next` of the page before";
    Task: Get "/investigations/{id}/tasks/{task}" => One("Task"), [NotFound Unreadable],
        "One task";
    View: Get "/investigations/{id}/tasks/{task}/view" => One("View"), [NotFound Unreadable],
        "What the task was given";
    Request: Get "/investigations/{id}/tasks/{task}/model-calls/{n}/request" => One("View"), [NotFound NotKept],
        "The request to a model in the bytes whose SHA-256 the log has";
    Reply: Get "/investigations/{id}/tasks/{task}/model-calls/{n}/reply" => Other("application/octet-stream"), [NotFound NotKept],
        "The reply of a model, to download";
    Calls: Get "/investigations/{id}/calls" => Page("Call"), [NotFound Unreadable],
        "Tool calls",
        task: string "of this task alone",
        limit: limit "at most so many items",
        cursor: string "from `next` of the page before";
    Call: Get "/investigations/{id}/calls/{call}" => One("Call"), [NotFound Unreadable],
        "One tool call";
    Result: Get "/investigations/{id}/calls/{call}/result" => One("Part"), [NotFound Invalid],
        "A part of the result, or the whole to download",
        pointer: string "a JSON pointer",
        from_line: integer "the first line",
        to_line: integer "the last line",
        offset: size "the first byte",
        length: integer "bytes",
        search: string "places of this text",
        after: size "search from this byte on",
        count: boolean "count items, or hits of `search`",
        by: string "count items by this field";
    Context: Get "/investigations/{id}/context" => One("Records"), [NotFound NoTeam],
        "Records around a record of the evidence",
        file: needed "the file of the record",
        line: line "its line",
        seconds: seconds "before and after it; 60 unless given",
        limit: limit "at most so many items";
    Json: Get "/investigations/{id}/report.json" => One("Report"), [NotFound NotClosed],
        "The report",
        partial: flag "1: also before the end";
    Markdown: Get "/investigations/{id}/report.md" => Other("text/markdown"), [NotFound NotClosed],
        "The report as Markdown",
        partial: flag "1: also before the end";
    Html: Get "/investigations/{id}/report.html" => Other("text/html"), [NotFound NotClosed],
        "The report as one page, to download",
        partial: flag "1: also before the end";
    Verify: Post "/investigations/{id}/verifications" => One("Verification"), [NotFound],
        "Verifies the record: hash chain, artifacts, results, citations and report";
    Compare: Get "/compare" => One("Comparison"), [NotFound Unreadable],
        "What differs between two investigations",
        a: needed "the first id",
        b: needed "the second id";
    Backtests: Get "/backtests" => Page("Backtest"), [],
        "Backtests since the start of the server, without their reports";
    Repeat: Post "/backtests" => One("Backtest"), [Unreadable NotFound NoTeam NotClosed TooLarge Media Invalid Slow],
        "Repeats a closed investigation; answers at once, and the result is not stored";
    Backtest: Get "/backtests/{n}" => One("Backtest"), [NotFound Unreadable],
        "How a backtest stands; at its end, both reports and what differs";
    Insights: Get "/insights" => One("Insights"), [],
        "Numbers over all investigations";
    Sources: Get "/sources" => Page("Body"), [],
        "Evidence that an alert can be investigated with";
    Settings: Get "/settings" => One("Settings"), [],
        "What holds in this server; no secret";
    Uploads: Post "/uploads" => One("Upload"), [TooManyUploads NoTeam],
        "Begins an upload of evidence";
    Uploaded: Get "/uploads/{upload}" => One("Uploaded"), [NotFound NoTeam],
        "How many files and bytes an upload has, and whether an alert was investigated over it";
    Remove: Delete "/uploads/{upload}" => Done("the upload is removed"), [NotFound Used NoTeam],
        "Removes an upload that no alert was investigated over";
    Upload: Put "/uploads/{upload}/files/{*path}" => One("File"), [NotFound Exists Used Invalid TooLarge NoTeam],
        "Stores one file, at most 256 MiB";
    Notices: Get "/events" => Other("text/event-stream"), [TooMany],
        "A stream with notices of the investigations that change, each with the number of the last event";
}

/// The largest number that every client reads without loss.
pub const MOST: u64 = (1 << 53) - 1;

impl Parameter {
    /// The least and the greatest number; none if it is a text.
    #[must_use]
    pub fn range(&self) -> Option<(u64, u64)> {
        match self.kind {
            "integer" | "line" => Some((1, MOST)),
            "size" => Some((0, MOST)),
            // A year.
            "seconds" => Some((0, 31_622_400)),
            "limit" => Some((1, 200)),
            "many" => Some((1, 1_000)),
            "flag" => Some((0, 1)),
            _ => None,
        }
    }
}

impl Route {
    /// The path without the marks of the router.
    #[must_use]
    pub fn public(&self) -> String {
        self.path.replace("{*", "{")
    }
}
