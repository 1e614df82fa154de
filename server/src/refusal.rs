//! The error form of the API, for refusals that no server function makes:
//! `{code, message}` with its status, and `Retry-After` where waiting helps.

use app::api::{ApiError, Code, retry_after, status_of};
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, header};

/// The answer that refuses with `error`.
pub fn answer(error: &ApiError) -> Response {
    let mut response = (status_of(error.code), Json(error)).into_response();
    set_retry_after(response.headers_mut(), error.code);
    response
}

/// The answer that refuses with `code` and says `message`.
pub fn refuse(code: Code, message: &str) -> Response {
    answer(&ApiError::new(code, message))
}

/// There is no such endpoint.
pub fn no_endpoint() -> Response {
    refuse(Code::NotFound, "There is no such endpoint.")
}

/// The endpoint exists, for another method. The router adds `Allow`.
pub fn wrong_method() -> Response {
    let mut response = refuse(Code::Invalid, "This endpoint does not take that method.");
    *response.status_mut() = http::StatusCode::METHOD_NOT_ALLOWED;
    response
}

/// The body is over the limit.
pub fn too_large() -> Response {
    refuse(Code::TooLarge, "The request's body is too large.")
}

/// Says how long to wait, unless that was said already.
pub fn set_retry_after(headers: &mut HeaderMap, code: Code) {
    if let Some(seconds) = retry_after(code) {
        headers
            .entry(header::RETRY_AFTER)
            .or_insert_with(|| HeaderValue::from(seconds));
    }
}
