//! The list of sales.

use axum::{extract::State, response::Response};
use http::StatusCode;
use leptos::prelude::*;
use seckill::{Role, page::Page};

use super::{
    problem,
    sale::{countdown_texts, price, state_words},
    shell::{Bundle, Head, page},
    visit::Visit,
};
use crate::{
    AppState,
    api::{
        ApiError,
        sale::{Sale, SaleState},
    },
    figures::{digits, left},
    format::{date_time, iso},
    islands::{Countdown, Icon, SaleBadge, SaleNow, state_icon},
    routes,
};

/// A countdown is shown instead of the opening time when it is nearer than this.
const NEAR_MS: i64 = 3_600_000;

/// `GET /`
pub async fn home(State(state): State<AppState>, mut visit: Visit) -> Response {
    // Both ask PostgreSQL: at once, so that its absence costs one wait and not two.
    let (loaded, staff) = tokio::join!(load(&state, &visit), is_staff(&visit));
    visit.staff = staff;
    match loaded {
        Ok((cards, next)) => view_of(&visit, cards, next),
        Err(error) => problem::page_of(&visit, &error),
    }
}

/// Only for the link to the console: whoever cannot be asked about sees none.
async fn is_staff(visit: &Visit) -> bool {
    visit.signed_in().is_some() && visit.caller.require_role(Role::Viewer).await.is_ok()
}

struct Card {
    sale: Sale,
    now_ms: i64,
}

impl Card {
    fn is_near(&self) -> bool {
        self.sale.state == SaleState::Scheduled && self.sale.begin_ms - self.now_ms < NEAR_MS
    }

    fn now(&self) -> SaleNow {
        SaleNow {
            voucher_id: self.sale.voucher_id.clone(),
            state: self.sale.state,
            stock: self.sale.stock,
            total: self.sale.total,
            begin_ms: self.sale.begin_ms,
            end_ms: self.sale.end_ms,
            now_ms: self.now_ms,
        }
    }
}

async fn load(state: &AppState, visit: &Visit) -> Result<(Vec<Card>, Option<String>), ApiError> {
    let page = Page::parse(visit.query("after"), Some("24"))?;
    let sales = state.shop.sales_shown(&page).await?;
    let card = |sale: seckill::Sale| Card {
        now_ms: sale.now_ms,
        sale: Sale::shown(sale, false),
    };
    Ok((sales.items.into_iter().map(card).collect(), sales.next))
}

fn view_of(visit: &Visit, cards: Vec<Card>, next: Option<String>) -> Response {
    let words = &visit.words.sales;
    // Only a countdown moves here.
    let bundle = if cards.iter().any(Card::is_near) {
        Bundle::Shop
    } else {
        Bundle::None
    };
    let head = Head {
        title: words.title.to_owned(),
        description: None,
        price_cents: None,
        bundle,
    };
    page(visit, StatusCode::OK, head, || {
        let list = if cards.is_empty() {
            view! { <p class="empty">{words.empty}</p> }.into_any()
        } else {
            let cards = cards
                .into_iter()
                .map(|card| view_card(visit, card))
                .collect_view();
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

fn view_card(visit: &Visit, card: Card) -> impl IntoView + use<> {
    let words = visit.words;
    let when = view_when(visit, &card);
    let badge = view_badge(visit, &card);
    let sale = card.sale;
    let text = words
        .sale
        .left
        .replace("{left}", &left(sale.stock, sale.total, false))
        .replace("{total}", &digits(sale.total));
    view! {
        <li class="card" data-state=sale.state.as_str()>
            {badge}
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

/// The state: moving where a countdown does, otherwise as it was rendered.
fn view_badge(visit: &Visit, card: &Card) -> AnyView {
    if card.is_near() {
        return view! { <SaleBadge sale=card.now().packed() words=state_words(visit) main=String::new()/> }
            .into_any();
    }
    let (words, now) = (&visit.words.sale, card.now());
    let (icon, word) = if now.is_gone_for_good() {
        ("empty", words.gone)
    } else {
        (state_icon(now.state), words.state(now.state))
    };
    view! {
        <p class="badge" data-state=now.state.as_str()>
            <Icon name=Signal::stored(icon)/>
            <span>{word}</span>
        </p>
    }
    .into_any()
}

fn view_when(visit: &Visit, card: &Card) -> AnyView {
    let words = &visit.words.sales;
    let (sale, now_ms) = (&card.sale, card.now_ms);
    if card.is_near() {
        return view! {
            <Countdown sale=card.now().packed() main=String::new() texts=countdown_texts(visit).packed()/>
        }
        .into_any();
    }
    let (at, phrase) = match sale.state {
        SaleState::Ended => (sale.end_ms, words.ended_at),
        _ if now_ms < sale.begin_ms => (sale.begin_ms, words.opens_at),
        _ => (sale.end_ms, words.open_until),
    };
    view! { <p class="when"><time datetime=iso(at)>{phrase(&date_time(at, visit.lang))}</time></p> }
        .into_any()
}
