//! The pages, as pure functions of what was read. `maud` escapes every text; [`frame::Frame::page`] makes hidden
//! characters visible. `PreEscaped` is not used.

pub mod backtest;
pub mod call;
pub mod case;
pub mod compare;
pub mod evidence;
pub mod fleet;
pub mod frame;
pub mod icon;
pub mod insights;
pub mod launch;
pub mod model;
pub mod parts;
pub mod problem;
pub mod settings;
pub mod task;
pub mod verified;
