//! The queue: lanes and workers.

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

/// `GET /admin/queue`
pub async fn admin_queue(State(state): State<AppState>, mut visit: Visit) -> Response {
    if let Err(error) = visit.require_role(Role::Viewer).await {
        return problem::page_of(&visit, &error);
    }
    let words = &visit.words.console;
    let overview = Overview::from(&state.snapshot.borrow().overview);
    frame(&visit, words.queue, Bundle::Console, || {
        view! {
            <h1>{words.queue}</h1>
            <p class="muted">{words.queue_lead}</p>
            <QueuePanel overview scope=PanelScope::Queue texts=panel_texts(&visit)/>
        }
    })
}
