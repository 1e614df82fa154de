//! The mark in a browser's tab.

use axum::response::{IntoResponse, Response};
use http::header;

const MARK: &str = include_str!("favicon.svg");

/// `GET /favicon.svg`
pub async fn favicon() -> Response {
    let headers = [(header::CONTENT_TYPE, "image/svg+xml"), (header::CACHE_CONTROL, "public, max-age=86400")];
    (headers, MARK).into_response()
}
