//! A purchase: one id, one script, one answer.
//!
//! `admit.lua` alone decides. Nothing here asks PostgreSQL once the voucher's lane is known.

use fred::types::Value;
use serde::Serialize;

use crate::ids::{Lane, OrderId, UserId, VoucherId};
use crate::redis::{list, number, text};
use crate::scripts::ADMIT;
use crate::{Error, Shop};

/// The answer to a purchase. A refusal is an answer, not an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Purchase {
    /// The order exists and will be confirmed.
    Admitted {
        /// Its id.
        order_id: OrderId,
    },
    /// This user holds an order of this voucher already.
    AlreadyOrdered {
        /// The id it has.
        order_id: OrderId,
    },
    /// Nothing is left, for now or for good.
    SoldOut,
    /// The sale opens later.
    NotStarted {
        /// When, in milliseconds since the Unix epoch, by Redis' clock.
        begin_ms: i64,
    },
    /// The sale is over.
    Ended,
    /// The sale is paused or closed.
    Paused,
    /// Redis does not hold the sale now.
    NotLoaded,
}

impl Purchase {
    /// Every outcome's word, as it stands in the answer and in the metric.
    pub const OUTCOMES: [&'static str; 7] = [
        "admitted",
        "already_ordered",
        "sold_out",
        "not_started",
        "ended",
        "paused",
        "not_loaded",
    ];

    /// The outcome's word.
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::Admitted { .. } => Self::OUTCOMES[0],
            Self::AlreadyOrdered { .. } => Self::OUTCOMES[1],
            Self::SoldOut => Self::OUTCOMES[2],
            Self::NotStarted { .. } => Self::OUTCOMES[3],
            Self::Ended => Self::OUTCOMES[4],
            Self::Paused => Self::OUTCOMES[5],
            Self::NotLoaded => Self::OUTCOMES[6],
        }
    }

    /// The order that the user holds after this answer.
    pub fn order_id(&self) -> Option<OrderId> {
        match self {
            Self::Admitted { order_id } | Self::AlreadyOrdered { order_id } => Some(*order_id),
            _ => None,
        }
    }

    /// Decodes the reply of `admit.lua`; an unknown code is an error.
    fn decode(parts: &[Value]) -> Result<Self, Error> {
        let part = |i: usize| parts.get(i).unwrap_or(&Value::Null);
        let order = |i| {
            let id = text(part(i)).parse();
            id.map_err(|_| Error::impossible("admit.lua answered without an order id"))
        };
        Ok(match number(part(0))? {
            0 => Self::Admitted {
                order_id: order(1)?,
            },
            1 => Self::SoldOut,
            2 => Self::AlreadyOrdered {
                order_id: order(1)?,
            },
            3 => Self::NotStarted {
                begin_ms: number(part(3))?,
            },
            4 => Self::Ended,
            5 => Self::NotLoaded,
            6 => Self::Paused,
            code => {
                return Err(Error::impossible(format!(
                    "admit.lua answered the unknown code {code}"
                )));
            }
        })
    }
}

impl Shop {
    /// Asks for a voucher for this user, in one round trip to Redis.
    ///
    /// `trace` is a W3C traceparent that goes along with the order; text that is none is left out.
    ///
    /// # Errors
    /// `NotFound` for an unknown voucher; `Unavailable` when Redis can't be asked or did not
    /// answer in time: the purchase may have been decided, and the same call tells.
    pub async fn buy(
        &self,
        user: UserId,
        voucher: VoucherId,
        trace: &str,
    ) -> Result<Purchase, Error> {
        self.may_decide().await?;
        let lane = self.lane_of(voucher).await?;
        let proposed = self.ids().take(self.now_ms()).await?;
        let purchase = self.admit(lane, proposed, user, voucher, trace).await?;
        // On an error nobody knows whether the id is in use: it is not used again.
        if purchase.order_id() != Some(proposed) {
            self.ids().give_back(proposed);
        }
        if purchase == Purchase::NotLoaded && self.is_released(voucher).await? {
            return Ok(Purchase::Ended);
        }
        Ok(purchase)
    }

    /// The decision itself, with an id of the caller's.
    pub(crate) async fn admit(
        &self,
        lane: Lane,
        proposed: OrderId,
        user: UserId,
        voucher: VoucherId,
        trace: &str,
    ) -> Result<Purchase, Error> {
        let names = self.names();
        let keys = vec![
            names.sale(lane, voucher),
            names.buyers(lane, voucher),
            names.orders(lane),
            names.inflight(lane),
        ];
        let args = vec![
            proposed.to_string().into(),
            user.to_string().into(),
            voucher.to_string().into(),
            clean(trace).into(),
        ];
        // Once more, right before it is sent: looking the lane up or leasing ids may have taken
        // long enough for another Redis to come back.
        self.may_decide().await?;
        let parts = list(self.redis().eval(&ADMIT, keys, args).await?)?;
        crate::fail_point("buy-after-script");
        let purchase = Purchase::decode(&parts)?;
        if matches!(purchase, Purchase::Admitted { .. }) {
            self.showcase().sold(voucher);
        }
        // Only an admission has a place.
        if let Some(Ok(place)) = parts.get(4).map(text).map(|place| place.parse()) {
            self.gate().saw(lane, place, voucher, user, proposed);
        }
        Ok(purchase)
    }
}

/// A traceparent as it may stand in a mark: hexadecimal digits and dashes, at most 64.
fn clean(trace: &str) -> String {
    let fits = trace.len() <= 64 && trace.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    if fits {
        trace.to_owned()
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_code_is_an_error() {
        assert!(Purchase::decode(&[7.into()]).is_err());
        assert!(Purchase::decode(&[]).is_err());
        assert!(Purchase::decode(&[0.into(), "".into()]).is_err());
    }

    #[test]
    fn what_is_no_traceparent_is_left_out() {
        assert_eq!(
            clean("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").len(),
            55
        );
        assert_eq!(clean("a|b"), "");
        assert_eq!(clean(&"a".repeat(65)), "");
    }
}
