//! The signed-in buyer's orders, and one of them.

use axum::{
    extract::{Path, State, rejection::PathRejection},
    response::Response,
};
use http::StatusCode;
use leptos::prelude::*;
use seckill::{ids::OrderId, page::Page};

use super::{
    problem,
    sale::path_text,
    shell::{Bundle, Head, page},
    visit::Visit,
};
use crate::{
    AppState,
    api::{
        ApiError, Listed,
        order::{Order, OrderState},
    },
    format::{date_time, iso},
    islands::{CopyButton, Icon, OrderNow, OrderStatus, OrderTexts, packed::list},
    routes,
    words::OrderWords,
};

/// `GET /orders`
pub async fn orders(State(state): State<AppState>, visit: Visit) -> Response {
    match load_list(&state, &visit).await {
        Ok(list) => view_list(&visit, list),
        Err(error) => problem::page_of(&visit, &error),
    }
}

/// `GET /orders/{order_id}`
pub async fn order(
    State(state): State<AppState>,
    id: Result<Path<String>, PathRejection>,
    visit: Visit,
) -> Response {
    match load_one(&state, &visit, &path_text(id)).await {
        Ok(order) => view_one(&visit, order),
        Err(error) => problem::page_of(&visit, &error),
    }
}

async fn load_list(state: &AppState, visit: &Visit) -> Result<Listed<Order>, ApiError> {
    let user = visit.require_user()?.user_id;
    let page = Page::parse(visit.query("after"), None)?;
    Ok(Listed::from_paged(
        state.shop.orders(user, &page).await?,
        Order::from,
    ))
}

async fn load_one(state: &AppState, visit: &Visit, id: &str) -> Result<Order, ApiError> {
    let user = visit.require_user()?.user_id;
    let id: OrderId = id.parse().map_err(|_| seckill::Error::NotFound)?;
    Ok(state.shop.order(user, id).await?.into())
}

fn view_list(visit: &Visit, list: Listed<Order>) -> Response {
    let words = &visit.words.order;
    page(visit, StatusCode::OK, Head::plain(words.list_title), || {
        let body = if list.items.is_empty() {
            view! {
                <div class="empty">
                    <p>{words.list_empty}</p>
                    <a class="button" href=routes::HOME>{words.list_empty_link}</a>
                </div>
            }
            .into_any()
        } else {
            let rows = list
                .items
                .into_iter()
                .map(|order| view_row(visit, order))
                .collect_view();
            view! { <ul class="orders">{rows}</ul> }.into_any()
        };
        let more = list.next.map(|next| {
            let address = format!("{}?after={}", routes::ORDERS, routes::escape(&next));
            view! { <p><a class="button quiet" href=address>{visit.words.shell.more}</a></p> }
        });
        view! { <h1>{words.list_title}</h1> {body} {more} }
    })
}

fn view_row(visit: &Visit, order: Order) -> impl IntoView + use<> {
    let words = &visit.words.order;
    let icon = match order.state {
        OrderState::Queued => "hourglass",
        OrderState::Confirmed => "check",
        OrderState::Failed => "cross",
    };
    view! {
        <li class="order-row">
            <div>
                <a href=routes::order(&order.order_id)>{order.title}</a>
                <p class="muted small">
                    <span class="code">{order.order_id}</span>" · "
                    <time datetime=iso(order.admitted_ms)>{date_time(order.admitted_ms, visit.lang)}</time>
                </p>
            </div>
            <p class="badge" data-state=order.state.as_str()>
                <Icon name=Signal::stored(icon)/>
                <span>{words.states[OrderWords::index(order.state)]}</span>
            </p>
        </li>
    }
}

fn view_one(visit: &Visit, order: Order) -> Response {
    let words = &visit.words.order;
    let head = Head {
        title: words.title.to_owned(),
        description: None,
        price_cents: None,
        bundle: Bundle::Shop,
    };
    page(visit, StatusCode::OK, head, || {
        let texts = OrderTexts {
            steps: list(&words.steps),
            states: list(&words.states),
            headlines: list(&words.headlines),
            next: list(&words.next),
            slow: words.slow.to_owned(),
            reload: words.reload.to_owned(),
            away: words.away.to_owned(),
            zone: words.beijing.to_owned(),
        };
        let queued = order.state == OrderState::Queued;
        let here = routes::order(&order.order_id);
        let no_script = queued.then(|| {
            view! {
                <noscript>
                    <p class="note" data-tone="info">{words.no_script}" "<a href=here>{words.reload}</a></p>
                </noscript>
            }
        });
        view! {
            <article class="order">
                <h1>{words.title}</h1>
                <p class="lead">{order.title.clone()}</p>
                <OrderStatus order=OrderNow::from(order.clone()).packed() texts=texts.packed()/>
                {no_script}
                <dl class="order-id">
                    <dt>{words.number}</dt>
                    <dd class="copyable" data-copy="">
                        <output class="code" data-testid="order-id">{order.order_id.clone()}</output>
                        <CopyButton text=order.order_id.clone() label=words.copy.to_owned() done=words.copied.to_owned()/>
                    </dd>
                    <dd class="muted small">{words.copy_hint}</dd>
                </dl>
                <p class="actions">
                    <a class="button quiet" href=routes::ORDERS>{words.to_orders}</a>
                    <a class="button quiet" href=routes::sale(&order.voucher_id)>{words.to_sale}</a>
                </p>
            </article>
        }
    })
}
