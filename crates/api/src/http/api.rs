//! The API. [`crate::routes::ROUTES`] is the table from which it is built and described.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;

use super::pages::Asked;
use super::{App, answer, feed};

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/v1/events", get(events))
}

async fn events(State(app): State<Arc<App>>, asked: Asked) -> Response {
    feed::all(&app).unwrap_or_else(|problem| answer::problem(&app, &problem, asked.uri.path(), false))
}
