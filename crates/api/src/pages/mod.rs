//! The pages, as pure functions of what was read. `maud` escapes every text; [`frame::Frame::page`] makes hidden
//! characters visible. `PreEscaped` is not used.

pub mod case;
pub mod fleet;
pub mod frame;
pub mod icon;
pub mod parts;
pub mod problem;
