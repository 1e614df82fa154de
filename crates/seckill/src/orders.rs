//! A buyer's orders: the mark first, then PostgreSQL, never the other way round.
//!
//! An order's mark is removed only after its row is committed. So who finds no mark and then
//! no row has found nothing; the other way round an order could be missed on its way.

use std::collections::HashMap;
use std::str::FromStr;

use fred::interfaces::HashesInterface;
use futures::future::join_all;

use crate::ids::{Lane, OrderId, UserId, VoucherId};
use crate::mark::Mark;
use crate::page::{Page, Paged};
use crate::redis::{list, text};
use crate::scripts::MINE;
use crate::store::order::{OrderRow, order_of_user, order_page};
use crate::{Error, Shop};

/// Sales looked through in one script call.
const SALES: usize = 1_000;

/// Where an order is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderState {
    /// Admitted, not yet in the database. A dead letter is queued to its buyer until it is settled.
    Queued,
    /// In the database.
    Confirmed,
    /// Given up by an operator; the buyer may buy again.
    Failed,
}

impl OrderState {
    /// The state's word over HTTP and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Confirmed => "confirmed",
            Self::Failed => "failed",
        }
    }
}

impl FromStr for OrderState {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::Queued, Self::Confirmed, Self::Failed]
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or(())
    }
}

/// An order as its buyer sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Its id.
    pub order_id: OrderId,
    /// What was bought.
    pub voucher_id: VoucherId,
    /// What that is called.
    pub title: String,
    /// Where it is.
    pub state: OrderState,
    /// Why it failed.
    pub reason: Option<String>,
    /// When it was admitted, in milliseconds by Redis' clock.
    pub admitted_ms: i64,
    /// When its row was written, in milliseconds.
    pub confirmed_ms: Option<i64>,
}

impl From<OrderRow> for Order {
    fn from(row: OrderRow) -> Self {
        let confirmed = row.written.state == OrderState::Confirmed;
        Self {
            order_id: row.written.order_id,
            voucher_id: row.written.voucher_id,
            title: row.title,
            state: row.written.state,
            reason: row.reason,
            admitted_ms: row.admitted_ms,
            confirmed_ms: confirmed.then_some(row.settled_ms),
        }
    }
}

impl Shop {
    /// The order that a user holds of a voucher, as Redis has it: none once an ended sale's
    /// memory was freed.
    ///
    /// # Errors
    /// `NotFound` for an unknown voucher; `Unavailable` when Redis can't be asked.
    pub async fn order_held(
        &self,
        user: UserId,
        voucher: VoucherId,
    ) -> Result<Option<OrderId>, Error> {
        let lane = self.lane_of(voucher).await?;
        let key = self.names().buyers(lane, voucher);
        let held: Option<String> = self.redis().client().hget(key, user.to_string()).await?;
        let unreadable = |_| Error::impossible("a buyer's order is no order id");
        held.map(|id| id.parse().map_err(unreadable)).transpose()
    }

    /// One order of this user.
    ///
    /// # Errors
    /// `NotFound` for an id that does not exist and for somebody else's alike; `Unavailable`
    /// when Redis or PostgreSQL can't be asked and the other one knows nothing.
    pub async fn order(&self, user: UserId, id: OrderId) -> Result<Order, Error> {
        let marked = self.mark_anywhere(id).await;
        if let Ok(Some(mark)) = &marked {
            // Its row may be committed this very moment; "queued" is true until it is acknowledged.
            return if mark.user_id == user {
                self.queued(id, mark).await
            } else {
                Err(Error::NotFound)
            };
        }
        match (order_of_user(self.pool(), user, id).await?, marked) {
            (Some(row), _) => Ok(row.into()),
            (None, Ok(_)) => Err(Error::NotFound),
            (None, Err(error)) => Err(error),
        }
    }

    /// The user's orders, newest first; those not yet in the database among them.
    ///
    /// # Errors
    /// `Invalid` for a cursor that is none; `Unavailable` when either store can't be asked.
    pub async fn orders(&self, user: UserId, page: &Page) -> Result<Paged<Order>, Error> {
        let below: Option<OrderId> = page.cursor()?;
        let mut queued = self.queued_orders(user).await?;
        queued.retain(|order| below.is_none_or(|below| order.order_id < below));
        let rows = order_page(self.pool(), user, below, i64::from(page.limit) + 1).await?;
        let written: Vec<Order> = rows.into_iter().map(Order::from).collect();
        let waiting = queued
            .into_iter()
            .filter(|order| written.iter().all(|w| w.order_id != order.order_id));
        let mut all: Vec<Order> = waiting.chain(written.iter().cloned()).collect();
        all.sort_by_key(|order| std::cmp::Reverse(order.order_id));
        Ok(Paged::cut(all, page, |order| order.order_id.to_string()))
    }

    /// The user's orders that have a mark, found through the buyers of every sale that Redis holds.
    async fn queued_orders(&self, user: UserId) -> Result<Vec<Order>, Error> {
        let mut lanes: HashMap<Lane, Vec<VoucherId>> = HashMap::new();
        for voucher in self.held(self.now_ms()).await? {
            lanes
                .entry(voucher.lane)
                .or_default()
                .push(voucher.voucher_id);
        }
        let names = self.names();
        let ask = lanes.iter().flat_map(|(lane, sales)| {
            sales.chunks(SALES).map(move |sales| async move {
                let keys = std::iter::once(names.inflight(*lane))
                    .chain(sales.iter().map(|sale| names.buyers(*lane, *sale)))
                    .collect();
                let args = vec![user.to_string().into()];
                list(self.redis().eval(&MINE, keys, args).await?)
            })
        });
        let mut orders = Vec::new();
        for found in join_all(ask).await {
            for pair in found?.chunks_exact(2) {
                let id = text(&pair[0]).parse();
                let id = id.map_err(|_| Error::impossible("a buyer's order id that is none"))?;
                orders.push(self.queued(id, &Mark::parse(&text(&pair[1]))?).await?);
            }
        }
        Ok(orders)
    }

    async fn queued(&self, id: OrderId, mark: &Mark) -> Result<Order, Error> {
        let title = match self.voucher(mark.voucher_id).await {
            Ok(voucher) => voucher.title.clone(),
            Err(error) if error.is_transient() => String::new(),
            Err(error) => return Err(error),
        };
        Ok(Order {
            order_id: id,
            voucher_id: mark.voucher_id,
            title,
            state: OrderState::Queued,
            reason: None,
            admitted_ms: mark.admitted_ms,
            confirmed_ms: None,
        })
    }

    /// The mark of this order in this lane.
    pub(crate) async fn mark(&self, lane: Lane, id: OrderId) -> Result<Option<Mark>, Error> {
        let key = self.names().inflight(lane);
        let text: Option<String> = self.redis().client().hget(key, id.to_string()).await?;
        text.as_deref().map(Mark::parse).transpose()
    }

    /// The mark of this order, whatever its lane.
    async fn mark_anywhere(&self, id: OrderId) -> Result<Option<Mark>, Error> {
        let lanes = self.lanes().await?;
        let found = join_all(lanes.into_iter().map(|lane| self.mark(lane, id))).await;
        let marks: Result<Vec<_>, Error> = found.into_iter().collect();
        Ok(marks?.into_iter().flatten().next())
    }
}
