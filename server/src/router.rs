//! Every route of the process, grouped by who calls it, and the layers around them.

use std::sync::Arc;

use app::{AppState, pages, routes};
use axum::{
    Router,
    extract::{Request, State},
    handler::Handler,
    middleware::{from_fn, from_fn_with_state, map_response},
    response::{IntoResponse, Response},
    routing::{MethodFilter, get, get_service, on, post},
};
use http::Method;
use leptos::context::provide_context;
use tower_http::{CompressionLevel, compression::CompressionLayer};

use crate::{
    assets::{self, Assets},
    edge::{self, Edge},
    forms,
    health::{self, Health},
    refusal, security,
    sessions::{self, Sessions},
};

const GET: Method = Method::GET;
const POST: Method = Method::POST;

/// What anybody may call.
pub const FOR_ANYBODY: [(Method, &str); 7] = [
    (POST, "/api/register"),
    (POST, "/api/login"),
    (POST, "/api/logout"),
    (GET, "/api/me"),
    (GET, "/api/clock"),
    (GET, "/api/sales"),
    (GET, "/api/sale"),
];

/// What a signed-in buyer calls; each asks for the session itself.
pub const FOR_BUYERS: [(Method, &str); 3] = [
    (POST, "/api/buy"),
    (GET, "/api/order"),
    (GET, "/api/orders"),
];

/// What the console calls; each asks for the role itself.
pub const FOR_OPERATORS: [(Method, &str); 12] = [
    (POST, "/api/admin/create_voucher"),
    (POST, "/api/admin/add_stock"),
    (POST, "/api/admin/pause_sale"),
    (POST, "/api/admin/resume_sale"),
    (POST, "/api/admin/end_sale"),
    (GET, "/api/admin/overview"),
    (GET, "/api/admin/pending"),
    (GET, "/api/admin/dead_letters"),
    (POST, "/api/admin/replay"),
    (POST, "/api/admin/discard"),
    (GET, "/api/admin/reports"),
    (GET, "/api/admin/audit"),
];

/// The whole site.
pub fn site(
    state: AppState,
    sessions: &Sessions,
    assets: Assets,
    health: Health,
    edge: Arc<Edge>,
) -> Router {
    let people = pages()
        .merge(server_functions(&state))
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        .with_state(state)
        .layer(from_fn(sessions::renew))
        .layer(sessions.layer())
        .layer(map_response(sessions::complete_removal))
        .layer(from_fn(forms::translate));
    // Added after the layers above, so none of them runs for these.
    let machines = people
        .route(
            "/pkg/{hash}/{*file}",
            get_service(assets::file.with_state(assets)),
        )
        .merge(health::routes(health));
    edged(machines.layer(security::csrf()), edge)
}

/// What a worker serves: nothing but its health.
pub fn worker(health: Health, edge: Arc<Edge>) -> Router {
    edged(
        health::routes(health).fallback(async || refusal::no_endpoint()),
        edge,
    )
}

fn edged(router: Router, edge: Arc<Edge>) -> Router {
    router.layer(from_fn_with_state(edge, edge::pass))
}

/// What a person opens.
fn pages() -> Router<AppState> {
    Router::new()
        // buyers
        .route(routes::HOME, get(pages::home))
        .route(routes::SALE, get(pages::sale))
        .route(routes::ORDERS, get(pages::orders))
        .route(routes::ORDER, get(pages::order))
        .route(routes::LOGIN, get(pages::login))
        .route(routes::REGISTER, get(pages::register))
        .route(routes::ROAD, get(pages::road))
        .route(routes::PROBLEM, get(pages::problem))
        .route(routes::PREFERENCES, post(pages::preferences))
        // operators
        .route(routes::ADMIN, get(pages::admin))
        .route(routes::ADMIN_SALES, get(pages::admin_sales))
        .route(routes::ADMIN_QUEUE, get(pages::admin_queue))
        .route(routes::ADMIN_PENDING, get(pages::admin_pending))
        .route(routes::ADMIN_DEAD_LETTERS, get(pages::admin_dead_letters))
        .route(routes::ADMIN_REPORTS, get(pages::admin_reports))
        .route(routes::ADMIN_AUDIT, get(pages::admin_audit))
        // Pages hold nothing secret beside what a visitor typed, so compressing them
        // tells nobody anything; answers of the API are too small to gain by it.
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
}

fn server_functions(state: &AppState) -> Router<AppState> {
    let all = FOR_ANYBODY
        .into_iter()
        .chain(FOR_BUYERS)
        .chain(FOR_OPERATORS);
    all.fold(Router::new(), |router, (method, path)| {
        let state = state.clone();
        let filter = if method == POST {
            MethodFilter::POST
        } else {
            MethodFilter::GET
        };
        let call = move |request| call(state.clone(), method.clone(), request);
        router.route(path, on(filter, call))
    })
}

async fn call(state: AppState, method: Method, mut request: Request) -> Response {
    // The router lets HEAD into a GET route; the registry of functions does not know it.
    *request.method_mut() = method;
    let context = move || provide_context(state.clone());
    leptos_axum::handle_server_fns_with_context(context, request)
        .await
        .into_response()
}

async fn not_found(State(state): State<AppState>, request: Request) -> Response {
    if forms::is_api(request.uri().path()) {
        return refusal::no_endpoint();
    }
    pages::not_found.call(request, state).await
}

async fn wrong_method() -> Response {
    refusal::wrong_method()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_server_function_is_mounted_and_nothing_else() {
        let key = |(method, path): (Method, &str)| format!("{method} {path}");
        let mounted: BTreeSet<_> = FOR_ANYBODY
            .into_iter()
            .chain(FOR_BUYERS)
            .chain(FOR_OPERATORS)
            .map(key)
            .collect();
        let registered: BTreeSet<_> = leptos::server_fn::axum::server_fn_paths()
            .map(|(path, method)| key((method, path)))
            .collect();
        assert_eq!(mounted, registered);
    }
}
