//! Dead letters, and the two ways to settle one.

use axum::{extract::State, response::Response};
use leptos::prelude::*;
use seckill::{Role, page::Page};

use super::{
    super::{problem, shell::Bundle, visit::Visit},
    frame::{confirmed, frame, outcome},
    pending::lane_filter,
};
use crate::{
    AppState,
    api::{ApiError, Listed, admin_dead_letter::DeadLetter, admin_queue::parse_lane},
    caller::rank,
    figures::count,
    format::{iso, short_date_time},
    routes,
};

/// `GET /admin/dead-letters`, `?lane=`, `?after=`
pub async fn admin_dead_letters(State(state): State<AppState>, mut visit: Visit) -> Response {
    match load(&state, &mut visit).await {
        Ok((page, may_settle)) => view_of(&state, &visit, page, may_settle),
        Err(error) => problem::page_of(&visit, &error),
    }
}

async fn load(state: &AppState, visit: &mut Visit) -> Result<(Listed<DeadLetter>, bool), ApiError> {
    let user = visit.require_role(Role::Viewer).await?;
    let lane = parse_lane(visit.query("lane"))?;
    let page = Page::parse(visit.query("after"), None)?;
    let letters = state.shop.dead_letters(lane, &page).await?;
    Ok((
        Listed::from_paged(letters, DeadLetter::from),
        rank(user.role) >= rank(Role::Operator),
    ))
}

fn view_of(
    state: &AppState,
    visit: &Visit,
    page: Listed<DeadLetter>,
    may_settle: bool,
) -> Response {
    let words = &visit.words.console;
    let (dead, panel) = (&words.dead, &words.panel);
    let lane = visit.query("lane").unwrap_or_default().to_owned();
    let lanes: Vec<_> = state
        .snapshot
        .borrow()
        .overview
        .lanes
        .iter()
        .map(|lane| lane.lane.to_string())
        .collect();
    frame(visit, words.dead_letters, Bundle::None, || {
        let done = [
            ("replayed", dead.done_replayed),
            ("discarded", dead.done_discarded),
            ("confirmed", dead.done_confirmed),
            ("removed", dead.done_removed),
        ];
        let empty = page
            .items
            .is_empty()
            .then(|| view! { <p class="empty">{dead.empty}</p> });
        let rows = page
            .items
            .into_iter()
            .map(|letter| view_row(visit, letter, may_settle))
            .collect_view();
        let next = page.next.map(|next| {
            let address = format!(
                "{}?lane={}&after={}",
                routes::ADMIN_DEAD_LETTERS,
                routes::escape(&lane),
                routes::escape(&next),
            );
            view! { <p><a class="button quiet small" href=address>{panel.more}</a></p> }
        });
        view! {
            <h1>{words.dead_letters}</h1>
            <p class="muted">{words.dead_lead}</p>
            {outcome(visit, &done, words.sale.not_done)}
            {lane_filter(visit, routes::ADMIN_DEAD_LETTERS, &lanes, &lane)}
            <div class="table" tabindex="0" role="region" aria-label=words.dead_letters>
                <table>
                    <thead><tr>
                        <th scope="col">{panel.entry}</th>
                        <th scope="col">{dead.at}</th>
                        <th scope="col">{dead.reason}</th>
                        <th scope="col">{panel.order}</th>
                        <th scope="col">{panel.voucher}</th>
                        <th scope="col">{panel.user}</th>
                        <th scope="col" class="number">{panel.deliveries}</th>
                        <th scope="col">{dead.payload}</th>
                        <th scope="col">{dead.settle}</th>
                    </tr></thead>
                    <tbody>{rows}</tbody>
                </table>
                {empty}
            </div>
            {next}
        }
    })
}

fn view_row(visit: &Visit, letter: DeadLetter, may_settle: bool) -> impl IntoView + use<> {
    let words = &visit.words.console.dead;
    let settle = may_settle.then(|| {
        view! {
            <div class="row-actions">
                <form method="post" action="/api/admin/replay">
                    <input type="hidden" name="entry_id" value=letter.entry_id.clone()/>
                    <button type="submit" class="button quiet small" title=words.replay_hint>{words.replay}</button>
                </form>
                {confirmed(words.discard_confirm, words.discard_hint, "/api/admin/discard", words.discard,
                    ("entry_id", letter.entry_id.clone()))}
            </div>
        }
    });
    view! {
        <tr>
            <th scope="row" class="code">{letter.entry_id}</th>
            <td><time datetime=iso(letter.at_ms)>{short_date_time(letter.at_ms)}</time></td>
            <td>{letter.reason}</td>
            <td class="code">{letter.order_id}</td>
            <td class="code">{letter.voucher_id}</td>
            <td class="code">{letter.user_id}</td>
            <td class="number">{count(letter.deliveries)}</td>
            <td><details><summary>{words.payload}</summary><pre class="payload">{letter.payload}</pre></details></td>
            <td>{settle}</td>
        </tr>
    }
}
