//! Whether the buyer is still signed in, asked while that can be mended: before the opening.

use std::cell::Cell;

use leptos::{
    ev,
    prelude::{RwSignal, Set, window_event_listener},
    task::spawn_local,
};

use wasm_bindgen::JsValue;

use super::{
    clock,
    http::{self, FromJson},
    is_visible, monotonic_ms, sleep, spread,
};
use crate::api::session::Me;

/// How long before the opening it is asked: long enough to sign in again, and spread over half
/// a minute, so that a waiting crowd does not ask at once.
const BEFORE_MS: i64 = 60_000;
const SPREAD_MS: i32 = 30_000;
/// Looking at the page again asks at most this often.
const AGAIN_MS: f64 = 5_000.0;

/// Tells from now on whether the session has ended.
pub(crate) fn watch(begin_ms: i64, signed_out: RwSignal<bool>) {
    thread_local! {
        static ASKED: Cell<f64> = const { Cell::new(0.0) };
    }
    ASKED.set(monotonic_ms());
    spawn_local(async move {
        let early = i64::from(spread(SPREAD_MS));
        let wait = begin_ms - clock::now_ms().unwrap_or(begin_ms) - BEFORE_MS - early;
        // A page that was opened later than that was told just now.
        if let Ok(wait) = i32::try_from(wait)
            && wait > 0
        {
            sleep(wait).await;
            ask(signed_out).await;
        }
    });
    let again = move || {
        if is_visible() && monotonic_ms() - ASKED.get() > AGAIN_MS {
            ASKED.set(monotonic_ms());
            spawn_local(ask(signed_out));
        }
    };
    let _ = window_event_listener(ev::visibilitychange, move |_| again());
    let _ = window_event_listener(ev::online, move |_| again());
}

async fn ask(signed_out: RwSignal<bool>) {
    // Who can't be asked now has not ended it.
    if let Ok(SignedIn(still)) = http::get::<Me, SignedIn>(&[]).await {
        signed_out.set(!still);
    }
}

/// Whether there is a user.
struct SignedIn(bool);

impl FromJson for SignedIn {
    fn from_json(json: &JsValue) -> Option<Self> {
        Some(Self(!json.is_null()))
    }
}
