//! The clock that decides: Redis' own.

#![expect(
    missing_docs,
    reason = "`#[server]` makes a struct of the arguments that each function describes"
)]

use leptos::{
    prelude::server,
    server_fn::codec::{GetUrl, Json},
};
use serde::{Deserialize, Serialize};

use super::ApiError;

/// What time it is for admissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// Milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// The clock by which sales open and close; with `voucher_id`, that of the node which
/// holds this sale.
#[server(name = GetClock, prefix = "/api", endpoint = "clock", input = GetUrl, output = Json)]
pub async fn clock(#[server(default)] voucher_id: Option<String>) -> Result<Now, ApiError> {
    let caller = crate::caller::Caller::from_context()?;
    let voucher = match voucher_id.as_deref() {
        Some(text) => Some(crate::caller::parse_id("voucher_id", text)?),
        None => None,
    };
    Ok(Now {
        now_ms: caller.state.shop.clock_shown(voucher).await?,
    })
}
