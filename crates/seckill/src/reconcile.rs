//! The reconciler: brings Redis back to what PostgreSQL and the marks say, step by step.
//!
//! Sales that Redis lost, or never got, are loaded; loads and changes that a crash left half
//! done are finished; marks without an entry get a new one; and each sale's rows are held
//! against its counters. One process at a time does it, to save work; two at once do no harm.

use std::time::Duration;

use fred::types::Value;

use crate::ids::{Lane, VoucherId};
use crate::mark::order_field;
use crate::preload::Loaded;
use crate::redis::{count, list, text};
use crate::scripts::RESTORE;
use crate::store::order::order_count;
use crate::store::voucher::Voucher;
use crate::vouchers::LiveSale;
use crate::{Error, Shop, lock};

/// The lock's name, and how long a process that died holds it.
const LOCK: &str = "reconcile";
const LEASE: Duration = Duration::from_secs(10);
/// Marks looked at in one script call.
const CHUNK: u32 = 500;

/// What a step did.
#[derive(Debug, Default)]
pub struct Reconciled {
    /// Sales loaded.
    pub loaded: Vec<VoucherId>,
    /// Loads finished that a crash had left.
    pub finished: Vec<VoucherId>,
    /// Changes applied.
    pub applied: u32,
    /// Marks that got a new entry.
    pub restored: u64,
    /// Sales whose rows do not agree with their counters.
    pub drift: Vec<VoucherId>,
    /// Another process does it.
    pub skipped: bool,
}

/// The reconciler of a process.
pub struct Reconciler {
    shop: Shop,
    owner: String,
}

impl Reconciler {
    /// A reconciler of this shop.
    pub fn new(shop: &Shop) -> Self {
        Self {
            shop: shop.clone(),
            owner: lock::owner(),
        }
    }

    /// One round over every sale that Redis has to hold, and every lane.
    ///
    /// # Errors
    /// `Unavailable` when either store can't be asked; what was done is done, the next round goes on.
    pub async fn step(&mut self) -> Result<Reconciled, Error> {
        let mut done = Reconciled::default();
        if !self.shop.lock(LOCK, &self.owner, LEASE).await? {
            done.skipped = true;
            return Ok(done);
        }
        for voucher in self.shop.held(self.shop.now_ms()).await? {
            self.sale(&voucher, &mut done).await?;
        }
        for lane in self.shop.lanes().await? {
            done.restored += self.restore(lane).await?;
        }
        Ok(done)
    }

    /// Gives the lock back, so that another process need not wait for its lease to end.
    pub async fn close(self) {
        if let Err(error) = self.shop.unlock(LOCK, &self.owner).await {
            tracing::debug!(%error, "the reconciler's lock expires by itself");
        }
    }

    async fn sale(&self, voucher: &Voucher, done: &mut Reconciled) -> Result<(), Error> {
        let (shop, id) = (&self.shop, voucher.voucher_id);
        let live = shop.live(voucher).await?.sale;
        let Some(live) = live.filter(|live| live.whole && live.epoch == voucher.loaded_epoch)
        else {
            if shop.load(id).await? == Loaded::Written {
                done.loaded.push(id);
            }
            return Ok(());
        };
        if live.loading {
            if shop.finish(voucher, live.epoch).await? {
                done.finished.push(id);
            }
            return Ok(());
        }
        if live.rev < voucher.rev {
            done.applied += shop.apply_changes(voucher).await?;
            return Ok(());
        }
        if self.drifts(voucher, &live).await? {
            done.drift.push(id);
        }
        Ok(())
    }

    /// Whether the rows lie outside what the counters allow: *acked* read before the rows are
    /// counted, *acked + in flight + dead* read after. It holds at any time, under full load.
    async fn drifts(&self, voucher: &Voucher, before: &LiveSale) -> Result<bool, Error> {
        let rows = order_count(self.shop.pool(), voucher.voucher_id).await?;
        let Some(after) = self.shop.live(voucher).await?.sale else {
            return Ok(false);
        };
        if after.epoch != before.epoch || !after.whole || after.loading {
            return Ok(false);
        }
        let sum = after.stock + after.in_flight + after.dead + after.acked;
        let drifts = rows < before.acked
            || rows > after.acked + after.in_flight + after.dead
            || sum != after.total
            || after.stock < 0;
        if drifts {
            tracing::error!(
                voucher_id = %voucher.voucher_id, rows, acked_before = before.acked, acked = after.acked,
                in_flight = after.in_flight, dead = after.dead, left = after.stock, total = after.total, "drift"
            );
        }
        Ok(drifts)
    }

    /// Gives every mark of a lane whose entry is gone a new one.
    async fn restore(&self, lane: Lane) -> Result<u64, Error> {
        let (shop, names) = (&self.shop, self.shop.names());
        let inflight = names.inflight(lane);
        let (mut cursor, mut restored) = ("0".to_owned(), 0);
        loop {
            let page: Value = shop.redis().hscan_page(&inflight, &cursor, CHUNK).await?;
            let parts = list(page)?;
            cursor = parts.first().map(text).unwrap_or_default();
            let fields = list(parts.into_iter().nth(1).unwrap_or(Value::Null))?;
            let orders: Vec<Value> = fields
                .chunks_exact(2)
                .filter_map(|pair| order_field(&text(&pair[0])))
                .map(|id| id.to_string().into())
                .collect();
            if !orders.is_empty() {
                let keys = vec![names.orders(lane), inflight.clone(), names.dead(lane)];
                let reply = list(shop.redis().eval(&RESTORE, keys, orders).await?)?;
                let sum: Result<Vec<u64>, Error> = reply.iter().map(count).collect();
                let sum: u64 = sum?.iter().sum();
                if sum > 0 {
                    tracing::error!(%lane, marks = sum, "marks without an entry were given a new one");
                }
                restored += sum;
            }
            if cursor == "0" || cursor.is_empty() {
                return Ok(restored);
            }
        }
    }
}
