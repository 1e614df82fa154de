//! One sale: price, countdown, bar, button, rules.

use axum::{
    extract::{Path, State, rejection::PathRejection},
    response::Response,
};
use http::StatusCode;
use leptos::prelude::*;
use seckill::ids::VoucherId;

use super::{
    problem,
    shell::{Bundle, Head, page},
    visit::Visit,
};
use crate::{
    AppState,
    api::{
        ApiError, Code,
        buy::Outcome,
        sale::{Sale, SaleState},
    },
    format::{date_time, iso, money},
    islands::{
        BuyButton, BuyTexts, Countdown, CountdownTexts, Icon, LiveNote, LiveTexts, SaleBadge,
        SaleNow, StockBar, packed::list,
    },
    routes,
};

/// `GET /sales/{voucher_id}`
pub async fn sale(
    State(state): State<AppState>,
    id: Result<Path<String>, PathRejection>,
    visit: Visit,
) -> Response {
    match load(&state, &path_text(id)).await {
        Ok((sale, now_ms)) => {
            let held = held(&visit, &sale, now_ms).await;
            view_of(&visit, sale, now_ms, held)
        }
        Err(error) => problem::page_of(&visit, &error),
    }
}

/// The last part of a page's address; one that is no text is as good as one that names nothing.
pub(crate) fn path_text(part: Result<Path<String>, PathRejection>) -> String {
    part.map(|Path(text)| text).unwrap_or_default()
}

/// Coarse for everybody, admins too: the page asks PostgreSQL for nobody's role.
async fn load(state: &AppState, id: &str) -> Result<(Sale, i64), ApiError> {
    let id: VoucherId = id.parse().map_err(|_| seckill::Error::NotFound)?;
    let sale = state.shop.sale_shown(id).await?;
    let now_ms = sale.now_ms;
    Ok((Sale::shown(sale, false), now_ms))
}

/// The order that whoever is signed in has of this sale, so that the page says so before a
/// press does. Nobody has one before it begins.
async fn held(visit: &Visit, sale: &Sale, now_ms: i64) -> Option<String> {
    let user = visit.signed_in()?.user_id;
    if now_ms < sale.begin_ms {
        return None;
    }
    let id = sale.voucher_id.parse().ok()?;
    match visit.state.shop.order_held(user, id).await {
        Ok(order) => order.map(|order| order.to_string()),
        // The page is as good without: a press tells the same.
        Err(error) => {
            tracing::warn!(%error, voucher_id = %id, "whether a visitor has an order is not known");
            None
        }
    }
}

fn view_of(visit: &Visit, sale: Sale, now_ms: i64, held: Option<String>) -> Response {
    let words = &visit.words.sale;
    let head = Head {
        title: sale.title.clone(),
        description: Some((words.description)(
            &money(sale.pay_cents),
            &money(sale.value_cents),
        )),
        price_cents: Some(sale.pay_cents),
        bundle: Bundle::Shop,
    };
    page(visit, StatusCode::OK, head, || {
        let now = SaleNow {
            voucher_id: sale.voucher_id.clone(),
            state: sale.state,
            stock: sale.stock,
            total: sale.total,
            begin_ms: sale.begin_ms,
            end_ms: sale.end_ms,
            now_ms,
        };
        let packed_sale = now.packed();
        let live = live_texts(visit);
        let signed_in = if visit.signed_in().is_some() { "1" } else { "" };
        let here = routes::sale(&sale.voucher_id);
        let login = routes::login(&here);
        let stranger = visit.user.as_ref().is_ok_and(Option::is_none);
        let sign_in = (stranger && sale.state != SaleState::Ended).then(|| {
            view! {
                <p class="note" data-tone="info">
                    <Icon name="lock"/>
                    <span>{words.sign_in_first}" "<a href=login.clone()>{words.sign_in_link}</a></span>
                </p>
            }
        });
        let held = held.map(|order| {
            view! {
                <p class="note" data-tone="ok" data-testid="held">
                    <Icon name="check"/>
                    <span>{words.held}" "<a href=routes::order(&order)>{words.held_link}</a></span>
                </p>
            }
        });
        let when = (words.when)(
            &date_time(sale.begin_ms, visit.lang),
            &date_time(sale.end_ms, visit.lang),
        );
        let rules = if sale.rules.trim().is_empty() {
            words.no_rules.to_owned()
        } else {
            sale.rules
        };
        view! {
            <a class="back" href=routes::HOME><Icon name="back"/>{words.back}</a>
            <article class="sale">
                <div class="ticket">
                    <SaleBadge sale=packed_sale.clone() words=state_words(visit) main="1".to_owned()/>
                    <h1>{sale.title}</h1>
                    <p class="lead">{sale.subtitle}</p>
                    <div class="stub">{price(visit, sale.pay_cents, sale.value_cents)}</div>
                </div>
                <div class="decision">
                    {sign_in}
                    {held}
                    <LiveNote sale=packed_sale.clone() signed_in=signed_in.to_owned() login=login.clone() texts=live.packed()/>
                    <Countdown sale=packed_sale.clone() main="1".to_owned() texts=countdown_texts(visit).packed()/>
                    <StockBar sale=packed_sale.clone() label=words.left_label.to_owned() text=words.left.to_owned()/>
                    <BuyButton sale=packed_sale answer=answer(visit) login texts=buy_texts(visit).packed()/>
                    <p class="loading muted small center" data-testid="loading">
                        <Icon name="hourglass"/>
                        <span class="loading-on">{words.loading}</span>
                        <span class="loading-failed">{words.not_live}" "<a href=here>{words.reload}</a></span>
                    </p>
                    <p class="muted small center">{words.one_each}</p>
                </div>
                <div class="about">
                    <p class="when"><time datetime=iso(sale.begin_ms)>{when}</time></p>
                    <details class="rules">
                        <summary>{words.rules}</summary>
                        <p class="rules-text">{rules}</p>
                    </details>
                </div>
            </article>
        }
    })
}

