//! The Critic scores every finding (Review) and adds the credible ones to the Timeline.
//!
//! [`tools`] are its four tools, with which it checks how an Expert worked.

pub mod actor;
pub mod analyst;
pub mod brief;
pub mod tools;
