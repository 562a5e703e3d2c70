//! Configuration Manager and Intune, in the format of the reader CMTrace:
//! `<![LOG[text]LOG]!><time="19:33:19.766-330" date="11-28-2014" component="AppEnforce" …>`.

use super::keyvalue::{Reach, pairs};

type Fields = Vec<(String, String)>;

pub(crate) fn fields(text: &str) -> Option<Fields> {
    let (message, rest) = text.trim_end().strip_prefix("<![LOG[")?.rsplit_once("]LOG]!><")?;
    let about = pairs(rest.trim_end_matches('>'), Reach::Word);
    let get = |key: &str| about.iter().find(|pair| pair.key == key).map(|pair| pair.value);
    let mut fields = vec![("message".to_owned(), message.to_owned())];
    if let (Some(date), Some(clock)) = (get("date"), get("time")) {
        fields.extend(moment(date, clock).map(|moment| ("timestamp".to_owned(), moment)));
    }
    let others = about.iter().filter(|pair| !pair.value.is_empty());
    fields.extend(others.map(|pair| (pair.key.to_owned(), pair.value.to_owned())));
    Some(fields)
}

/// Gives `2014-11-28T19:33:19.766+05:30`. The number behind the clock is the minutes to add to get UTC.
fn moment(date: &str, clock: &str) -> Option<String> {
    let mut parts = date.split('-');
    let (month, day, year) = (parts.next()?, parts.next()?, parts.next()?);
    let Some(at) = clock.find(['+', '-']) else { return Some(format!("{year}-{month}-{day}T{clock}")) };
    let (clock, bias) = clock.split_at_checked(at)?;
    // Some programs write both signs.
    let bias = if bias.starts_with("+-") { bias.trim_start_matches('+') } else { bias };
    let bias: i32 = bias.parse().ok().filter(|bias: &i32| bias.abs() < 16 * 60)?;
    let sign = if bias > 0 { '-' } else { '+' };
    Some(format!("{year}-{month}-{day}T{clock}{sign}{:02}:{:02}", bias.abs() / 60, bias.abs() % 60))
}
