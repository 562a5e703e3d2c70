//! One row for each investigation, made from the feed of a store, so that a list does not fold every log.
//!
//! [`row`] and [`figures`] are the fold: pure functions of the events. [`Index`] keeps the rows in `index.db`, together
//! with the position in the feed. The file is never the truth: it is made again if it is missing, damaged, of another
//! version, or of another store. One process at a time writes it ([`Index::catch_up`]), and others read it.

pub mod figures;
pub mod query;
pub mod row;

mod alert;
mod brief;
mod database;
mod index;
mod short;

pub use brief::Brief;
pub use figures::Figures;
pub use index::{Index, IndexError};
pub use query::{Counts, Page, QUIET, Sort, Status, Wanted};
pub use row::{Row, Tally, UnderWay};

#[cfg(test)]
mod tests;
