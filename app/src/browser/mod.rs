//! What islands need of the browser: requests, time, and the sale as it is now.

pub(crate) mod clock;
pub(crate) mod http;
#[cfg(feature = "console")]
pub(crate) mod panel;
#[cfg(feature = "shop")]
pub(crate) mod sale;
#[cfg(feature = "shop")]
pub(crate) mod session;

#[cfg(feature = "shop")]
use std::cell::{Cell, RefCell};

#[cfg(feature = "shop")]
use js_sys::Function;
use js_sys::Promise;
#[cfg(feature = "shop")]
use leptos::{ev, prelude::window_event_listener};
#[cfg(feature = "shop")]
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;

/// The window; islands run nowhere else.
pub(crate) fn window() -> web_sys::Window {
    web_sys::window().expect("islands run in a window, never in a worker")
}

/// Monotonic milliseconds since the navigation began; unmoved by changes of the
/// device's clock.
pub(crate) fn monotonic_ms() -> f64 {
    window()
        .performance()
        .map_or(0.0, |performance| performance.now())
}

/// Waits `ms` milliseconds, longer in a tab that is not shown.
pub(crate) async fn sleep(ms: i32) {
    let promise = Promise::new(&mut |resolve, _| {
        // Refused only when the page is being torn down; then nobody waits any more.
        let _ = window().set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, ms.max(0));
    });
    let _ = JsFuture::from(promise).await;
}

/// Waits like [`sleep`], and no longer than until the page is looked at again or the connection
/// is back.
#[cfg(feature = "shop")]
pub(crate) async fn sleep_until_woken(ms: i32) {
    thread_local! {
        static SLEEPERS: RefCell<Vec<(u32, Function)>> = const { RefCell::new(Vec::new()) };
        static LAST: Cell<Option<u32>> = const { Cell::new(None) };
    }
    let wake = || {
        if is_visible() {
            for (_, resolve) in SLEEPERS.take() {
                let _ = resolve.call0(&JsValue::NULL);
            }
        }
    };
    let id = match LAST.get() {
        Some(last) => last.wrapping_add(1),
        None => {
            let _ = window_event_listener(ev::visibilitychange, move |_| wake());
            let _ = window_event_listener(ev::online, move |_| wake());
            0
        }
    };
    LAST.set(Some(id));
    let promise = Promise::new(&mut |resolve, _| {
        // Refused only when the page is being torn down; then nobody waits any more.
        let _ = window().set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, ms.max(0));
        SLEEPERS.with_borrow_mut(|sleepers| sleepers.push((id, resolve)));
    });
    let _ = JsFuture::from(promise).await;
    SLEEPERS.with_borrow_mut(|sleepers| sleepers.retain(|(other, _)| *other != id));
}

/// Whether somebody can see the page.
pub(crate) fn is_visible() -> bool {
    window()
        .document()
        .is_none_or(|document| document.visibility_state() != web_sys::VisibilityState::Hidden)
}

/// A number in `0..below`, to spread what many pages would do at the same moment.
#[cfg(feature = "shop")]
pub(crate) fn spread(below: i32) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "the value is in 0..below")]
    let ms = (js_sys::Math::random() * f64::from(below)) as i32;
    ms
}

/// Loads this page anew.
#[cfg(feature = "shop")]
pub(crate) fn reload() {
    let _ = window().location().reload();
}

/// Goes to another page of this site.
#[cfg(feature = "shop")]
pub(crate) fn go(path: &str) {
    // A navigation that is refused leaves the page as it is, with its text.
    let _ = window().location().assign(path);
}
