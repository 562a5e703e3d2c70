//! Tools over the Model Context Protocol: which servers there are ([`servers`], pasted by the user),
//! what we allow of them ([`policy`], ours), and names with wildcards ([`pattern`]).

pub mod pattern;
pub mod policy;
pub mod servers;
