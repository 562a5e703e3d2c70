//! Finds records by terms, fields and time. Every hit is checked against the bytes of the record.

mod condition;
mod ordered;
mod page;
mod scan;

pub(crate) use condition::{Condition, Op, is_named, values};
pub(crate) use ordered::{Order, Ordered};
pub(crate) use page::{Page, page};
pub(crate) use scan::{Filter, Hit, Scanned, Window, has_field, names_field, scan};

#[cfg(test)]
pub(crate) use scan::parse_fields;

#[cfg(test)]
mod tests;
