//! The sale of this page as it is now: one poll and one clock for all its islands.

use std::cell::{Cell, RefCell};

use leptos::{
    ev,
    prelude::{ArcRwSignal, GetUntracked, RwSignal, Set, window_event_listener},
    task::spawn_local,
};

use wasm_bindgen::JsValue;

use super::{
    clock,
    http::{self, Failure, FromJson, number_in, text_in},
    is_visible, sleep, sleep_until_woken, spread,
};
use crate::{
    api::{
        Code,
        sale::{GetSale, SaleState},
    },
    islands::{SaleNow, Trouble},
};

thread_local! {
    static SALE: RefCell<Option<ArcRwSignal<SaleNow>>> = const { RefCell::new(None) };
    static NOTE: Cell<Option<(RwSignal<Trouble>, RwSignal<i64>)>> = const { Cell::new(None) };
}

/// How long a refresh that the page makes by itself at the opening is spread over.
const SPREAD_MS: i32 = 300;
/// The pause before a lost connection, or a server with a fault, is tried again.
const OFFLINE_MS: i32 = 1_500;
const FAULT_MS: i32 = 5_000;

/// The sale, moving by itself from now on. The first island of the page starts it with
/// what the server rendered.
pub(crate) fn follow(rendered: &SaleNow) -> ArcRwSignal<SaleNow> {
    if let Some(sale) = SALE.with_borrow(Clone::clone) {
        return sale;
    }
    let sale = ArcRwSignal::new(rendered.clone());
    SALE.replace(Some(sale.clone()));
    clock::start(Some(&rendered.voucher_id), rendered.now_ms);
    spawn_local(tick(sale.clone()));
    spawn_local(poll(sale.clone()));
    sale
}

/// Opens and ends the sale by the clock, at the millisecond rather than at the next poll.
async fn tick(sale: ArcRwSignal<SaleNow>) {
    loop {
        let now_ms = clock::now_ms().unwrap_or_default();
        let mut next = sale.get_untracked();
        let state = next.state.at(now_ms, next.begin_ms, next.end_ms);
        if state != next.state {
            next.state = state;
            sale.set(next.clone());
        }
        let wait = [next.begin_ms - now_ms, next.end_ms - now_ms]
            .into_iter()
            .filter(|ms| *ms > 0)
            .fold(1_000, i64::min);
        sleep(i32::try_from(wait).unwrap_or(1_000)).await;
    }
}

/// Opens and ends a sale of a list by the clock alone.
pub(crate) fn follow_clock(sale: RwSignal<SaleNow>) {
    let seen = sale.get_untracked();
    clock::start(Some(&seen.voucher_id), seen.now_ms);
    spawn_local(tick(sale.into()));
}

/// Tells the page's note why it can't show what is, and what time it shows.
pub(crate) fn tell(trouble: RwSignal<Trouble>, known_ms: RwSignal<i64>) {
    NOTE.set(Some((trouble, known_ms)));
    known_ms.set(clock::now_ms().unwrap_or_default());
}

fn say(trouble: Trouble) {
    if let Some((shown, known_ms)) = NOTE.get() {
        if trouble == Trouble::None {
            known_ms.set(clock::now_ms().unwrap_or_default());
        }
        if shown.get_untracked() != trouble {
            shown.set(trouble);
        }
    }
}

/// Asks what is left, as often as it can matter, and only while somebody looks.
async fn poll(sale: ArcRwSignal<SaleNow>) {
    let _ = window_event_listener(ev::offline, |_| say(Trouble::Offline));
    let mut when = Asked::Usually;
    loop {
        let seen = sale.get_untracked();
        let until_begin = seen.begin_ms - clock::now_ms().unwrap_or_default();
        let usual = match seen.state {
            SaleState::Open => 2_000,
            SaleState::SoldOut | SaleState::Paused | SaleState::NotLoaded => 4_000,
            SaleState::Scheduled => until_begin.clamp(100, 15_000),
            SaleState::Ended => return,
        };
        let usual = i32::try_from(usual).unwrap_or(15_000);
        match when {
            Asked::Usually => sleep_until_woken(usual + spread(SPREAD_MS)).await,
            Asked::Connected => sleep_until_woken(OFFLINE_MS + spread(SPREAD_MS)).await,
            Asked::After(wait) => sleep(wait + spread(SPREAD_MS)).await,
            Asked::NeverAgain => return,
        }
        if is_visible() {
            when = ask(&sale).await;
        }
    }
}

/// What moves of a sale, as the server tells it.
struct Fresh {
    state: SaleState,
    stock: i64,
    total: i64,
    begin_ms: i64,
    end_ms: i64,
}

impl FromJson for Fresh {
    fn from_json(json: &JsValue) -> Option<Self> {
        Some(Self {
            state: SaleState::parse(&text_in(json, "state")?)?,
            stock: number_in(json, "stock")?,
            total: number_in(json, "total")?,
            begin_ms: number_in(json, "begin_ms")?,
            end_ms: number_in(json, "end_ms")?,
        })
    }
}

/// When to ask again.
enum Asked {
    /// As often as it matters.
    Usually,
    /// As soon as there is a connection.
    Connected,
    /// After so many milliseconds, however much somebody looks: the server wants it so.
    After(i32),
    NeverAgain,
}

/// One look at the sale; says what kept it from being one.
async fn ask(sale: &ArcRwSignal<SaleNow>) -> Asked {
    let known = sale.get_untracked();
    let failure =
        match http::get_public::<GetSale, Fresh>(&[("voucher_id", &known.voucher_id)]).await {
            Ok(fresh) => {
                let (now_ms, known) = (clock::now_ms().unwrap_or_default(), sale.get_untracked());
                let next = SaleNow {
                    state: fresh.state.at(now_ms, fresh.begin_ms, fresh.end_ms),
                    stock: fresh.stock,
                    total: fresh.total,
                    begin_ms: fresh.begin_ms,
                    end_ms: fresh.end_ms,
                    ..known.clone()
                };
                if next != known {
                    sale.set(next);
                }
                say(Trouble::None);
                return Asked::Usually;
            }
            Err(failure) => failure,
        };
    match failure {
        Failure::Network => {
            say(Trouble::Offline);
            Asked::Connected
        }
        Failure::Wait(code, wait) => {
            say(match code {
                Code::TooMany => Trouble::TooMany(wait),
                _ => Trouble::Away(wait),
            });
            Asked::After(wait)
        }
        Failure::Refused(error, _) if error.code == Code::NotFound => {
            say(Trouble::Gone);
            Asked::NeverAgain
        }
        Failure::Refused(..) => {
            say(Trouble::Away(FAULT_MS));
            Asked::After(FAULT_MS)
        }
        Failure::Unreadable => {
            say(Trouble::Updated);
            Asked::NeverAgain
        }
    }
}
