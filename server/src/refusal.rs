//! The error form of the API, for refusals that no server function makes:
//! `{code, message}` with its status, and `Retry-After` where waiting helps.
//! What is refused before any page could be asked is said to a browser as a page
//! that needs nothing of the shop.

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
    response.extensions_mut().insert(Refused(error.code));
    response
}

/// Marks an answer as one of this module's.
#[derive(Debug, Clone, Copy)]
struct Refused(Code);

/// The same refusal for a person, where it was made before the pages.
pub fn for_browser(response: Response) -> Response {
    let (title, text) = match response.extensions().get::<Refused>() {
        Some(Refused(Code::CrossSite)) => (
            "This request came from another site · 请求来自其他网站",
            "Nothing was done. Open the shop itself and try there. 未执行任何操作，请在本站内重试。",
        ),
        Some(Refused(Code::Unavailable)) => (
            "The shop is full right now · 当前访问人数过多",
            "Nothing is lost. Reload in a moment. 请稍后刷新，您的订单不会丢失。",
        ),
        Some(Refused(Code::Internal)) => (
            "Something went wrong · 出错了",
            "It was written down. Reload, or try again in a moment. 已记录该问题，请刷新或稍后重试。",
        ),
        _ => return response,
    };
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title></head><body><main><h1>{title}</h1>\
         <p>{text}</p><p><a href=\"/\">Seckill</a></p></main></body></html>"
    );
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    parts.headers.insert(header::CONTENT_TYPE, kind);
    Response::from_parts(parts, html.into())
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
