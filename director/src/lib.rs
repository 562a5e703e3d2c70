//! The Director plans, asks, decides when to advance, and concludes. It sees derived text only (Journal, Review,
//! Timeline), never the evidence.

pub mod actor;
pub mod analyst;
pub mod brief;
pub mod journal;
