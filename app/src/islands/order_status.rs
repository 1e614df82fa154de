//! An order on its way: accepted, queued, confirmed.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use super::Icon;
use crate::{
    api::order::{Order, OrderState},
    figures::clock_time,
};

/// The order's texts; lists are in the order queued, confirmed, failed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OrderTexts {
    /// The names of the three steps.
    pub steps: Vec<String>,
    /// The words of the states.
    pub states: Vec<String>,
    /// The large line.
    pub headlines: Vec<String>,
    /// What happens next.
    pub next: Vec<String>,
    /// It takes long.
    pub slow: String,
    /// The link to look again.
    pub reload: String,
    /// The shop does not answer.
    pub away: String,
    /// The zone of the times.
    pub zone: String,
}

/// Why nothing new is known, if so.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "hydrate"),
    expect(dead_code, reason = "only a poll in the browser meets trouble")
)]
enum Trouble {
    None,
    Away,
    Slow,
}

/// The order's state, asked for until it is final.
#[island]
pub fn OrderStatus(
    /// The order as rendered.
    order: Order,
    /// The texts.
    texts: OrderTexts,
) -> impl IntoView {
    let address = crate::routes::order(&order.order_id);
    let order = RwSignal::new(order);
    let trouble = RwSignal::new(Trouble::None);
    let state = Memo::new(move |_| order.get().state);
    let index = move || match state.get() {
        OrderState::Queued => 0,
        OrderState::Confirmed => 1,
        OrderState::Failed => 2,
    };
    let icon = Signal::derive(move || match state.get() {
        OrderState::Queued => "hourglass",
        OrderState::Confirmed => "check",
        OrderState::Failed => "cross",
    });

    #[cfg(feature = "hydrate")]
    Effect::new(move |_| leptos::task::spawn_local(browser::poll(order, trouble)));

    let failed_word = texts.states.get(2).cloned().unwrap_or_default();
    let pick = |list: Vec<String>| move || list.get(index()).cloned().unwrap_or_default();
    let word = pick(texts.states);
    let headline = pick(texts.headlines);
    let next = pick(texts.next);
    let (slow, away, reload) = (texts.slow, texts.away, texts.reload);
    let [accepted, queued, confirmed] = names(&texts.steps);
    view! {
        <section class="order-status" data-state=move || state.get().as_str()>
            <div role="status">
                <p class="badge" data-testid="state" data-state=move || state.get().as_str()>
                    <Icon name=icon/>
                    <span>{word}</span>
                </p>
                <p class="order-headline">{headline}</p>
                <p class="order-next">{next}</p>
                {move || match trouble.get() {
                    Trouble::None => None,
                    Trouble::Away => Some(view! { <p class="note" data-tone="warn">{away.clone()}</p> }.into_any()),
                    Trouble::Slow => Some(view! {
                        <p class="note" data-tone="info">{slow.clone()}" "<a href=address.clone()>{reload.clone()}</a></p>
                    }.into_any()),
                }}
            </div>
            <ol class="steps">
                <li data-step="done">
                    <Icon name="check"/><span class="step-name">{accepted}</span>
                    <time class="step-time">{move || clock_time(order.get().admitted_ms)}</time>
                </li>
                <li data-step=move || if state.get() == OrderState::Queued { "now" } else { "done" }
                    aria-current=move || (state.get() == OrderState::Queued).then_some("step")>
                    <Icon name=Signal::derive(move || if state.get() == OrderState::Queued { "hourglass" } else { "check" })/>
                    <span class="step-name">{queued}</span>
                </li>
                <li data-step=move || match state.get() {
                        OrderState::Queued => "ahead",
                        OrderState::Confirmed => "done",
                        OrderState::Failed => "failed",
                    }
                    aria-current=move || (state.get() != OrderState::Queued).then_some("step")>
                    <Icon name=Signal::derive(move || match state.get() {
                        OrderState::Queued => "dot",
                        OrderState::Confirmed => "check",
                        OrderState::Failed => "cross",
                    })/>
                    <span class="step-name">{move || if state.get() == OrderState::Failed { failed_word.clone() } else { confirmed.clone() }}</span>
                    <time class="step-time">{move || order.get().confirmed_ms.map(clock_time)}</time>
                </li>
            </ol>
            <p class="muted small">{texts.zone}</p>
        </section>
    }
}

fn names(steps: &[String]) -> [String; 3] {
    [0, 1, 2].map(|index| steps.get(index).cloned().unwrap_or_default())
}

#[cfg(feature = "hydrate")]
mod browser {
    use leptos::prelude::*;

    use super::Trouble;
    use crate::{
        api::order::{GetOrder, Order, OrderState},
        browser::{
            http::{self, Failure},
            monotonic_ms, sleep,
        },
        countdown::poll_delay_ms,
    };

    /// Asks until the state is final or it has taken too long; then says so.
    pub(super) async fn poll(order: RwSignal<Order>, trouble: RwSignal<Trouble>) {
        let began = monotonic_ms();
        let mut attempt = 0;
        while order.get_untracked().state == OrderState::Queued {
            let Some(delay) = poll_delay_ms(attempt, monotonic_ms() - began) else {
                trouble.set(Trouble::Slow);
                return;
            };
            attempt += 1;
            sleep(i32::try_from(delay).unwrap_or(i32::MAX)).await;
            let order_id = order.get_untracked().order_id;
            match http::get::<GetOrder>(&[("order_id", &order_id)]).await {
                Ok(fresh) => {
                    trouble.set(Trouble::None);
                    if order.get_untracked() != fresh {
                        order.set(fresh);
                    }
                }
                Err(Failure::Wait(_, wait)) => {
                    trouble.set(Trouble::Away);
                    sleep(wait).await;
                }
                Err(Failure::Network) => trouble.set(Trouble::Away),
                // Signed out meanwhile, or worse: a reload tells.
                Err(Failure::Refused(_)) => {
                    trouble.set(Trouble::Slow);
                    return;
                }
            }
        }
    }
}
