//! The button: a plain form that works without WASM, and with it one press that counts
//! once and survives a lost connection.

use leptos::{ev::SubmitEvent, html, prelude::*};
use serde::{Deserialize, Serialize};

use super::{Icon, SaleNow, stock::moving};
use crate::{
    api::{Code, buy::Outcome, sale::SaleState},
    figures::digits,
};

/// The button's texts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BuyTexts {
    /// On the button while the sale is open.
    pub buy: String,
    /// On the button before the opening.
    pub waiting: String,
    /// On the button while the press is on its way.
    pub sending: String,
    /// On the button when it is over.
    pub closed: String,
    /// The words of the states, in the order of [`SaleState`].
    pub states: Vec<String>,
    /// One text per outcome, in the order of [`Outcome::ALL`].
    pub outcomes: Vec<String>,
    /// One text per error code, in the order of [`Code::ALL`].
    pub codes: Vec<String>,
    /// The press is kept while there is no connection.
    pub offline: String,
    /// The connection did not come back.
    pub gave_up: String,
}

/// What the page says about the last press.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// A decision.
    Outcome(Outcome),
    /// An error.
    Code(Code),
    /// Sent again by itself as soon as there is a connection.
    Offline,
    /// Not sent again by itself any more.
    GaveUp,
}

impl Answer {
    fn text(self, texts: &BuyTexts) -> String {
        let listed = |list: &[String], index: Option<usize>| {
            index
                .and_then(|index| list.get(index))
                .cloned()
                .unwrap_or_default()
        };
        match self {
            Self::Outcome(outcome) => listed(
                &texts.outcomes,
                Outcome::ALL.iter().position(|other| *other == outcome),
            ),
            Self::Code(code) => listed(
                &texts.codes,
                Code::ALL.iter().position(|other| *other == code),
            ),
            Self::Offline => texts.offline.clone(),
            Self::GaveUp => texts.gave_up.clone(),
        }
    }

    const fn tone(self) -> &'static str {
        match self {
            Self::Outcome(Outcome::Admitted | Outcome::AlreadyOrdered) => "ok",
            Self::Outcome(Outcome::NotStarted | Outcome::Paused | Outcome::NotLoaded) => "info",
            Self::Outcome(Outcome::SoldOut | Outcome::Ended) => "warn",
            Self::Code(Code::TooMany | Code::Unavailable) | Self::Offline | Self::GaveUp => "warn",
            Self::Code(_) => "bad",
        }
    }

    const fn icon(self) -> &'static str {
        match self {
            Self::Outcome(Outcome::Admitted | Outcome::AlreadyOrdered) => "check",
            Self::Outcome(Outcome::NotStarted) => "clock",
            Self::Outcome(Outcome::NotLoaded) => "hourglass",
            Self::Outcome(Outcome::Paused) => "pause",
            Self::Outcome(Outcome::SoldOut) => "empty",
            Self::Outcome(Outcome::Ended) => "flag",
            Self::Offline | Self::GaveUp => "offline",
            Self::Code(_) => "warning",
        }
    }
}

