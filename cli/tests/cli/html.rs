//! Reads a page as a browser's tokenizer would, strictly: what is not well-formed is an error.

/// Elements that have no end.
const VOID: [&str; 2] = ["meta", "br"];

/// A start tag.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
}

/// The start tags of a page in which every element is closed where it should be.
pub(crate) fn tags(page: &str) -> Result<Vec<Tag>, String> {
    let mut rest = page.strip_prefix("<!DOCTYPE html>").ok_or("no doctype")?;
    let (mut open, mut tags): (Vec<String>, Vec<Tag>) = (vec![], vec![]);
    while let Some((text, from)) = rest.split_once('<') {
        if text.contains('>') && open.last().is_none_or(|name| name != "style") {
            return Err(format!("a bare > in {text:?}"));
        }
        let (inside, after) = from.split_once('>').ok_or("a tag without an end")?;
        rest = after;
        if let Some(name) = inside.strip_prefix('/') {
            let expected = open.pop();
            if expected.as_deref() != Some(name) {
                return Err(format!("</{name}> ends {expected:?}"));
            }
            continue;
        }
        let tag = start(inside)?;
        if !VOID.contains(&tag.name.as_str()) {
            open.push(tag.name.clone());
        }
        tags.push(tag);
    }
    if open.is_empty() { Ok(tags) } else { Err(format!("never closed: {open:?}")) }
}

fn start(inside: &str) -> Result<Tag, String> {
    let (name, mut rest) = inside.split_once(' ').unwrap_or((inside, ""));
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) {
        return Err(format!("no tag: <{inside}>"));
    }
    let mut attributes = Vec::new();
    while !rest.is_empty() {
        let (key, value) = rest.split_once("=\"").ok_or_else(|| format!("an attribute without quotes: {inside:?}"))?;
        let (value, after) = value.split_once('"').ok_or("a value without an end")?;
        attributes.push((key.to_owned(), value.to_owned()));
        rest = after.trim_start();
    }
    Ok(Tag { name: name.to_owned(), attributes })
}

impl Tag {
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.attributes.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }
}

#[test]
fn the_reader_is_strict() {
    assert!(tags("<!DOCTYPE html><p><b>x</b></p>").is_ok());
    for bad in [
        "<p></p>",
        "<!DOCTYPE html><p>",
        "<!DOCTYPE html><p><b></p></b>",
        "<!DOCTYPE html><p a=b></p>",
        "<!DOCTYPE html><p>a > b</p>",
        "<!DOCTYPE html>a < b",
    ] {
        assert!(tags(bad).is_err(), "{bad}");
    }
}
