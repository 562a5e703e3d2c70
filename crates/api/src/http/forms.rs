//! Forms of the pages. Each works without JavaScript and leads back with 303.

use std::sync::Arc;

use axum::Form;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::{App, answer};
use crate::model::zone::Zone;
use crate::pages::frame::Theme;

#[derive(Deserialize)]
pub(super) struct Preferences {
    back: Option<String>,
    theme: Option<String>,
    zone: Option<String>,
}

const YEAR: &str = "Max-Age=31536000; SameSite=Lax; Path=/";

pub(super) async fn preferences(State(_): State<Arc<App>>, Form(wanted): Form<Preferences>) -> Response {
    let mut response = answer::see_other(answer::local(wanted.back.as_deref().unwrap_or("/")));
    let mut set = |cookie: String| {
        if let Ok(value) = cookie.parse() {
            response.headers_mut().append(header::SET_COOKIE, value);
        }
    };
    if let Some(name) = wanted.theme {
        set(format!("casebook_theme={}; {YEAR}", Theme::named(&name).name()));
    }
    if let Some(zone) = wanted.zone.and_then(|name| Zone::named(name.trim())) {
        // A slash is not a character of a cookie's value.
        set(format!("casebook_zone={}; {YEAR}", zone.name.replace('/', ":")));
    }
    response.into_response()
}
