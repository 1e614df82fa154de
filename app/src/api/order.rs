//! Orders of the signed-in user. Somebody else's is as unknown as one that never was.

#![expect(
    missing_docs,
    reason = "`#[server]` makes a struct of the arguments that each function describes"
)]

use leptos::{
    prelude::server,
    server_fn::codec::{GetUrl, Json},
};
use serde::{Deserialize, Serialize};

use super::{ApiError, Listed};

/// Where an order is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderState {
    /// Accepted, and on its way to the database.
    Queued,
    /// In the database.
    Confirmed,
    /// It did not come to be.
    Failed,
}

impl OrderState {
    /// The state as the contract spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Confirmed => "confirmed",
            Self::Failed => "failed",
        }
    }

    /// The state that is spelled `text`, if there is one.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Queued, Self::Confirmed, Self::Failed];
        all.into_iter().find(|state| state.as_str() == text)
    }
}

/// One order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Its id.
    pub order_id: String,
    /// What was bought.
    pub voucher_id: String,
    /// The voucher's name.
    pub title: String,
    /// Where it is.
    pub state: OrderState,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was accepted.
    pub admitted_ms: i64,
    /// When its row was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_ms: Option<i64>,
}

#[cfg(feature = "ssr")]
impl From<seckill::Order> for Order {
    fn from(order: seckill::Order) -> Self {
        Self {
            order_id: order.order_id.to_string(),
            voucher_id: order.voucher_id.to_string(),
            title: order.title,
            state: match order.state {
                seckill::OrderState::Queued => OrderState::Queued,
                seckill::OrderState::Confirmed => OrderState::Confirmed,
                seckill::OrderState::Failed => OrderState::Failed,
            },
            reason: order.reason,
            admitted_ms: order.admitted_ms,
            confirmed_ms: order.confirmed_ms,
        }
    }
}

/// One order of the signed-in user.
#[server(name = GetOrder, prefix = "/api", endpoint = "order", input = GetUrl, output = Json)]
pub async fn order(#[server(default)] order_id: String) -> Result<Order, ApiError> {
    let caller = crate::caller::Caller::from_context()?;
    let user = caller.require_user().await?;
    let id = crate::caller::parse_id("order_id", &order_id)?;
    Ok(caller.state.shop.order(user.user_id, id).await?.into())
}

/// The signed-in user's orders, newest first.
#[server(name = GetOrders, prefix = "/api", endpoint = "orders", input = GetUrl, output = Json)]
pub async fn orders(
    #[server(default)] after: Option<String>,
    #[server(default)] limit: Option<String>,
) -> Result<Listed<Order>, ApiError> {
    let caller = crate::caller::Caller::from_context()?;
    let user = caller.require_user().await?;
    let page = seckill::page::Page::parse(after.as_deref(), limit.as_deref())?;
    let orders = caller.state.shop.orders(user.user_id, &page).await?;
    Ok(Listed::from_paged(orders, Order::from))
}
