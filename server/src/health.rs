//! Whether the process lives and whether it can serve.
//!
//! `/livez` says that the process answers at all. `/readyz` says whether to send
//! it buyers: it stays ready while only PostgreSQL is away, because buying needs
//! Redis alone and orders wait in the queue. Both are asked each time, briefly.

use std::{sync::Arc, time::Duration};

use axum::{Json, Router, extract::State, response::IntoResponse, routing::get};
use http::{StatusCode, header};
use seckill::Shop;
use serde::Serialize;
use tokio::time::timeout;

use crate::{
    metrics::{self, Metrics},
    sessions::Sessions,
};

/// A part that takes longer is away as far as readiness goes.
const WITHIN: Duration = Duration::from_secs(1);

/// What the health checks ask.
#[derive(Clone)]
pub struct Health {
    /// Redis and PostgreSQL.
    pub shop: Shop,
    /// The Redis of the sessions; a worker has none.
    pub sessions: Option<Sessions>,
    /// What `/metrics` prints.
    pub metrics: Arc<Metrics>,
}

/// The answer of `/readyz`: each part, and whether the whole can serve.
#[derive(Debug, Serialize)]
struct Ready {
    ready: bool,
    redis: bool,
    selling: bool,
    sessions: bool,
    postgres: bool,
}

/// The routes for the machines that watch.
pub fn routes(health: Health) -> Router {
    Router::new()
        .route("/livez", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(text))
        .with_state(health)
}

async fn ready(State(health): State<Health>) -> impl IntoResponse {
    let (redis, postgres, sessions) = tokio::join!(
        async { matches!(timeout(WITHIN, health.shop.ping_redis()).await, Ok(Ok(()))) },
        async {
            matches!(
                timeout(WITHIN, health.shop.ping_postgres()).await,
                Ok(Ok(()))
            )
        },
        async {
            match &health.sessions {
                Some(sessions) => timeout(WITHIN, sessions.ping()).await.unwrap_or(false),
                None => true,
            }
        },
    );
    // After a disturbance a process sells only when it has looked what came back.
    let selling = health.sessions.is_none() || health.shop.is_selling();
    let ready = redis && sessions && selling;
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (
        status,
        Json(Ready {
            ready,
            redis,
            selling,
            sessions,
            postgres,
        }),
    )
}

async fn text(State(health): State<Health>) -> impl IntoResponse {
    if let Some(sessions) = &health.sessions {
        health.metrics.sessions_connected(sessions.connected());
    }
    (
        [(header::CONTENT_TYPE, metrics::CONTENT_TYPE)],
        health.metrics.text(),
    )
}
