//! What every request passes first and every answer last.
//!
//! In order: it gets an id and an address, finds a seat or is refused, runs
//! under a deadline, and whatever comes out (an answer, a panic, no answer in
//! time) is counted, logged if it is a fault, and dressed in security headers.
//! One layer rather than seven, because each costs an allocation per request.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use app::{
    api::{ApiError, Code},
    request::{ClientAddress, RequestId},
};
use axum::{
    extract::{ConnectInfo, MatchedPath, Request, State},
    middleware::Next,
    response::Response,
};
use futures::FutureExt;
use http::HeaderValue;
use leptos::nonce::Nonce;
use tracing::{Instrument, debug, error, info_span, warn};

use crate::{
    address::TrustedProxies,
    config::Config,
    forms,
    metrics::Metrics,
    overload::{self, Gate},
    refusal, request_id, security,
};

/// What the layer knows.
#[derive(Debug)]
pub struct Edge {
    /// Seats for requests under way.
    gate: Gate,
    /// Who may say where a request came from.
    proxies: TrustedProxies,
    /// Where answers are counted.
    metrics: Arc<Metrics>,
    /// How long a request may take.
    timeout: Duration,
    /// Whether the site is served over TLS.
    secure: bool,
}

impl Edge {
    /// The layer as the settings want it.
    pub fn new(config: &Config, metrics: Arc<Metrics>) -> Self {
        Self {
            gate: Gate::new(config.max_concurrent),
            proxies: TrustedProxies::new(config.trusted_proxies.clone()),
            metrics,
            timeout: config.request_timeout,
            secure: config.secure,
        }
    }
}

/// The layer.
pub async fn pass(State(edge): State<Arc<Edge>>, mut request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let _open = edge.metrics.enter();
    let peer = peer(&request);
    let client = edge.proxies.client(peer, request.headers());
    let id = request_id::of(request.headers(), edge.proxies.holds(peer), rand::random);
    let path = request.uri().path().to_owned();
    let span = info_span!("request", request_id = %id, method = %request.method(), path = %path);
    let nonce = is_page(&path).then(Nonce::new);
    let browser = forms::wants_html(request.headers());
    let route = request.extensions().get::<MatchedPath>().cloned();

    request.extensions_mut().insert(ClientAddress(client));
    request.extensions_mut().insert(RequestId(id.clone()));
    if let Some(nonce) = &nonce {
        request.extensions_mut().insert(nonce.clone());
    }
    let mut response = run(&edge, &path, request, next)
        .instrument(span.clone())
        .await;
    if browser {
        response = refusal::for_browser(response);
    }

    let headers = response.headers_mut();
    security::set_headers(headers, nonce.as_ref(), edge.secure);
    if let Ok(id) = HeaderValue::try_from(id) {
        headers.insert(request_id::HEADER, id);
    }
    let (status, seconds) = (response.status(), begun.elapsed().as_secs_f64());
    edge.metrics.answered(
        route.as_ref().map_or("none", MatchedPath::as_str),
        status,
        seconds,
    );
    let _in_span = span.enter();
    if status.is_server_error() && !overload::exempt(&path) {
        warn!(status = status.as_u16(), seconds, "a request failed");
    } else {
        debug!(status = status.as_u16(), seconds, "a request was answered");
    }
    response
}

/// Runs the request with a seat, under the deadline, behind a net for panics.
async fn run(edge: &Edge, path: &str, request: Request, next: Next) -> Response {
    let seat = edge.gate.enter();
    if seat.is_none() && !overload::exempt(path) {
        edge.metrics.overloaded();
        return refusal::refuse(
            Code::Unavailable,
            "The shop is full right now. Try again in a moment.",
        );
    }
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind();
    match tokio::time::timeout(edge.timeout, answer).await {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => {
            edge.metrics.panicked();
            error!(panic = panic_text(&*panic), "a handler panicked");
            refusal::answer(&ApiError::internal())
        }
        Err(_) => refusal::answer(&ApiError::unavailable()),
    }
}

fn peer(request: &Request) -> IpAddr {
    let connected = request.extensions().get::<ConnectInfo<SocketAddr>>();
    connected.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |info| info.0.ip())
}

/// Whether the path's answer is HTML, which needs a nonce.
fn is_page(path: &str) -> bool {
    !path.starts_with("/api/") && !path.starts_with("/pkg/") && !overload::exempt(path)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
}
