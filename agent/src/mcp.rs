//! Tools over the Model Context Protocol: which servers there are ([`servers`], pasted by the user),
//! what we allow of them ([`policy`], ours), names with wildcards ([`pattern`]), and our own tools
//! for others to call ([`serve`]).

pub mod pattern;
pub mod policy;
pub mod serve;
pub mod servers;
