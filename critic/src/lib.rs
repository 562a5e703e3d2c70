//! The Critic scores every finding (Review) and folds the credible ones into the story (Timeline).
//!
//! [`tools`] are the four tools with which it audits how an Expert worked, not only what it claims.

pub mod actor;
pub mod analyst;
pub mod brief;
pub mod tools;
