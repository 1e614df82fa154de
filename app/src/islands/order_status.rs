//! An order on its way: accepted, queued, confirmed.

use leptos::prelude::*;

use super::{
    Icon,
    packed::{FIELD, item, packed},
};
use crate::{api::order::OrderState, figures::clock_time};

packed! {
    /// The order's texts; lists are in the order queued, confirmed, failed.
    pub struct OrderTexts {
        /// The names of the three steps, as a list.
        pub steps,
        /// The words of the states, as a list.
        pub states,
        /// The large line, as a list.
        pub headlines,
        /// What happens next, as a list.
        pub next,
        /// It takes long.
        pub slow,
        /// The link to look again.
        pub reload,
        /// The shop does not answer.
        pub away,
        /// The zone of the times.
        pub zone,
    }
}

/// What moves of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderNow {
    /// Its id.
    pub order_id: String,
    /// Where it is.
    pub state: OrderState,
    /// When it was accepted.
    pub admitted_ms: i64,
    /// When its row was written.
    pub confirmed_ms: Option<i64>,
}

impl OrderNow {
    /// As one text.
    #[cfg(feature = "ssr")]
    pub fn packed(&self) -> String {
        let (state, admitted) = (self.state.as_str(), self.admitted_ms);
        let confirmed = self.confirmed_ms.map(|ms| ms.to_string());
        let confirmed = confirmed.unwrap_or_default();
        format!(
            "{}{FIELD}{state}{FIELD}{admitted}{FIELD}{confirmed}",
            self.order_id
        )
    }

    /// From that text.
    pub fn unpacked(text: &str) -> Self {
        let mut fields = text.split(FIELD);
        let mut next = || fields.next().unwrap_or_default();
        Self {
            order_id: next().to_owned(),
            state: OrderState::parse(next()).unwrap_or(OrderState::Queued),
            admitted_ms: next().parse().unwrap_or(0),
            confirmed_ms: next().parse().ok(),
        }
    }
}

#[cfg(feature = "ssr")]
impl From<crate::api::order::Order> for OrderNow {
    fn from(order: crate::api::order::Order) -> Self {
        Self {
            order_id: order.order_id,
            state: order.state,
            admitted_ms: order.admitted_ms,
            confirmed_ms: order.confirmed_ms,
        }
    }
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
    /// The order as rendered, [packed](OrderNow::packed).
    order: String,
    /// The texts, [packed](OrderTexts::packed).
    texts: String,
) -> impl IntoView {
    let (order, texts) = (OrderNow::unpacked(&order), OrderTexts::unpacked(&texts));
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

    let failed_word = item(&texts.states, 2);
    let pick = |list: String| move || item(&list, index());
    let word = pick(texts.states);
    let headline = pick(texts.headlines);
    let next = pick(texts.next);
    let (slow, away, reload) = (texts.slow, texts.away, texts.reload);
    let [accepted, queued, confirmed] = [0, 1, 2].map(|step| item(&texts.steps, step));
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
                    Trouble::Away => Some(view! {
                        <p class="note" data-tone="warn" data-testid="trouble"><Icon name=Signal::stored("offline")/><span>{away.clone()}</span></p>
                    }.into_any()),
                    Trouble::Slow => Some(view! {
                        <p class="note" data-tone="info" data-testid="trouble">
                            <Icon name=Signal::stored("hourglass")/>
                            <span>{slow.clone()}" "<a href=address.clone()>{reload.clone()}</a></span>
                        </p>
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

#[cfg(feature = "hydrate")]
mod browser {
    use leptos::prelude::*;

    use wasm_bindgen::JsValue;

    use super::{OrderNow, Trouble};
    use crate::{
        api::{
            Code,
            order::{GetOrder, OrderState},
        },
        browser::{
            http::{self, Failure, FromJson, number_in, text_in},
            reload, sleep, sleep_until_woken,
        },
        countdown::poll_delay_ms,
    };

    impl FromJson for OrderNow {
        fn from_json(json: &JsValue) -> Option<Self> {
            Some(Self {
                order_id: text_in(json, "order_id")?,
                state: OrderState::parse(&text_in(json, "state")?)?,
                admitted_ms: number_in(json, "admitted_ms")?,
                confirmed_ms: number_in(json, "confirmed_ms"),
            })
        }
    }

    /// The pause between two looks at an order that takes long.
    const SLOW_MS: i32 = 15_000;
    /// The pause after a fault of the server's.
    const FAULT_MS: i32 = 5_000;

    /// Asks until the state is final: often at first, seldom when it takes long, which it says,
    /// and at once when the page is looked at again or the connection is back.
    pub(super) async fn poll(order: RwSignal<OrderNow>, trouble: RwSignal<Trouble>) {
        let (mut attempt, mut waited_ms) = (0, 0.0);
        while order.get_untracked().state == OrderState::Queued {
            let quick = poll_delay_ms(attempt, waited_ms);
            let calm = if quick.is_some() {
                Trouble::None
            } else {
                Trouble::Slow
            };
            attempt += 1;
            let delay = quick.map_or(SLOW_MS, |ms| i32::try_from(ms).unwrap_or(SLOW_MS));
            sleep_until_woken(delay).await;
            waited_ms += f64::from(delay);
            let order_id = order.get_untracked().order_id;
            let failure = match http::get::<GetOrder, OrderNow>(&[("order_id", &order_id)]).await {
                Ok(fresh) => {
                    trouble.set(calm);
                    if order.get_untracked() != fresh {
                        order.set(fresh);
                    }
                    continue;
                }
                Err(failure) => failure,
            };
            trouble.set(Trouble::Away);
            match failure {
                Failure::Network => {}
                Failure::Wait(_, wait) => sleep(wait).await,
                Failure::Refused(error, _) if error.code == Code::Internal => sleep(FAULT_MS).await,
                // Signed out meanwhile, or this page is too old: the server says which. Slowly,
                // or what answers in the server's place would make the page load without end.
                Failure::Refused(..) | Failure::Unreadable => {
                    sleep(FAULT_MS).await;
                    return reload();
                }
            }
        }
        trouble.set(Trouble::None);
    }
}
