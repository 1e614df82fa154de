//! The button: a plain form that works without WASM, and with it one press that counts
//! once and survives a lost connection.

use leptos::{ev::SubmitEvent, html, prelude::*};

use super::{
    Icon, SaleNow,
    packed::{item, packed},
    sale_now::moving,
};
use crate::{
    api::{Code, buy::Outcome, sale::SaleState},
    figures::digits,
};

packed! {
    /// The button's texts.
    pub struct BuyTexts {
        /// On the button while the sale is open.
        pub buy,
        /// On the button before the opening.
        pub waiting,
        /// On the button while the press is on its way.
        pub sending,
        /// On the button when it is over.
        pub closed,
        /// The words of the states, in the order of [`SaleState`], as a list.
        pub states,
        /// One text per outcome, in the order of [`Outcome::ALL`], as a list.
        pub outcomes,
        /// One text per error code, in the order of [`Code::ALL`], as a list.
        pub codes,
        /// The shop asks to wait, with `{seconds}`; the press is kept.
        pub wait,
        /// The press is kept while there is no connection.
        pub offline,
        /// The connection did not come back.
        pub gave_up,
        /// Before the id of a request that failed.
        pub request,
    }
}

/// What the page says about the last press.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A decision.
    Outcome(Outcome),
    /// An error, with the request's id.
    Code(Code, String),
    /// The shop asks to wait so many milliseconds; sent again by itself after them.
    Wait(Code, i32),
    /// Sent again by itself as soon as there is a connection.
    Offline,
    /// Not sent again by itself any more.
    GaveUp,
}

impl Answer {
    /// A decision or an error as one word, as it travels in an address.
    pub fn parse(word: &str) -> Option<Self> {
        let code = || Code::parse(word).map(|code| Self::Code(code, String::new()));
        Outcome::parse(word).map(Self::Outcome).or_else(code)
    }

    /// The word that the page's tests and styles know it by.
    fn word(&self) -> &'static str {
        match self {
            Self::Outcome(outcome) => outcome.as_str(),
            Self::Code(code, _) | Self::Wait(code, _) => code.as_str(),
            Self::Offline | Self::GaveUp => "offline",
        }
    }

    fn text(&self, texts: &BuyTexts) -> String {
        match self {
            Self::Outcome(outcome) => {
                let index = Outcome::ALL.iter().position(|other| other == outcome);
                item(&texts.outcomes, index.unwrap_or(usize::MAX))
            }
            Self::Code(code, _) => {
                let index = Code::ALL.iter().position(|other| other == code);
                item(&texts.codes, index.unwrap_or(usize::MAX))
            }
            Self::Wait(_, ms) => {
                let seconds = (ms + 999) / 1_000;
                texts.wait.replace("{seconds}", &seconds.to_string())
            }
            Self::Offline => texts.offline.clone(),
            Self::GaveUp => texts.gave_up.clone(),
        }
    }

    /// The line that names the request that failed.
    fn request(&self, texts: &BuyTexts) -> Option<String> {
        match self {
            Self::Code(Code::Internal, id) if !id.is_empty() => {
                Some(format!("{} {id}", texts.request))
            }
            _ => None,
        }
    }

    const fn tone(&self) -> &'static str {
        match self {
            Self::Outcome(Outcome::Admitted | Outcome::AlreadyOrdered) => "ok",
            Self::Outcome(Outcome::NotStarted | Outcome::Paused | Outcome::NotLoaded) => "info",
            Self::Outcome(Outcome::SoldOut | Outcome::Ended) => "warn",
            Self::Wait(..) | Self::Offline | Self::GaveUp => "warn",
            Self::Code(Code::TooMany | Code::Unavailable, _) => "warn",
            Self::Code(..) => "bad",
        }
    }

    const fn icon(&self) -> &'static str {
        match self {
            Self::Outcome(Outcome::Admitted | Outcome::AlreadyOrdered) => "check",
            Self::Outcome(Outcome::NotStarted) => "clock",
            Self::Outcome(Outcome::NotLoaded) | Self::Wait(..) => "hourglass",
            Self::Outcome(Outcome::Paused) => "pause",
            Self::Outcome(Outcome::SoldOut) => "empty",
            Self::Outcome(Outcome::Ended) => "flag",
            Self::Offline | Self::GaveUp => "offline",
            Self::Code(..) => "warning",
        }
    }
}

