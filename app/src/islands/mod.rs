//! What moves. Everything else on a page is HTML from the server.
//!
//! An island renders the same on both sides from its properties alone; what depends on
//! the browser (time, network) starts in an `Effect`, which the server never runs. So
//! hydration always finds what it expects.

#[cfg(any(feature = "ssr", feature = "shop"))]
mod buy_button;
#[cfg(any(feature = "ssr", feature = "shop"))]
mod countdown;
#[cfg(any(feature = "ssr", feature = "shop"))]
mod order_status;
#[cfg(any(feature = "ssr", feature = "console"))]
mod pending_panel;
#[cfg(any(feature = "ssr", feature = "console"))]
mod queue_panel;
#[cfg(any(feature = "ssr", feature = "shop"))]
mod stock;
#[cfg(any(feature = "ssr", feature = "console"))]
mod table;

#[cfg(any(feature = "ssr", feature = "shop"))]
pub use buy_button::{Answer, BuyButton, BuyTexts};
#[cfg(any(feature = "ssr", feature = "shop"))]
pub use countdown::{Countdown, CountdownTexts};
use leptos::prelude::*;
#[cfg(any(feature = "ssr", feature = "shop"))]
pub use order_status::{OrderStatus, OrderTexts};
#[cfg(any(feature = "ssr", feature = "console"))]
pub use pending_panel::PendingPanel;
#[cfg(all(feature = "hydrate", feature = "console"))]
pub(crate) use queue_panel::Refresh;
#[cfg(any(feature = "ssr", feature = "console"))]
pub use queue_panel::{PanelScope, PanelTexts, QueuePanel};
use serde::{Deserialize, Serialize};
#[cfg(any(feature = "ssr", feature = "shop"))]
pub use stock::{SaleBadge, StockBar};

use crate::api::sale::SaleState;

/// What the islands of a sale's page share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaleNow {
    /// The voucher's id.
    pub voucher_id: String,
    /// What the sale is.
    pub state: SaleState,
    /// What is left, as far as this person may know.
    pub stock: i64,
    /// How many there are in all.
    pub total: i64,
    /// When it opens.
    pub begin_ms: i64,
    /// When it closes.
    pub end_ms: i64,
    /// The server's clock when the page was rendered.
    pub now_ms: i64,
}

/// An icon from the sprite that every page carries. Decoration: a word stands beside it.
#[component]
pub fn Icon(
    /// The symbol's name without its prefix.
    #[prop(into)]
    name: Signal<&'static str>,
) -> impl IntoView {
    view! {
        <svg class="icon" aria-hidden="true" width="20" height="20">
            <use href=move || format!("#i-{}", name.get())></use>
        </svg>
    }
}

/// The icon of a sale's state.
pub fn state_icon(state: SaleState) -> &'static str {
    match state {
        SaleState::NotLoaded => "hourglass",
        SaleState::Ended => "flag",
        SaleState::Paused => "pause",
        SaleState::Scheduled => "clock",
        SaleState::SoldOut => "empty",
        SaleState::Open => "open",
    }
}
