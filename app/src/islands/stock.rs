//! What is left, and what the sale is right now.

use leptos::prelude::*;

use super::{Icon, SaleNow, packed::item, sale_now::moving, state_icon};
use crate::figures::{digits, left};

/// The bar of what is left, with its figure.
#[island]
pub fn StockBar(
    /// The sale as rendered, [packed](SaleNow::packed).
    sale: String,
    /// The bar's name.
    label: String,
    /// The figure's text, with `{left}` and `{total}`.
    text: String,
) -> impl IntoView {
    let now = moving(&SaleNow::unpacked(&sale));
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
    /// The sale as rendered, [packed](SaleNow::packed).
    sale: String,
    /// The words, in the order of [`SaleState`](crate::api::sale::SaleState), then the one for
    /// sold out for good, as a list.
    words: String,
    /// Whether it is a sale's own page (`1`): it follows the server, and is spoken. In a list
    /// it moves by the clock alone.
    main: String,
) -> impl IntoView {
    let rendered = SaleNow::unpacked(&sale);
    let main = !main.is_empty();
    let now = if main {
        moving(&rendered)
    } else {
        RwSignal::new(rendered)
    };
    #[cfg(feature = "hydrate")]
    if !main {
        Effect::new(move |_| crate::browser::sale::follow_clock(now));
    }
    let state = Memo::new(move |_| now.get().state);
    let gone = move || now.get().is_gone_for_good();
    view! {
        <p class="badge" data-testid=main.then_some("state") data-state=move || state.get().as_str()
            aria-live=main.then_some("polite")>
            <Icon name=Signal::derive(move || if gone() { "empty" } else { state_icon(state.get()) })/>
            <span>{move || item(&words, if gone() { GONE } else { state.get() as usize })}</span>
        </p>
    }
}

/// Where the word for sold out for good stands.
const GONE: usize = 6;
