//! Calls of server functions.
//!
//! The endpoint is the server function's own. The generated client is not used:
//! it hides `Retry-After`, knows no time limit, and fails on an answer that is not ours
//! (a proxy's page), where the buyer should read an honest text instead.

use js_sys::{JSON, Reflect};
use leptos::{server_fn::ServerFn, task::spawn_local};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortController, Headers, RequestCredentials, RequestInit, Response};

use super::{sleep, window};
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
    /// The server answered with a refusal, to the request of this id.
    Refused(
        ApiError,
        #[cfg_attr(
            not(feature = "shop"),
            expect(dead_code, reason = "the console shows old figures, not why")
        )]
        String,
    ),
    /// The server speaks another language than this page: it is a newer one.
    Unreadable,
}

/// How long an answer may take before the request counts as lost.
pub(crate) const LIMIT_MS: i32 = 10_000;
/// The longest wait that a page follows without asking its person.
const LONGEST_WAIT_S: i32 = 30;

/// Asks for something that is the same for everybody. Sent without the session, so that
/// the server has none to look up for pages that only watch.
pub(crate) async fn get_public<F: ServerFn, T: FromJson>(
    fields: &[(&str, &str)],
) -> Result<T, Failure> {
    let address = address::<F>(fields);
    read(&send(&address, "GET", RequestCredentials::Omit, None).await?)
}

/// Asks for something of the signed-in person's.
#[cfg(feature = "shop")]
pub(crate) async fn get<F: ServerFn, T: FromJson>(fields: &[(&str, &str)]) -> Result<T, Failure> {
    let address = address::<F>(fields);
    let sent = send(&address, "GET", RequestCredentials::SameOrigin, None);
    read(&sent.await?)
}

/// Changes something.
#[cfg(feature = "shop")]
pub(crate) async fn post<F: ServerFn, T: FromJson>(fields: &[(&str, &str)]) -> Result<T, Failure> {
    let body = Some(form(fields));
    read(&send(F::PATH, "POST", RequestCredentials::SameOrigin, body).await?)
}

/// Asks for one of the console's large structures.
#[cfg(feature = "console")]
pub(crate) async fn get_all<F>(fields: &[(&str, &str)]) -> Result<F::Output, Failure>
where
    F: ServerFn<Error = ApiError>,
    F::Output: serde::de::DeserializeOwned,
{
    let address = address::<F>(fields);
    let sent = send(&address, "GET", RequestCredentials::SameOrigin, None);
    serde_json::from_str(&sent.await?).map_err(|_| Failure::Unreadable)
}

fn read<T: FromJson>(text: &str) -> Result<T, Failure> {
    let json = JSON::parse(text).map_err(|_| Failure::Unreadable)?;
    T::from_json(&json).ok_or(Failure::Unreadable)
}

/// The body of an answer that is one.
async fn send(
    address: &str,
    method: &str,
    credentials: RequestCredentials,
    body: Option<String>,
) -> Result<String, Failure> {
    let Exchanged {
        status,
        wait,
        text,
        request,
    } = exchange(address, method, credentials, body)
        .await
        .map_err(|_| Failure::Network)?;
    if status == 200 {
        return Ok(text);
    }
    let told = JSON::parse(&text)
        .ok()
        .and_then(|json| ApiError::from_json(&json));
    let error = told.unwrap_or_else(|| match status {
        429 => ApiError::new(Code::TooMany, ""),
        502..=504 => ApiError::unavailable(),
        _ => ApiError::internal(),
    });
    match error.code {
        Code::TooMany | Code::Unavailable => Err(Failure::Wait(error.code, wait)),
        _ => Err(Failure::Refused(error, request)),
    }
}

/// What can be read from an answer's JSON by the browser's own parser. A derived reader would
/// be a tenth of the buyer's bundle.
pub(crate) trait FromJson: Sized {
    /// None: it is not what this page knows.
    fn from_json(json: &JsValue) -> Option<Self>;
}

impl FromJson for ApiError {
    fn from_json(json: &JsValue) -> Option<Self> {
        let code = Code::parse(&text_in(json, "code")?)?;
        Some(Self::new(code, text_in(json, "message")?))
    }
}

/// The text that a field holds.
pub(crate) fn text_in(json: &JsValue, field: &str) -> Option<String> {
    Reflect::get(json, &field.into()).ok()?.as_string()
}

/// The whole number that a field holds.
pub(crate) fn number_in(json: &JsValue, field: &str) -> Option<i64> {
    let number = Reflect::get(json, &field.into()).ok()?.as_f64()?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "times and counts fit into 53 bits"
    )]
    Some(number as i64)
}

/// An answer as it came.
struct Exchanged {
    status: u16,
    /// Milliseconds to wait: `Retry-After`, or one second.
    wait: i32,
    text: String,
    /// The request's id, for who asks about it.
    request: String,
}

async fn exchange(
    address: &str,
    method: &str,
    credentials: RequestCredentials,
    body: Option<String>,
) -> Result<Exchanged, JsValue> {
    let headers = Headers::new()?;
    headers.set("accept", "application/json")?;
    let init = RequestInit::new();
    init.set_method(method);
    init.set_credentials(credentials);
    // Not AbortSignal.timeout: a browser that lacks it would lose every request without a word.
    let stop = AbortController::new()?;
    init.set_signal(Some(&stop.signal()));
    spawn_local(async move {
        sleep(LIMIT_MS).await;
        // One that is answered does not notice.
        stop.abort();
    });
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
        .and_then(|text| text.parse::<i32>().ok());
    let wait = seconds.unwrap_or(1).clamp(1, LONGEST_WAIT_S) * 1_000;
    let request = response.headers().get("x-request-id")?;
    let text = JsFuture::from(response.text()?)
        .await?
        .as_string()
        .unwrap_or_default();
    Ok(Exchanged {
        status: response.status(),
        wait,
        text,
        request: request.unwrap_or_default(),
    })
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
