//! Finds records by terms, fields and time. Every hit is checked against the bytes of the record.

mod condition;
mod page;
mod scan;

pub(crate) use condition::{Condition, Op, is_named, values};
pub(crate) use page::{Order, Page, page};
pub(crate) use scan::{Filter, Hit, Scanned, has_field, names_field, scan};

#[cfg(test)]
pub(crate) use scan::parse_fields;

#[cfg(test)]
mod tests;
