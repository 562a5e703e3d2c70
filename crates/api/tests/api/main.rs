//! Pages as text, the API over real HTTP, and hostile texts in every page.

mod golden;
mod hostile;
mod http;
mod kit;
