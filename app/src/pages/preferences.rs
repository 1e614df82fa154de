//! Language and appearance: a small form, two cookies, and back to the page.

use std::collections::HashMap;

use axum::{
    Form,
    extract::{State, rejection::FormRejection},
    response::{IntoResponse, Redirect, Response},
};
use http::{HeaderValue, header};

use super::{
    problem,
    visit::{Theme, Visit},
};
use crate::{AppState, api::Code, next, words::Lang};

/// A year.
const KEPT_SECONDS: u32 = 365 * 24 * 3_600;

/// `POST /preferences`: `lang`, `theme`, `next`.
pub async fn preferences(
    State(state): State<AppState>,
    visit: Visit,
    form: Result<Form<HashMap<String, String>>, FormRejection>,
) -> Response {
    let Ok(Form(form)) = form else {
        return problem::refused(&visit, Code::Invalid);
    };
    let secure = if state.secure { "; Secure" } else { "" };
    let field = |name: &str| form.get(name).map(String::as_str);
    let lang = field("lang").and_then(Lang::parse).map(Lang::as_str);
    let theme = field("theme").and_then(Theme::parse).map(Theme::as_str);
    let to = field("next")
        .and_then(next::local_path)
        .unwrap_or(crate::routes::HOME);
    let mut response = Redirect::to(to).into_response();
    for (name, value) in [("lang", lang), ("theme", theme)] {
        let Some(value) = value else { continue };
        // Names and values are words of ours, so the text is always a valid header.
        let cookie = format!(
            "{name}={value}; Path=/; Max-Age={KEPT_SECONDS}; SameSite=Lax; HttpOnly{secure}"
        );
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
    response
}
