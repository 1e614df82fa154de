//! The server's clock in the browser, whatever the device's clock says.
//!
//! The offset between the two is taken from the quickest of several round trips and
//! ticks on the monotonic clock. It is measured anew every 30 seconds, when the page is
//! shown again, and when the connection comes back. The time that is shown never goes
//! back.

use std::cell::{Cell, RefCell};

use leptos::{ev, prelude::window_event_listener, task::spawn_local};

use wasm_bindgen::JsValue;

use super::{
    http::{self, FromJson, number_in},
    is_visible, monotonic_ms, sleep,
};
use crate::{api::clock::GetClock, countdown::Estimate};

/// Round trips per measurement, and the pause between them.
const TRIPS: u32 = 4;
const PAUSE_MS: i32 = 120;
/// How often the offset is measured again.
const EVERY_MS: i32 = 30_000;

/// The device's two clocks have moved apart by so much: it slept, or somebody set one.
const ASLEEP_MS: f64 = 2_000.0;

thread_local! {
    static ESTIMATE: Cell<Option<Estimate>> = const { Cell::new(None) };
    /// The latest time anybody was shown.
    static SHOWN: Cell<f64> = const { Cell::new(f64::MIN) };
    static VOUCHER: RefCell<Option<String>> = const { RefCell::new(None) };
    static MEASURING: Cell<bool> = const { Cell::new(false) };
    /// Which measurement counts: one that hung while the device slept does not hold the next up.
    static ROUND: Cell<u32> = const { Cell::new(0) };
    /// What was known is void; the next trip counts, however slow.
    static VOID: Cell<bool> = const { Cell::new(false) };
}

/// The server's clock now, in milliseconds; `None` before [`start`].
pub(crate) fn now_ms() -> Option<i64> {
    let now = ESTIMATE.get()?.server_ms(monotonic_ms());
    let shown = SHOWN.get().max(now);
    SHOWN.set(shown);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "milliseconds since 1970 fit into 53 bits"
    )]
    Some(shown as i64)
}

/// Starts the clock of this page, once: `rendered_ms` is what the server's clock said
/// when it rendered the page, `voucher_id` names the sale whose node is asked.
pub(crate) fn start(voucher_id: Option<&str>, rendered_ms: i64) {
    if ESTIMATE.get().is_some() {
        return;
    }
    // Loading the page was a round trip too, if a slow one: a first estimate.
    #[expect(
        clippy::cast_precision_loss,
        reason = "milliseconds since 1970 fit into 53 bits"
    )]
    let rendered = rendered_ms as f64;
    ESTIMATE.set(Some(Estimate::from_trip(0.0, monotonic_ms(), rendered)));
    VOUCHER.replace(voucher_id.map(str::to_owned));

    spawn_local(async {
        loop {
            measure(false).await;
            sleep(EVERY_MS).await;
        }
    });
    // A device may sleep without any event; then its clock of the day has gone on alone.
    spawn_local(async {
        let apart = || js_sys::Date::now() - monotonic_ms();
        let mut before = apart();
        loop {
            sleep(1_000).await;
            if (apart() - before).abs() > ASLEEP_MS {
                before = apart();
                measure(true).await;
            }
        }
    });
    // A device that slept may have stopped its monotonic clock: what was known is void.
    let wake = || {
        if is_visible() {
            spawn_local(measure(true));
        }
    };
    let _ = window_event_listener(ev::visibilitychange, move |_| wake());
    let _ = window_event_listener(ev::online, move |_| wake());
    let _ = window_event_listener(ev::pageshow, move |event| {
        if event.persisted() {
            wake();
        }
    });
}

/// What the server's clock says.
struct Told(i64);

impl FromJson for Told {
    fn from_json(json: &JsValue) -> Option<Self> {
        number_in(json, "now_ms").map(Self)
    }
}

/// Asks a few times and keeps the quickest trip; after a wake only a new one counts.
async fn measure(woken: bool) {
    if MEASURING.replace(true) && !woken {
        return;
    }
    let round = ROUND.get().wrapping_add(1);
    ROUND.set(round);
    if woken {
        VOID.set(true);
    }
    let voucher = VOUCHER.with_borrow(Clone::clone);
    for trip in 0..TRIPS {
        if trip > 0 {
            sleep(PAUSE_MS).await;
        }
        let fields: &[(&str, &str)] = match voucher.as_deref() {
            Some(id) => &[("voucher_id", id)],
            None => &[],
        };
        let sent = monotonic_ms();
        let told = http::get_public::<GetClock, Told>(fields).await;
        if ROUND.get() != round {
            return;
        }
        let Ok(Told(now_ms)) = told else {
            continue;
        };
        let received = monotonic_ms();
        #[expect(
            clippy::cast_precision_loss,
            reason = "milliseconds since 1970 fit into 53 bits"
        )]
        let estimate = Estimate::from_trip(sent, received, now_ms as f64);
        let known = ESTIMATE.get().filter(|_| !VOID.get());
        // Where the two exclude each other the device slept, and the newer one knows.
        let known = known.filter(|known| !known.excludes(&estimate, received));
        ESTIMATE.set(Some(
            known.map_or(estimate, |known| known.better(estimate, received)),
        ));
        VOID.set(false);
    }
    MEASURING.set(false);
}
