//! What pages and server functions share: built once by the server, cloned per request.

use std::sync::Arc;

use seckill::{DeadLetter, Overview, PendingEntry, Shop};
use tokio::sync::watch;

use crate::staff::Staff;

/// The application's state. Cloning copies a few pointers.
#[derive(Clone)]
pub struct AppState {
    /// The domain.
    pub shop: Shop,
    /// The console's numbers, taken in the background: pages never count in band.
    pub snapshot: watch::Receiver<Arc<Snapshot>>,
    /// Whether an unsafe ground was accepted, and what is unsafe about it.
    pub ground: watch::Receiver<Arc<Ground>>,
    /// Where the browser finds its bundles.
    pub bundles: Arc<Bundles>,
    /// Whether the site is served over TLS.
    pub secure: bool,
    /// Who was seen to be staff.
    pub staff: Staff,
    /// Where purchases are counted.
    pub observe: Arc<dyn Observe>,
}

/// What the console shows, as of `overview.at_ms`.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Lanes, sales, workers and the two stores.
    pub overview: Overview,
    /// The first 1,000 entries that were delivered and not yet acknowledged.
    pub pending: Vec<PendingEntry>,
    /// The first 1,000 dead letters.
    pub dead: Vec<DeadLetter>,
}

/// What the console says about the ground for as long as an unsafe one is accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ground {
    /// The override is set: an unsafe ground does not stop this process.
    pub accepted: bool,
    /// What was found unsafe when the ground was looked at last, a sentence each.
    pub findings: Vec<String>,
}

/// Addresses of the browser's files; their paths carry a hash of their content, so
/// they can be cached for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundles {
    /// Folder of the buyer's bundle (`shop.js`, `shop_bg.wasm`), such as `pkg/ab12`.
    pub shop: String,
    /// Folder of the operator's bundle (`console.js`, `console_bg.wasm`).
    pub console: String,
    /// Address of the style sheet, such as `/pkg/cd34/main.css`.
    pub style: String,
}

/// Counts what happens, without this crate knowing of any metrics library.
pub trait Observe: Send + Sync {
    /// A purchase was decided (or failed with a reason of its own) after `seconds`.
    fn purchase(&self, outcome: &'static str, seconds: f64);
}
