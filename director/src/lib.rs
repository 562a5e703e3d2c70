//! The Director plans and asks, decides when to advance, and concludes. It sees derived text alone:
//! Journal, Review and Timeline, never the bytes of evidence.

pub mod actor;
pub mod analyst;
pub mod brief;
pub mod journal;
