//! What a field name says about its times. The name alone does not decide: see `roles`.

/// Strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// The time of the event, in UTC by its name, or written by the kernel.
    Utc,
    /// The time of the event, with a strength from 1 to 9.
    Own(u8),
    /// The event or the ingestion, depending on the product.
    Weak,
    Ingestion,
    /// A property of a listed object. Used only as a last resort.
    Soft,
    Other,
}

impl Class {
    /// How strongly the name suggests the time of the event.
    pub(crate) fn strength(self) -> f64 {
        match self {
            Self::Utc => 10.0,
            Self::Own(n) => f64::from(n),
            Self::Weak => 4.0,
            Self::Ingestion => 1.0,
            Self::Soft => -4.0,
            Self::Other => -20.0,
        }
    }
}

/// The last part of a path, lower case, letters and digits only.
pub(crate) fn key(path: &str) -> String {
    norm(path.rsplit('.').next().unwrap_or(path))
}

fn norm(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether numbers in this field may be times.
pub(crate) fn may_count(path: &str) -> bool {
    const HINTS: [&str; 14] = [
        "time", "date", "stamp", "epoch", "created", "start", "end", "seen", "expir", "when", "publish", "occur",
        "begin", "valid",
    ];
    let key = key(path);
    if key.contains(SINCE_BOOT) {
        return false;
    }
    HINTS.iter().any(|hint| key.contains(hint))
        || matches!(key.as_str(), "ts" | "t" | "at" | "rt" | "first" | "last" | "now")
        || key.ends_with("at")
        || key.ends_with("ts")
}

/// A clock that starts at boot, such as `__MONOTONIC_TIMESTAMP` of the journal. It gives an order but not a
/// date.
const SINCE_BOOT: &str = "monotonic";
const VALIDITY: &str = "linkdate expir notbefore notafter valid until deadline birth compile renew dueda";
const INGESTION: &str = "ingest receive receipt index insert collect processed arriv stored forwarded uploaded loaded \
    observed exported";
const STATE: &str = "modified access changed lastlog lastseen firstseen pwd password install update creationutc \
    creationdate previous sessionstart boot issued";
/// These belong to another process or program than the recorded one.
const OTHERS: &str = "image initiating parent lastwrite petimestamp";
const THINGS: &str = "session cert parent file attributes process policy target objectref requestobject responseobject \
    requestparameters responseelements metadata device flow tls";

pub(crate) fn class(path: &str) -> Class {
    let key = key(path);
    let has = |words: &str| words.split_whitespace().any(|word| key.contains(word));
    if path == "audit.time" || path.ends_with(".audit.time") {
        return Class::Utc;
    }
    // ECS: when an agent first saw the event.
    if path == "event.created" || path.ends_with(".event.created") {
        return Class::Ingestion;
    }
    if key == "requestreceivedtimestamp" {
        return Class::Own(8);
    }
    if has(VALIDITY) || has(SINCE_BOOT) {
        return Class::Other;
    }
    if has(INGESTION) {
        return Class::Ingestion;
    }
    let of_file = matches!(key.as_str(), "mtime" | "atime" | "ctime" | "crtime" | "btime");
    if has(STATE) || has(OTHERS) || of_file || ["last", "first", "original"].iter().any(|word| key.starts_with(word)) {
        return Class::Soft;
    }
    let own = by_name(&key);
    let inside = path.rsplit('.').skip(1).map(norm);
    let of_thing = inside.into_iter().any(|part| THINGS.split_whitespace().any(|thing| part.contains(thing)));
    if of_thing && !matches!(own, Class::Utc | Class::Own(8..)) {
        return Class::Soft;
    }
    own
}

/// Judges the last part of the path alone.
pub(crate) fn of_field(path: &str) -> Class {
    by_name(&key(path))
}

fn by_name(key: &str) -> Class {
    match key {
        "utctime" | "timeutc" | "timestamputc" | "utctimestamp" | "datetimeutc" | "eventtimeutc" => Class::Utc,
        "eventtime"
        | "eventtimestamp"
        | "eventdatetime"
        | "eventcreationtime"
        | "activitydatetime"
        | "createddatetime"
        | "creationtime"
        | "timecreated"
        | "systemtime"
        | "published"
        | "occurred"
        | "occurredat"
        | "eventdate"
        | "devicetime"
        | "realtimetimestamp"
        | "sourcerealtimetimestamp" => Class::Own(8),
        "ts" | "timestamp" | "time" | "datetime" | "when" | "logtime" | "date" | "isotime" => Class::Own(7),
        "createdprocesscreationtime"
        | "processcreationtime"
        | "createdat"
        | "created"
        | "start"
        | "starttime"
        | "begin"
        | "begintime"
        | "rt"
        | "startdate" => Class::Own(6),
        "timegenerated" | "unixtime" => Class::Weak,
        "end" | "endtime" | "enddate" | "stop" | "finish" | "stagetimestamp" => Class::Own(2),
        // The window of a search.
        _ if key.contains("query") && (key.contains("start") || key.contains("end")) => Class::Other,
        _ if key.contains("creat") => Class::Soft,
        _ if key.contains("utc") && key.contains("end") => Class::Own(2),
        _ if key.contains("utc") && key.contains("start") => Class::Own(6),
        _ if key.contains("utc") => Class::Utc,
        _ if key.contains("timestamp") || key.contains("eventtime") => Class::Own(5),
        _ if key.contains("time") || key.contains("date") => Class::Own(4),
        _ => Class::Own(2),
    }
}

/// Whether a client fills the field.
pub(crate) fn chosen(path: &str) -> bool {
    matches!(
        key(path).as_str(),
        "request"
            | "requestbody"
            | "requestheaders"
            | "useragent"
            | "referer"
            | "url"
            | "uri"
            | "path"
            | "query"
            | "cookie"
    )
}

pub(crate) fn of_shipper(path: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or(path);
    matches!(last, "@timestamp" | "_time" | "TimeGenerated")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_suggest() {
        assert_eq!(class("UtcTime"), Class::Utc);
        assert_eq!(class("Properties.Query End Time UTC"), Class::Other);
        assert_eq!(class("query_time"), Class::Own(4), "when a name was asked for");
        assert_eq!(class("StartTimeUtc"), Class::Own(6));
        assert_eq!(class("InitiatingProcessImagePeTimestampUtc"), Class::Soft);
        assert_eq!(class("CreatedProcessParentCreationTimeUtc"), Class::Soft);
        assert_eq!(class("CreatedProcessCreationTime"), Class::Own(6));
        assert_eq!(class("SyslogMessage.audit.time"), Class::Utc);
        assert_eq!(class("eventTime"), Class::Own(8));
        assert_eq!(class("userIdentity.sessionContext.attributes.creationDate"), Class::Soft);
        assert_eq!(class("certificate_not_valid_before"), Class::Other);
        assert_eq!(class("EventReceivedTime"), Class::Ingestion);
        assert_eq!(class("CreationUtcTime"), Class::Soft);
        assert_eq!(class("CreationTime"), Class::Own(8));
        assert_eq!(class("process_kprobe.process.start_time"), Class::Soft);
        assert_eq!(class("times_modified"), Class::Soft);
        assert_eq!(class("SyslogMessage.System.TimeCreated.SystemTime"), Class::Own(8));
        assert_eq!(class("__MONOTONIC_TIMESTAMP"), Class::Other);
        assert_eq!(class("__REALTIME_TIMESTAMP"), Class::Own(8));
        assert!(!may_count("__MONOTONIC_TIMESTAMP"));
        assert!(may_count("created_at") && !may_count("account_id") && !may_count("pid"));
    }
}
