//! What a browser is told and asked so that no other site acts in a buyer's name.
//!
//! Two defences: a request that changes something and comes from another site is
//! refused before anything looks at it ([`csrf`]), and every answer carries the
//! headers that keep foreign code and frames away ([`set_headers`]).

use app::api::Code;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use leptos::nonce::Nonce;
use tower_http_csrf::csrf::{CsrfLayer, ProtectionError};

use crate::refusal;

/// What an answer that is not a page may load: nothing.
const NOT_A_PAGE: HeaderValue =
    HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

const FIXED: [(HeaderName, HeaderValue); 4] = [
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (
        header::REFERRER_POLICY,
        HeaderValue::from_static("same-origin"),
    ),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (
        HeaderName::from_static("permissions-policy"),
        HeaderValue::from_static("camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ),
];

/// Half a year, as long as browsers remember that the site speaks TLS only.
const TLS_ONLY: HeaderValue = HeaderValue::from_static("max-age=15552000");

/// Builds the answer to a request that another site sent.
pub type Refuse = fn(ProtectionError) -> Response;

/// The layer that refuses changes asked for by another site. It looks at
/// `Sec-Fetch-Site` and `Origin`; scripts and load tests, which send neither, pass.
pub fn csrf() -> CsrfLayer<Refuse> {
    let refuse: Refuse =
        |_| refusal::refuse(Code::CrossSite, "This request came from another site.");
    CsrfLayer::new().with_rejection_response(refuse)
}

/// Adds the headers that every answer carries. `nonce` is that of a page's own
/// inline scripts; an answer without one is no page and may load nothing.
pub fn set_headers(headers: &mut HeaderMap, nonce: Option<&Nonce>, secure: bool) {
    for (name, value) in FIXED {
        headers.insert(name, value);
    }
    let policy = nonce.and_then(|nonce| HeaderValue::try_from(page_policy(nonce)).ok());
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        policy.unwrap_or(NOT_A_PAGE),
    );
    if secure {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, TLS_ONLY);
    }
    // Pages and answers name the signed-in user; only bundles, which say so
    // themselves, may be kept.
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
}

/// Without `strict-dynamic`: leptos preloads scripts without the nonce.
fn page_policy(nonce: &Nonce) -> String {
    format!(
        "default-src 'self'; script-src 'self' 'nonce-{nonce}' 'wasm-unsafe-eval'; style-src 'self'; \
         img-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; \
         form-action 'self'; frame-ancestors 'none'"
    )
}
