//! The list of sales.

use axum::{extract::State, response::Response};
use http::StatusCode;
use leptos::prelude::*;
use seckill::{Role, page::Page};

use super::{
    problem,
    sale::{countdown_texts, price},
    shell::{Bundle, Head, page},
    visit::Visit,
};
use crate::{
    AppState,
    api::{ApiError, sale::{Sale, SaleState}},
    figures::{digits, left},
    format::{date_time, iso},
    islands::{Countdown, Icon, state_icon},
    routes,
};

/// A countdown is shown instead of the opening time when it is nearer than this.
const NEAR_MS: i64 = 3_600_000;

/// `GET /`
pub async fn home(State(state): State<AppState>, mut visit: Visit) -> Response {
    if visit.signed_in().is_some() {
        // Only for the link to the console; whoever is not of the staff sees none.
        let _ = visit.require_role(Role::Viewer).await;
    }
    match load(&state, &visit).await {
        Ok((cards, next)) => view_of(&visit, cards, next),
        Err(error) => problem::page_of(&visit, &error),
    }
}

struct Card {
    sale: Sale,
    now_ms: i64,
}

async fn load(state: &AppState, visit: &Visit) -> Result<(Vec<Card>, Option<String>), ApiError> {
    let page = Page::parse(visit.query("after"), Some("24"))?;
    let sales = state.shop.sales(&page).await?;
    let card = |sale: seckill::Sale| Card { now_ms: sale.now_ms, sale: Sale::shown(sale, false) };
    Ok((sales.items.into_iter().map(card).collect(), sales.next))
}

fn view_of(visit: &Visit, cards: Vec<Card>, next: Option<String>) -> Response {
    let words = &visit.words.sales;
    let head = Head { title: words.title.to_owned(), description: None, bundle: Bundle::Shop };
    page(visit, StatusCode::OK, head, || {
        let list = if cards.is_empty() {
            view! { <p class="empty">{words.empty}</p> }.into_any()
        } else {
            let cards = cards.into_iter().map(|card| view_card(visit, card)).collect_view();
            view! { <ul class="cards">{cards}</ul> }.into_any()
        };
        let more = next.map(|next| {
            let address = format!("/?after={}", routes::escape(&next));
            view! { <p><a class="button quiet" href=address>{visit.words.shell.more}</a></p> }
        });
        view! {
            <h1>{words.title}</h1>
            <p class="lead">{words.lead}</p>
            {list}
            {more}
        }
    })
}

fn view_card(visit: &Visit, Card { sale, now_ms }: Card) -> impl IntoView + use<> {
    let words = visit.words;
    let text = words.sale.left.replace("{left}", &left(sale.stock, sale.total, false)).replace("{total}", &digits(sale.total));
    let when = view_when(visit, &sale, now_ms);
    view! {
        <li class="card" data-state=sale.state.as_str()>
            <p class="badge" data-state=sale.state.as_str()>
                <Icon name=Signal::stored(state_icon(sale.state))/>
                <span>{words.sale.state(sale.state)}</span>
            </p>
            <h2><a href=routes::sale(&sale.voucher_id)>{sale.title}</a></h2>
            <p class="muted">{sale.subtitle}</p>
            {price(visit, sale.pay_cents, sale.value_cents)}
            <div class="stock">
                <progress class="stock-bar" aria-label=words.sale.left_label max=sale.total.max(1) value=sale.stock.max(0)></progress>
                <p class="stock-figure">{text}</p>
            </div>
            {when}
        </li>
    }
}

fn view_when(visit: &Visit, sale: &Sale, now_ms: i64) -> AnyView {
    let words = &visit.words.sales;
    let near = sale.state == SaleState::Scheduled && sale.begin_ms - now_ms < NEAR_MS;
    if near {
        return view! {
            <Countdown voucher_id=sale.voucher_id.clone() begin_ms=sale.begin_ms end_ms=sale.end_ms
                now_ms main=false texts=countdown_texts(visit)/>
        }
        .into_any();
    }
    let (at, phrase) = match sale.state {
        SaleState::Ended => (sale.end_ms, words.ended_at),
        _ if now_ms < sale.begin_ms => (sale.begin_ms, words.opens_at),
        _ => (sale.end_ms, words.open_until),
    };
    view! { <p class="when"><time datetime=iso(at)>{phrase(&date_time(at, visit.lang))}</time></p> }.into_any()
}
