//! The WASM entry: a page's script calls [`hydrate`] and then each island's function.
//!
//! Which islands are inside is chosen by the features `shop` and `console`. Outside the
//! browser this crate is empty, so that a build of the whole workspace is possible.
#![cfg(target_arch = "wasm32")]

use std::time::Duration;

// Without a use of `app` the linker drops the islands it exports.
use app as _;
use leptos::prelude::{document, set_timeout};
use wasm_bindgen::prelude::wasm_bindgen;

/// Prepares hydration, and sets `html[data-hydrated]` once the islands work: the page
/// hydrates them in the same task as this call, so a task of its own comes after them.
#[wasm_bindgen]
pub fn hydrate() {
    console_error_panic_hook::set_once();
    leptos::mount::hydrate_islands();
    set_timeout(
        || {
            if let Some(html) = document().document_element() {
                let _ = html.set_attribute("data-hydrated", "");
            }
        },
        Duration::ZERO,
    );
}
