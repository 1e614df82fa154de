//! Entries that were delivered to a worker and not yet acknowledged.

use axum::{extract::State, response::Response};
use leptos::prelude::*;
use seckill::Role;

use super::{
    super::{problem, shell::Bundle, visit::Visit},
    frame::{frame, panel_texts},
};
use crate::{
    AppState,
    api::{
        ApiError, Listed,
        admin_queue::{Pending, pending_page},
    },
    islands::PendingPanel,
    routes,
};

/// `GET /admin/pending`, `?lane=`, `?after=`
pub async fn admin_pending(State(state): State<AppState>, mut visit: Visit) -> Response {
    match load(&state, &mut visit).await {
        Ok(page) => view_of(&state, &visit, page),
        Err(error) => problem::page_of(&visit, &error),
    }
}

async fn load(state: &AppState, visit: &mut Visit) -> Result<Listed<Pending>, ApiError> {
    visit.require_role(Role::Viewer).await?;
    pending_page(state, visit.query("lane"), visit.query("after"), None).await
}

fn view_of(state: &AppState, visit: &Visit, page: Listed<Pending>) -> Response {
    let words = &visit.words.console;
    let lane = visit.query("lane").unwrap_or_default().to_owned();
    let after = visit.query("after").unwrap_or_default().to_owned();
    let snapshot = state.snapshot.borrow().clone();
    let lanes: Vec<_> = snapshot
        .overview
        .lanes
        .iter()
        .map(|lane| lane.lane.to_string())
        .collect();
    frame(visit, words.pending, Bundle::Console, || {
        let next = page.next.as_deref().map(|next| {
            let address = format!(
                "{}?lane={}&after={}",
                routes::ADMIN_PENDING,
                routes::escape(&lane),
                routes::escape(next),
            );
            view! { <p><a class="button quiet small" href=address>{words.panel.more}</a></p> }
        });
        view! {
            <h1>{words.pending}</h1>
            <p class="muted">{words.pending_lead}</p>
            {lane_filter(visit, routes::ADMIN_PENDING, &lanes, &lane)}
            <PendingPanel page now_ms=snapshot.overview.at_ms lane after texts=panel_texts(visit)/>
            {next}
        }
    })
}

/// A filter by lane; only where there is more than one.
pub(super) fn lane_filter(
    visit: &Visit,
    action: &'static str,
    lanes: &[String],
    chosen: &str,
) -> Option<impl IntoView + use<>> {
    let words = &visit.words.console.panel;
    (lanes.len() > 1).then(|| {
        let options = lanes
            .iter()
            .map(|lane| view! { <option value=lane.clone() selected=lane == chosen>{lane.clone()}</option> })
            .collect_view();
        view! {
            <form method="get" action=action class="filter">
                <label for="lane">{words.filter_lane}</label>
                <select id="lane" name="lane"><option value="">{words.everything}</option>{options}</select>
                <button type="submit" class="button quiet small">{words.filter}</button>
            </form>
        }
    })
}
