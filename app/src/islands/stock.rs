//! What is left, and what the sale is right now.

use leptos::prelude::*;

use super::{Icon, SaleNow, state_icon};
use crate::figures::{digits, left};

/// A signal of the sale: moving in the browser, as rendered on the server.
#[cfg(feature = "hydrate")]
pub(super) fn moving(rendered: &SaleNow) -> RwSignal<SaleNow> {
    let now = RwSignal::new(rendered.clone());
    let rendered = rendered.clone();
    Effect::new(move |_| {
        now.set(crate::browser::sale::follow(&rendered).get());
    });
    now
}

#[cfg(not(feature = "hydrate"))]
pub(super) fn moving(rendered: &SaleNow) -> RwSignal<SaleNow> {
    RwSignal::new(rendered.clone())
}

/// The bar of what is left, with its figure.
#[island]
pub fn StockBar(
    /// The sale as rendered.
    sale: SaleNow,
    /// The bar's name.
    label: String,
    /// The figure's text, with `{left}` and `{total}`.
    text: String,
) -> impl IntoView {
    let now = moving(&sale);
    let figure = move || {
        let sale = now.get();
        text.replace("{left}", &left(sale.stock, sale.total, false))
            .replace("{total}", &digits(sale.total))
    };
    view! {
        <div class="stock">
            <progress class="stock-bar" aria-label=label
                max=move || now.get().total.max(1).to_string()
                value=move || now.get().stock.max(0).to_string()></progress>
            <p class="stock-figure" data-testid="left">{figure}</p>
        </div>
    }
}

/// The state of the sale, as an icon and a word.
#[island]
pub fn SaleBadge(
    /// The sale as rendered.
    sale: SaleNow,
    /// The words, in the order of [`SaleState`](crate::api::sale::SaleState).
    words: Vec<String>,
) -> impl IntoView {
    let now = moving(&sale);
    let state = Memo::new(move |_| now.get().state);
    view! {
        <p class="badge" data-testid="state" data-state=move || state.get().as_str() aria-live="polite">
            <Icon name=Signal::derive(move || state_icon(state.get()))/>
            <span>{move || words.get(state.get() as usize).cloned().unwrap_or_default()}</span>
        </p>
    }
}
