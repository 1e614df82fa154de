//! The purchase.

#![expect(
    missing_docs,
    reason = "`#[server]` makes a struct of the arguments that each function describes"
)]

use leptos::{
    prelude::server,
    server_fn::codec::{Json, PostUrl},
};
use serde::{Deserialize, Serialize};

use super::ApiError;

/// How a purchase was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// There is an order now.
    Admitted,
    /// There was one already, and this is it.
    AlreadyOrdered,
    /// Nothing is left.
    SoldOut,
    /// It opens later.
    NotStarted,
    /// It is over.
    Ended,
    /// An operator stopped it for now.
    Paused,
    /// The sale is not ready.
    NotLoaded,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 7] = [
        Self::Admitted,
        Self::AlreadyOrdered,
        Self::SoldOut,
        Self::NotStarted,
        Self::Ended,
        Self::Paused,
        Self::NotLoaded,
    ];

    /// The outcome as the contract spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::AlreadyOrdered => "already_ordered",
            Self::SoldOut => "sold_out",
            Self::NotStarted => "not_started",
            Self::Ended => "ended",
            Self::Paused => "paused",
            Self::NotLoaded => "not_loaded",
        }
    }

    /// The outcome spelled `text`, if there is one.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|outcome| outcome.as_str() == text)
    }
}

/// The answer to a press of the button. A refusal is an answer, not an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purchase {
    /// How it was decided.
    pub outcome: Outcome,
    /// The buyer's order, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_id: Option<String>,
    /// When the sale opens, when it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin_ms: Option<i64>,
}

#[cfg(feature = "ssr")]
impl From<seckill::Purchase> for Purchase {
    fn from(purchase: seckill::Purchase) -> Self {
        let refused = |outcome| Self {
            outcome,
            order_id: None,
            begin_ms: None,
        };
        match purchase {
            seckill::Purchase::Admitted { order_id } => Self {
                order_id: Some(order_id.to_string()),
                ..refused(Outcome::Admitted)
            },
            seckill::Purchase::AlreadyOrdered { order_id } => Self {
                order_id: Some(order_id.to_string()),
                ..refused(Outcome::AlreadyOrdered)
            },
            seckill::Purchase::NotStarted { begin_ms } => Self {
                begin_ms: Some(begin_ms),
                ..refused(Outcome::NotStarted)
            },
            seckill::Purchase::SoldOut => refused(Outcome::SoldOut),
            seckill::Purchase::Ended => refused(Outcome::Ended),
            seckill::Purchase::Paused => refused(Outcome::Paused),
            seckill::Purchase::NotLoaded => refused(Outcome::NotLoaded),
        }
    }
}

/// Buys one voucher for the signed-in user. Asking again gives the same order.
#[server(prefix = "/api", endpoint = "buy", input = PostUrl, output = Json)]
pub async fn buy(#[server(default)] voucher_id: String) -> Result<Purchase, ApiError> {
    super::answered(
        ssr::buy(&voucher_id).await,
        |purchase| ssr::result_page(&voucher_id, purchase),
        |error| ssr::refusal_page(&voucher_id, error),
    )
}

#[cfg(feature = "ssr")]
mod ssr {
    use std::time::Instant;

    use seckill::ids::VoucherId;

    use super::Purchase;
    use crate::{
        api::{ApiError, Code},
        caller::{Caller, parse_id},
        routes,
    };

    /// Decides, and counts how and how fast.
    pub(super) async fn buy(voucher_id: &str) -> Result<Purchase, ApiError> {
        let start = Instant::now();
        let caller = Caller::from_context()?;
        let result = decide(&caller, voucher_id).await;
        let outcome = match &result {
            Ok(purchase) => purchase.outcome.as_str(),
            Err(error) => error.code.as_str(),
        };
        caller
            .state
            .observe
            .purchase(outcome, start.elapsed().as_secs_f64());
        result
    }

    async fn decide(caller: &Caller, voucher_id: &str) -> Result<Purchase, ApiError> {
        let voucher: VoucherId = parse_id("voucher_id", voucher_id)?;
        let user = caller.require_user().await?;
        let purchase = caller
            .state
            .shop
            .buy(user.user_id, voucher, &caller.traceparent)
            .await?;
        Ok(purchase.into())
    }

    /// The order's page, or the sale's with the refusal.
    pub(super) fn result_page(voucher_id: &str, purchase: &Purchase) -> String {
        match &purchase.order_id {
            Some(order_id) => routes::order(order_id),
            None => format!(
                "{}?outcome={}",
                routes::sale(voucher_id.trim()),
                purchase.outcome.as_str()
            ),
        }
    }

    /// Where a plain form goes that got no decision. An id that is none leads nowhere,
    /// so it is never written into an address.
    pub(super) fn refusal_page(voucher_id: &str, error: &ApiError) -> String {
        match (voucher_id.trim().parse::<VoucherId>(), error.code) {
            (Ok(id), Code::NotFound) => routes::sale(&id.to_string()),
            (Ok(id), _) => super::super::refusal_page(error, &routes::sale(&id.to_string())),
            (Err(_), code) => routes::problem(code.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_leaves_out_what_it_does_not_have() {
        let sold_out = Purchase {
            outcome: Outcome::SoldOut,
            order_id: None,
            begin_ms: None,
        };
        assert_eq!(
            serde_json::to_string(&sold_out).unwrap(),
            r#"{"outcome":"sold_out"}"#
        );
        let admitted = Purchase {
            outcome: Outcome::Admitted,
            order_id: Some("7".into()),
            begin_ms: None,
        };
        assert_eq!(
            serde_json::to_string(&admitted).unwrap(),
            r#"{"outcome":"admitted","order_id":"7"}"#
        );
    }

    #[test]
    fn every_outcome_is_spelled_the_same_everywhere() {
        for outcome in Outcome::ALL {
            assert_eq!(
                serde_json::to_string(&outcome).unwrap(),
                format!("\"{}\"", outcome.as_str())
            );
            assert_eq!(Outcome::parse(outcome.as_str()), Some(outcome));
        }
    }

    #[cfg(feature = "ssr")]
    #[test]
    fn the_outcomes_are_those_of_the_domain() {
        for outcome in seckill::Purchase::OUTCOMES {
            assert!(Outcome::parse(outcome).is_some(), "{outcome}");
        }
    }
}
