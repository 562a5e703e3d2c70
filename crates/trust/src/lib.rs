//! What may be believed. Pure rules check what the agents propose against the recorded bytes:
//! - citations ([`check`]) and claims ([`claim`])
//! - score caps, the Timeline and the verdict ([`rule`])
//! - fields whose text the recorded party chooses ([`chosen`])
//! - addresses of trusted packages ([`package`]), and acts that a dismissal must explain ([`account`])
//! - the first line of a report ([`headline`]) and the names in its actions ([`name`])
//! - the cited records and the searches behind a report ([`backing`])
//! - text that addresses the investigator ([`injection`])
//!
//! Nothing here uses a clock, IO or async: a Hub, a test and a replay give the same answer for the same input.

pub mod account;
pub mod backing;
pub mod check;
pub mod chosen;
pub mod claim;
pub mod headline;
pub mod injection;
pub mod name;
pub mod package;
pub mod rule;

pub use backing::Backing;
pub use check::Exhibits;
pub use rule::Docket;