/// The buy button of a sale's page.
#[island]
pub fn BuyButton(
    /// The sale as rendered.
    sale: SaleNow,
    /// The answer to a press that came as a plain form.
    answer: Option<Answer>,
    /// Where to sign in and come back from.
    login: String,
    /// The texts.
    texts: BuyTexts,
) -> impl IntoView {
    let now = moving(&sale);
    let state = Memo::new(move |_| now.get().state);
    let answer = RwSignal::new(answer);
    let sending = RwSignal::new(false);
    // Before the WASM is there, a press is a plain form, and early ones are answered.
    let alive = RwSignal::new(false);
    let result = NodeRef::<html::Div>::new();

    // Sold out or paused, a press is still worth something: whoever has an order gets it.
    let disabled = move || match state.get() {
        SaleState::Scheduled => alive.get(),
        SaleState::Ended | SaleState::NotLoaded => true,
        SaleState::SoldOut | SaleState::Paused | SaleState::Open => false,
    };
    let label = {
        let texts = texts.clone();
        move || match state.get() {
            _ if sending.get() => texts.sending.clone(),
            SaleState::Open => texts.buy.clone(),
            SaleState::Scheduled if alive.get() => texts.waiting.clone(),
            SaleState::Scheduled => texts.buy.clone(),
            SaleState::Ended | SaleState::NotLoaded => texts.closed.clone(),
            other => texts
                .states
                .get(other as usize)
                .cloned()
                .unwrap_or_default(),
        }
    };

    #[cfg(feature = "hydrate")]
    Effect::new(move |_| {
        alive.set(true);
        browser::forget_press_on_return(sending, answer);
    });
    #[cfg(feature = "hydrate")]
    let submit = {
        let voucher_id = sale.voucher_id.clone();
        move |event: SubmitEvent| {
            event.prevent_default();
            // A second press while the first is on its way adds nothing.
            if !sending.get_untracked() {
                sending.set(true);
                leptos::task::spawn_local(browser::press(
                    voucher_id.clone(),
                    login.clone(),
                    sending,
                    answer,
                    result,
                ));
            }
        }
    };
    #[cfg(not(feature = "hydrate"))]
    let submit = {
        let _ = (login, result);
        |_: SubmitEvent| {}
    };

    let voucher_field = sale.voucher_id.clone();
    view! {
        <div class="buy">
            <form method="post" action="/api/buy" on:submit=submit>
                <input type="hidden" name="voucher_id" value=voucher_field/>
                <button type="submit" class="button buy-button" data-testid="buy"
                    data-state=move || state.get().as_str()
                    disabled=disabled
                    aria-disabled=move || sending.get().then_some("true")>
                    {label}
                </button>
            </form>
            <div class="answer" role="status" tabindex="-1" node_ref=result
                data-testid="answer"
                data-tone=move || answer.get().map(Answer::tone)
                data-outcome=move || match answer.get() {
                    Some(Answer::Outcome(outcome)) => Some(outcome.as_str()),
                    Some(Answer::Code(code)) => Some(code.as_str()),
                    Some(Answer::Offline | Answer::GaveUp) => Some("offline"),
                    None => None,
                }>
                {move || answer.get().map(|answer| view! {
                    <Icon name=Signal::stored(answer.icon())/>
                    <p>{answer.text(&texts).replace("{total}", &digits(now.get().total))}</p>
                })}
            </div>
        </div>
    }
}

#[cfg(feature = "hydrate")]
mod browser {
    use leptos::{ev, html, prelude::*};

    use super::Answer;
    use crate::{
        api::{
            ApiError, Code,
            buy::{Buy, Outcome},
        },
        browser::{
            go,
            http::{self, Failure},
            monotonic_ms, sleep,
        },
        routes,
    };

    /// How long a press is sent again by itself.
    const KEPT_MS: f64 = 120_000.0;
    /// The pause after a lost request: doubled each time, up to three seconds.
    const FIRST_PAUSE_MS: i32 = 400;
    const LONGEST_PAUSE_MS: i32 = 3_000;

    /// One press, until it is decided. Sending it again is harmless: whoever has an
    /// order already gets the same one.
    pub(super) async fn press(
        voucher_id: String,
        login: String,
        sending: RwSignal<bool>,
        answer: RwSignal<Option<Answer>>,
        result: NodeRef<html::Div>,
    ) {
        answer.set(None);
        let pressed = monotonic_ms();
        let mut pause = FIRST_PAUSE_MS;
        let shown = loop {
            let failure = match http::post::<Buy>(&[("voucher_id", &voucher_id)]).await {
                Ok(purchase) => {
                    if let Some(order_id) = &purchase.order_id {
                        answer.set(Some(Answer::Outcome(purchase.outcome)));
                        // `sending` stays: the page is being left.
                        return go(&routes::order(order_id));
                    }
                    break Answer::Outcome(purchase.outcome);
                }
                Err(failure) => failure,
            };
            let wait = match failure {
                Failure::Refused(ApiError {
                    code: Code::Unauthenticated,
                    ..
                }) => return go(&login),
                Failure::Refused(error) => break Answer::Code(error.code),
                Failure::Wait(code, wait) => {
                    answer.set(Some(Answer::Code(code)));
                    wait
                }
                Failure::Network => {
                    answer.set(Some(Answer::Offline));
                    let wait = pause;
                    pause = (pause * 2).min(LONGEST_PAUSE_MS);
                    wait
                }
            };
            if monotonic_ms() - pressed > KEPT_MS {
                break Answer::GaveUp;
            }
            sleep(wait).await;
        };
        answer.set(Some(shown));
        sending.set(false);
        if let Some(element) = result.get_untracked() {
            // A screen reader's place, and the keyboard's, is at the answer now.
            let _ = element.focus();
        }
        debug_assert!(
            shown != Answer::Outcome(Outcome::Admitted),
            "an admitted press leaves the page"
        );
    }

    /// A page that comes back from the browser's memory has no press under way.
    pub(super) fn forget_press_on_return(
        sending: RwSignal<bool>,
        answer: RwSignal<Option<Answer>>,
    ) {
        let _ = window_event_listener(ev::pageshow, move |event| {
            if event.persisted() {
                sending.set(false);
                answer.set(None);
            }
        });
    }
}
