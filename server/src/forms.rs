//! The layer between server functions and the two kinds of callers they have.
//!
//! A program gets JSON with the status that the error's code stands for. A
//! browser's plain form (`Accept` names `text/html`) gets a redirect to the page
//! that shows the result or the refusal, so that everything works without
//! scripts. Server functions know neither: they return a value or an error and
//! say in a response header which page shows it.

use app::{
    api::{ApiError, Code, SHOW_HEADER, status_of},
    routes,
};
use axum::{
    body::{Body, Bytes},
    extract::Request,
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header, request::Parts};
use tracing::error;

use crate::refusal;

/// The most that a request to the API carries; the largest form is a new sale.
pub const BODY_LIMIT: usize = 64 * 1024;

/// An answer that is an error is `{code, message}`: anything longer is not ours.
const ERROR_LIMIT: usize = 64 * 1024;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The layer; it leaves everything outside of the API alone.
pub async fn translate(request: Request, next: Next) -> Response {
    if !is_api(request.uri().path()) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let caller = Caller::of(&parts);
    if caller.form {
        // leptos answers a form by itself, with a 302 to where it came from and
        // the error in the query; asked for JSON, it leaves that to this layer.
        parts.headers.insert(header::ACCEPT, JSON);
    }
    let response = match bounded(&parts, body).await {
        Ok(body) => with_status(next.run(Request::from_parts(parts, Body::from(body))).await).await,
        Err(refused) => (refused, Some(Code::TooLarge)),
    };
    caller.answer(response)
}

/// Whether the path belongs to the API.
pub fn is_api(path: &str) -> bool {
    path.strip_prefix(routes::API)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

async fn bounded(parts: &Parts, body: Body) -> Result<Bytes, Response> {
    let announced = parts
        .headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > BODY_LIMIT) {
        return Err(refusal::too_large());
    }
    // A body that breaks off belongs to a client that is gone: any answer will do.
    axum::body::to_bytes(body, BODY_LIMIT)
        .await
        .map_err(|_| refusal::too_large())
}

/// Gives an error the status of its code.
async fn with_status(response: Response) -> (Response, Option<Code>) {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return (response, None);
    }
    let (mut parts, body) = response.into_parts();
    let body = axum::body::to_bytes(body, ERROR_LIMIT)
        .await
        .unwrap_or_default();
    if let Ok(error) = serde_json::from_slice::<ApiError>(&body) {
        // The router's own refusal: its status says more than the code.
        if parts.status != StatusCode::METHOD_NOT_ALLOWED {
            parts.status = status_of(error.code);
        }
        parts.headers.insert(header::CONTENT_TYPE, JSON);
        refusal::set_retry_after(&mut parts.headers, error.code);
        return (
            Response::from_parts(parts, Body::from(body)),
            Some(error.code),
        );
    }
    // The session layer answers so, without a body, when it cannot save.
    let error = if body.is_empty() {
        ApiError::unavailable()
    } else {
        ApiError::internal()
    };
    error!(
        status = status.as_u16(),
        "an answer was not in the API's form"
    );
    (refusal::answer(&error), Some(error.code))
}

/// What decides how a request is answered.
struct Caller {
    form: bool,
    reads: bool,
    came_from: Option<String>,
}

impl Caller {
    fn of(parts: &Parts) -> Self {
        let form = wants_html(&parts.headers);
        Self {
            form,
            reads: parts.method == Method::GET || parts.method == Method::HEAD,
            came_from: form.then(|| came_from(&parts.headers)).flatten(),
        }
    }

    fn answer(&self, (mut response, refused): (Response, Option<Code>)) -> Response {
        let page = response.headers_mut().remove(SHOW_HEADER);
        // Somebody who typed the address of a read into a browser sees the JSON.
        if !self.form || self.reads {
            return response;
        }
        let page = page
            .and_then(|page| Some(page.to_str().ok()?.to_owned()))
            .filter(|page| is_local(page));
        let target = page.unwrap_or_else(|| match (&self.came_from, refused) {
            (Some(path), None) => path.clone(),
            (None, None) => routes::HOME.to_owned(),
            (Some(path), Some(code)) => format!("{path}?error={}", code.as_str()),
            (None, Some(code)) => routes::problem(code.as_str()),
        });
        see_other(response, &target)
    }
}

/// Turns an answer into a redirect, keeping its cookies.
fn see_other(response: Response, target: &str) -> Response {
    let (mut parts, _) = response.into_parts();
    parts.status = StatusCode::SEE_OTHER;
    for name in [
        header::CONTENT_TYPE,
        header::CONTENT_LENGTH,
        header::RETRY_AFTER,
    ] {
        parts.headers.remove(name);
    }
    let target = HeaderValue::from_str(target).unwrap_or(HeaderValue::from_static(routes::HOME));
    parts.headers.insert(header::LOCATION, target);
    Response::from_parts(parts, Body::empty())
}

/// Whether a browser asks for something to look at.
pub fn wants_html(headers: &HeaderMap) -> bool {
    let names_html =
        |value: &HeaderValue| value.to_str().is_ok_and(|text| text.contains("text/html"));
    headers.get_all(header::ACCEPT).iter().any(names_html)
}

/// The path of the page that sent the form, if it is one of this site.
fn came_from(headers: &HeaderMap) -> Option<String> {
    let referer: Uri = headers.get(header::REFERER)?.to_str().ok()?.parse().ok()?;
    let host = headers.get(header::HOST)?.to_str().ok()?;
    let same = referer
        .authority()
        .is_some_and(|authority| authority.as_str() == host);
    Some(referer.path().to_owned()).filter(|path| same && is_local(path))
}

/// Whether a browser stays on this site when it follows `path`. A browser reads
/// `//host` and `/\host` as another site.
fn is_local(path: &str) -> bool {
    let mut bytes = path.bytes();
    bytes.next() == Some(b'/')
        && !matches!(bytes.next(), Some(b'/' | b'\\'))
        && path
            .bytes()
            .all(|byte| byte > b' ' && byte != b'\\' && byte != 127)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_site_are_followed() {
        assert!(is_local("/") && is_local("/orders/5?x=1"));
        for foreign in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a\r\nb",
            "/a\\b",
        ] {
            assert!(!is_local(foreign), "{foreign}");
        }
    }

    #[test]
    fn a_form_from_elsewhere_leads_nowhere() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("shop.example"));
        headers.insert(
            header::REFERER,
            HeaderValue::from_static("http://evil.example/x"),
        );
        assert_eq!(came_from(&headers), None);
        headers.insert(
            header::REFERER,
            HeaderValue::from_static("http://shop.example/sales/5?error=invalid"),
        );
        assert_eq!(came_from(&headers).as_deref(), Some("/sales/5"));
    }

    #[test]
    fn the_api_is_below_its_prefix_only() {
        assert!(is_api("/api") && is_api("/api/buy") && !is_api("/apiary"));
    }
}
