//! Overview: stores, sums, and each sale's account.

use axum::{extract::State, response::Response};
use leptos::prelude::*;
use seckill::Role;

use super::{
    super::{problem, shell::Bundle, visit::Visit},
    frame::{frame, panel_texts},
};
use crate::{
    AppState,
    api::admin_queue::Overview,
    islands::{PanelScope, QueuePanel},
};

/// `GET /admin`
pub async fn admin(State(state): State<AppState>, mut visit: Visit) -> Response {
    if let Err(error) = visit.require_role(Role::Viewer).await {
        return problem::page_of(&visit, &error);
    }
    let words = &visit.words.console;
    let overview = Overview::from(&state.snapshot.borrow().overview);
    frame(&visit, words.overview, Bundle::Console, || {
        view! {
            <h1>{words.overview}</h1>
            <p class="muted">{words.overview_lead}</p>
            <QueuePanel overview scope=PanelScope::Overview texts=panel_texts(&visit)/>
        }
    })
}
