//! Everything a browser sees: pages, islands, words, and every server function.
//!
//! The crate is compiled twice. With `ssr` it renders pages and runs the server
//! functions inside the server; with `hydrate` it becomes one of two browser
//! bundles: the buyer's (`shop`) or the operator's (`console`).
//!
//! Pages are HTML from the server with plain links and forms, so everything works
//! before and without WASM; only what moves is an island. Texts reach an island as
//! properties, so translations never enter a bundle. No SQL, no Redis command and no
//! business rule lives here: those are in `seckill`.

// A view's type is as deep as its markup.
#![recursion_limit = "256"]

pub mod api;
pub mod countdown;
pub mod figures;
pub mod islands;
pub mod routes;

#[cfg(feature = "hydrate")]
mod browser;

#[cfg(feature = "ssr")]
mod caller;
#[cfg(feature = "ssr")]
mod format;
#[cfg(feature = "ssr")]
mod next;
#[cfg(feature = "ssr")]
pub mod pages;
#[cfg(feature = "ssr")]
pub mod request;
#[cfg(feature = "ssr")]
pub mod staff;
#[cfg(feature = "ssr")]
pub mod state;
#[cfg(feature = "ssr")]
mod words;

#[cfg(feature = "ssr")]
pub use state::{AppState, Bundles, Ground, Observe, Snapshot};
