//! The sale of this page as it is now: one poll and one clock for all its islands.

use std::cell::RefCell;

use leptos::{
    prelude::{ArcRwSignal, GetUntracked, Set},
    task::spawn_local,
};

use super::{clock, http, is_visible, sleep, spread};
use crate::{
    api::sale::{GetSale, SaleState},
    islands::SaleNow,
};

thread_local! {
    static SALE: RefCell<Option<ArcRwSignal<SaleNow>>> = const { RefCell::new(None) };
}

/// How long a refresh that the page makes by itself at the opening is spread over.
const SPREAD_MS: i32 = 300;

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

/// Asks what is left, as often as it can matter, and only while somebody looks.
async fn poll(sale: ArcRwSignal<SaleNow>) {
    loop {
        let seen = sale.get_untracked();
        let until_begin = seen.begin_ms - clock::now_ms().unwrap_or_default();
        let wait = match seen.state {
            SaleState::Open => 2_000,
            SaleState::SoldOut | SaleState::Paused | SaleState::NotLoaded => 4_000,
            SaleState::Scheduled => until_begin.clamp(100, 15_000),
            SaleState::Ended => return,
        };
        sleep(i32::try_from(wait).unwrap_or(15_000) + spread(SPREAD_MS)).await;
        if !is_visible() {
            continue;
        }
        if let Ok(fresh) = http::get_public::<GetSale>(&[("voucher_id", &seen.voucher_id)]).await {
            let now_ms = clock::now_ms().unwrap_or_default();
            let known = sale.get_untracked();
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
        }
    }
}
