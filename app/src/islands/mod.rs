//! What moves. Everything else on a page is HTML from the server.
//!
//! An island renders the same on both sides from its properties alone; what depends on
//! the browser (time, network) starts in an `Effect`, which the server never runs. So
//! hydration always finds what it expects.

#[cfg(any(feature = "ssr", feature = "shop"))]
mod buy_button;
#[cfg(any(feature = "ssr", feature = "shop"))]
mod copy;
#[cfg(any(feature = "ssr", feature = "shop"))]
mod countdown;
#[cfg(any(feature = "ssr", feature = "shop"))]
mod live_note;
#[cfg(any(feature = "ssr", feature = "shop"))]
mod order_status;
#[cfg(any(feature = "ssr", feature = "shop"))]
pub(crate) mod packed;
#[cfg(any(feature = "ssr", feature = "console"))]
mod pending_panel;
#[cfg(any(feature = "ssr", feature = "console"))]
mod queue_panel;
#[cfg(any(feature = "ssr", feature = "shop"))]
mod sale_now;
#[cfg(any(feature = "ssr", feature = "shop"))]
mod stock;
#[cfg(any(feature = "ssr", feature = "console"))]
mod table;

#[cfg(any(feature = "ssr", feature = "shop"))]
pub use buy_button::{Answer, BuyButton, BuyTexts};
#[cfg(any(feature = "ssr", feature = "shop"))]
pub use copy::CopyButton;
#[cfg(any(feature = "ssr", feature = "shop"))]
pub use countdown::{Countdown, CountdownTexts};
use leptos::prelude::*;
#[cfg(all(feature = "hydrate", feature = "shop"))]
pub(crate) use live_note::Trouble;
#[cfg(any(feature = "ssr", feature = "shop"))]
pub use live_note::{LiveNote, LiveTexts};
#[cfg(any(feature = "ssr", feature = "shop"))]
pub use order_status::{OrderNow, OrderStatus, OrderTexts};
#[cfg(any(feature = "ssr", feature = "console"))]
pub use pending_panel::PendingPanel;
#[cfg(all(feature = "hydrate", feature = "console"))]
pub(crate) use queue_panel::Refresh;
#[cfg(any(feature = "ssr", feature = "console"))]
pub use queue_panel::{PanelScope, PanelTexts, QueuePanel};
#[cfg(any(feature = "ssr", feature = "shop"))]
pub use sale_now::SaleNow;
#[cfg(any(feature = "ssr", feature = "shop"))]
pub use stock::{SaleBadge, StockBar};

use crate::api::sale::SaleState;

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
