//! The pages and the HTTP API of Casebook.
//!
//! [`cases`] reads investigations, [`model`] computes what is shown, [`pages`] and [`chart`] write it as HTML and SVG:
//! all pure. [`http`] serves it; only that module names the HTTP library.

pub mod cases;
pub mod chart;
pub mod http;
pub mod model;
pub mod openapi;
pub mod pages;
pub mod problem;
pub mod program;
pub mod routes;
pub mod team;
