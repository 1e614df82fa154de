//! Calls of server functions.
//!
//! Endpoint and types are the server function's own. The generated client is not used:
//! it hides `Retry-After`, knows no time limit, and fails on an answer that is not ours
//! (a proxy's page), where the buyer should read an honest text instead.

use leptos::server_fn::ServerFn;
use serde::de::DeserializeOwned;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortSignal, Headers, RequestCredentials, RequestInit, Response};

use super::window;
use crate::{
    api::{ApiError, Code},
    routes::escape,
};

/// Why a call has no result.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// No answer came, so nobody knows whether the request arrived.
    Network,
    /// The server asks to wait that many milliseconds.
    Wait(
        #[cfg_attr(
            not(feature = "shop"),
            expect(dead_code, reason = "the console shows old figures, not why")
        )]
        Code,
        i32,
    ),
    /// The server answered with a refusal.
    Refused(ApiError),
}

/// How long an answer may take before the request counts as lost.
const LIMIT_MS: u32 = 10_000;
/// The longest wait that a page follows without asking its person.
const LONGEST_WAIT_S: f64 = 30.0;

/// Asks for something that is the same for everybody. Sent without the session, so that
/// the server has none to look up for pages that only watch.
pub(crate) async fn get_public<F>(fields: &[(&str, &str)]) -> Result<F::Output, Failure>
where
    F: ServerFn<Error = ApiError>,
    F::Output: DeserializeOwned,
{
    send(&address::<F>(fields), "GET", RequestCredentials::Omit, None).await
}

/// Asks for something of the signed-in person's.
pub(crate) async fn get<F>(fields: &[(&str, &str)]) -> Result<F::Output, Failure>
where
    F: ServerFn<Error = ApiError>,
    F::Output: DeserializeOwned,
{
    send(
        &address::<F>(fields),
        "GET",
        RequestCredentials::SameOrigin,
        None,
    )
    .await
}

/// Changes something.
#[cfg(feature = "shop")]
pub(crate) async fn post<F>(fields: &[(&str, &str)]) -> Result<F::Output, Failure>
where
    F: ServerFn<Error = ApiError>,
    F::Output: DeserializeOwned,
{
    send(
        F::PATH,
        "POST",
        RequestCredentials::SameOrigin,
        Some(form(fields)),
    )
    .await
}

async fn send<T: DeserializeOwned>(
    address: &str,
    method: &str,
    credentials: RequestCredentials,
    body: Option<String>,
) -> Result<T, Failure> {
    let (status, wait, text) = exchange(address, method, credentials, body)
        .await
        .map_err(|_| Failure::Network)?;
    if status == 200 {
        return serde_json::from_str(&text).map_err(|_| Failure::Refused(ApiError::internal()));
    }
    let error = serde_json::from_str(&text).unwrap_or_else(|_| match status {
        429 => ApiError::new(Code::TooMany, ""),
        502..=504 => ApiError::unavailable(),
        _ => ApiError::internal(),
    });
    match error.code {
        Code::TooMany | Code::Unavailable => Err(Failure::Wait(error.code, wait)),
        _ => Err(Failure::Refused(error)),
    }
}

/// Status, milliseconds to wait (`Retry-After`, or one second), body.
async fn exchange(
    address: &str,
    method: &str,
    credentials: RequestCredentials,
    body: Option<String>,
) -> Result<(u16, i32, String), JsValue> {
    let headers = Headers::new()?;
    headers.set("accept", "application/json")?;
    let init = RequestInit::new();
    init.set_method(method);
    init.set_credentials(credentials);
    init.set_signal(Some(&AbortSignal::timeout_with_u32(LIMIT_MS)));
    if let Some(body) = body {
        headers.set("content-type", "application/x-www-form-urlencoded")?;
        init.set_body(&JsValue::from_str(&body));
    }
    init.set_headers(&headers);
    let response: Response = JsFuture::from(window().fetch_with_str_and_init(address, &init))
        .await?
        .dyn_into()?;
    let seconds = response
        .headers()
        .get("retry-after")?
        .and_then(|text| text.parse::<f64>().ok());
    #[expect(
        clippy::cast_possible_truncation,
        reason = "clamped to half a minute before"
    )]
    let wait = (seconds.unwrap_or(1.0).clamp(0.5, LONGEST_WAIT_S) * 1000.0) as i32;
    let text = JsFuture::from(response.text()?)
        .await?
        .as_string()
        .unwrap_or_default();
    Ok((response.status(), wait, text))
}

fn address<F: ServerFn>(fields: &[(&str, &str)]) -> String {
    if fields.is_empty() {
        F::PATH.to_owned()
    } else {
        format!("{}?{}", F::PATH, form(fields))
    }
}

fn form(fields: &[(&str, &str)]) -> String {
    let pairs: Vec<_> = fields
        .iter()
        .map(|(name, value)| format!("{name}={}", escape(value)))
        .collect();
    pairs.join("&")
}