/// The buy button of a sale's page.
#[island]
pub fn BuyButton(
    /// The sale as rendered, [packed](SaleNow::packed).
    sale: String,
    /// The answer to a press that came as a plain form, [as a word](Answer::parse), or nothing.
    answer: String,
    /// Where to sign in and come back from.
    login: String,
    /// The texts, [packed](BuyTexts::packed).
    texts: String,
) -> impl IntoView {
    let sale = SaleNow::unpacked(&sale);
    let texts = BuyTexts::unpacked(&texts);
    let now = moving(&sale);
    let state = Memo::new(move |_| now.get().state);
    let answer = RwSignal::new(Answer::parse(&answer));
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
            other => item(&texts.states, other as usize),
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
                data-tone=move || answer.with(|answer| answer.as_ref().map(Answer::tone))
                data-outcome=move || answer.with(|answer| answer.as_ref().map(Answer::word))>
                {move || answer.get().map(|answer| view! {
                    <Icon name=Signal::stored(answer.icon())/>
                    <p>
                        {answer.text(&texts).replace("{total}", &digits(now.get().total))}
                        {answer.request(&texts).map(|line| view! { <br/><span class="code small">{line}</span> })}
                    </p>
                })}
            </div>
        </div>
    }
}

#[cfg(feature = "hydrate")]
mod browser {
    use leptos::{ev, html, prelude::*};

    use wasm_bindgen::JsValue;

    use super::Answer;
    use crate::{
        api::{
            Code,
            buy::{Buy, Outcome},
        },
        browser::{
            go,
            http::{self, Failure, FromJson, text_in},
            monotonic_ms, reload, sleep, sleep_until_woken, spread,
        },
        routes,
    };

    /// How long a press is sent again by itself.
    const KEPT_MS: i32 = 120_000;
    /// What presses that were refused together are spread over when they are sent again.
    const SPREAD_MS: i32 = 300;
    /// The pause after a lost request: doubled each time, up to three seconds.
    const FIRST_PAUSE_MS: i32 = 400;
    const LONGEST_PAUSE_MS: i32 = 3_000;

    /// A purchase's outcome, and the order there is.
    struct Decided(Outcome, Option<String>);

    impl FromJson for Decided {
        fn from_json(json: &JsValue) -> Option<Self> {
            let outcome = Outcome::parse(&text_in(json, "outcome")?)?;
            Some(Self(outcome, text_in(json, "order_id")))
        }
    }

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
        // Time in which the device slept does not count.
        let mut kept_ms = 0;
        let mut pause = FIRST_PAUSE_MS;
        let shown = loop {
            let sent = monotonic_ms();
            let failure = match http::post::<Buy, Decided>(&[("voucher_id", &voucher_id)]).await {
                Ok(Decided(outcome, order_id)) => {
                    if let Some(order_id) = &order_id {
                        answer.set(Some(Answer::Outcome(outcome)));
                        // `sending` stays: the page is being left.
                        return go(&routes::order(order_id));
                    }
                    break Answer::Outcome(outcome);
                }
                Err(failure) => failure,
            };
            let (wait, gave_up) = match failure {
                Failure::Refused(error, _) if error.code == Code::Unauthenticated => {
                    return go(&login);
                }
                Failure::Refused(error, request) => break Answer::Code(error.code, request),
                // It was decided; only a newer page can read how.
                Failure::Unreadable => return reload(),
                Failure::Wait(code, wait) => {
                    answer.set(Some(Answer::Wait(code, wait)));
                    (wait, Answer::Code(code, String::new()))
                }
                Failure::Network => {
                    answer.set(Some(Answer::Offline));
                    let wait = pause;
                    pause = (pause * 2).min(LONGEST_PAUSE_MS);
                    (wait, Answer::GaveUp)
                }
            };
            #[expect(
                clippy::cast_possible_truncation,
                reason = "at most the limit of a request"
            )]
            let trip = (monotonic_ms() - sent).min(f64::from(http::LIMIT_MS)) as i32;
            kept_ms += trip + wait;
            if kept_ms > KEPT_MS {
                break gave_up;
            }
            if gave_up == Answer::GaveUp {
                sleep_until_woken(wait).await;
            } else {
                // Everybody who was refused at one moment was told the same time.
                sleep(wait + spread(SPREAD_MS)).await;
            }
        };
        answer.set(Some(shown));
        sending.set(false);
        if let Some(element) = result.get_untracked() {
            // A screen reader's place, and the keyboard's, is at the answer now.
            let _ = element.focus();
        }
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