/// What a press that came as a plain form was answered with.
fn answer(visit: &Visit) -> String {
    let outcome = visit
        .query("outcome")
        .and_then(Outcome::parse)
        // Whoever got an order was sent to its page; an address must not tell anybody else so.
        .filter(|outcome| !matches!(outcome, Outcome::Admitted | Outcome::AlreadyOrdered))
        .map(Outcome::as_str);
    let error = || visit.query("error").and_then(Code::parse);
    let word = outcome.or_else(|| error().map(Code::as_str));
    word.unwrap_or_default().to_owned()
}

/// Price large, face value struck through, what is saved.
pub(crate) fn price(visit: &Visit, pay_cents: i64, value_cents: i64) -> impl IntoView + use<> {
    let words = &visit.words.sale;
    let saved = (value_cents > pay_cents).then(|| {
        view! {
            <span class="face-value">
                <span class="visually-hidden">{words.face_value}" "</span><s>{money(value_cents)}</s>
            </span>
            <span class="saved">{(words.saved)(&money(value_cents - pay_cents))}</span>
        }
    });
    view! {
        <p class="price">
            <span class="visually-hidden">{words.price}" "</span>
            <strong>{money(pay_cents)}</strong>
            {saved}
        </p>
    }
}

/// The countdown's texts in the visitor's language.
pub(crate) fn countdown_texts(visit: &Visit) -> CountdownTexts {
    let words = &visit.words.sale;
    CountdownTexts {
        opens_in: words.opens_in.to_owned(),
        last_minute: words.last_minute.to_owned(),
        ends_in: words.ends_in.to_owned(),
        ended: words.ended.to_owned(),
        day: words.day.to_owned(),
        clock: words.clock.to_owned(),
        your_time: words.your_time.to_owned(),
        announce: list(&words.announce),
        opened: words.opened.to_owned(),
    }
}

/// The words of the states, for a badge.
pub(crate) fn state_words(visit: &Visit) -> String {
    let words = &visit.words.sale;
    let [a, b, c, d, e, f] = words.states;
    list(&[a, b, c, d, e, f, words.gone])
}

fn live_texts(visit: &Visit) -> LiveTexts {
    let words = &visit.words.live;
    LiveTexts {
        offline: words.offline.to_owned(),
        away: words.away.to_owned(),
        too_many: words.too_many.to_owned(),
        gone: words.gone.to_owned(),
        gone_link: words.gone_link.to_owned(),
        updated: words.updated.to_owned(),
        reload: words.reload.to_owned(),
        signed_out: words.signed_out.to_owned(),
        sign_in: words.sign_in.to_owned(),
    }
}

fn buy_texts(visit: &Visit) -> BuyTexts {
    let (sale, answers, problem) = (
        &visit.words.sale,
        &visit.words.answers,
        &visit.words.problem,
    );
    BuyTexts {
        buy: sale.buy.to_owned(),
        waiting: sale.buy_waiting.to_owned(),
        sending: sale.buy_sending.to_owned(),
        closed: sale.buy_closed.to_owned(),
        states: list(&sale.states),
        outcomes: list(&Outcome::ALL.map(|outcome| answers.outcome(outcome))),
        codes: list(&Code::ALL.map(|code| problem.of(code).1)),
        wait: answers.wait.to_owned(),
        request: problem.request.to_owned(),
        offline: answers.offline.to_owned(),
        gave_up: answers.gave_up.to_owned(),
    }
}
