//! The reconciler: brings Redis back to what PostgreSQL and the marks say, step by step.
//!
//! Sales that Redis lost, or never got, are loaded; loads and changes that a crash left half
//! done are finished; marks without an entry get a new one; and each sale's rows are held
//! against its counters. Where they can't both be right, the sale is closed and loaded anew,
//! and an admin resumes it. Nothing else is repaired without an admin's word. One process at a
//! time does it, to save work; two at once do no harm.

use std::collections::HashMap;
use std::time::Duration;

use fred::types::Value;

use crate::ids::{Lane, VoucherId};
use crate::lock::{Guard, Lease, Lock};
use crate::mark::order_field;
use crate::preload::Loaded;
use crate::redis::{count, list, number, text};
use crate::reports::Report;
use crate::scripts::{RELEASE, RESTORE};
use crate::store::order::order_count;
use crate::store::voucher::{Voucher, voucher_releasable, voucher_released};
use crate::store::watch::{report_forget, report_insert};
use crate::vouchers::LiveSale;
use crate::{Error, Shop};

/// The lock's name, and how long a process that died holds it.
const LOCK: &str = "reconcile";
const LEASE: Lease = Lease::Renewed(Duration::from_secs(10));
/// Marks looked at in one script call.
const CHUNK: u32 = 500;
/// How often a sale in balance is reported.
const REPORT_MS: i64 = 60_000;
/// A sale is weighed for at most one part in so many of the time, and at least every
/// `WEIGH_MS`, so that drift is seen within 30 s.
const WEIGH_SHARE: i64 = 20;
const WEIGH_MS: i64 = 15_000;
/// How long reports are kept, and how often old ones are looked for.
const KEEP_REPORTS_MS: i64 = 30 * 86_400_000;
const FORGET_MS: i64 = 3_600_000;

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
    /// Sales whose rows and counters can't both be right.
    pub drift: Vec<VoucherId>,
    /// Ended sales whose memory was freed.
    pub released: Vec<VoucherId>,
    /// Sales that something made unreadable: the others are not kept waiting by them.
    pub failed: Vec<VoucherId>,
    /// Lanes of which the same holds.
    pub failed_lanes: Vec<Lane>,
    /// Another process does it.
    pub skipped: bool,
}

/// What was last reported of a sale.
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    at_ms: i64,
    drift: bool,
    failed: bool,
    /// The epoch under which the sale was closed for drift: it is not loaded anew again.
    closed: Option<i64>,
    /// Not weighed again before: counting ten million rows each second would be all that
    /// PostgreSQL does.
    rest_until_ms: i64,
}

/// The reconciler of a process.
pub struct Reconciler {
    shop: Shop,
    lock: Lock,
    /// Kept between rounds, so that the work does not move from process to process.
    guard: Option<Guard>,
    told: HashMap<VoucherId, Told>,
    /// When old reports were last removed.
    forgot_ms: i64,
}

impl Reconciler {
    /// A reconciler of this shop.
    pub fn new(shop: &Shop) -> Self {
        Self {
            shop: shop.clone(),
            lock: shop.locks().lock(LOCK).expect("a valid name"),
            guard: None,
            told: HashMap::new(),
            forgot_ms: 0,
        }
    }

    /// One round over every sale that Redis has to hold, and every lane.
    ///
    /// # Errors
    /// `Unavailable` when either store can't be asked; what was done is done, the next round goes on.
    pub async fn step(&mut self) -> Result<Reconciled, Error> {
        let mut done = Reconciled::default();
        if !self.turn(Duration::ZERO).await? {
            done.skipped = true;
            return Ok(done);
        }
        let held = self.shop.held(self.shop.now_ms()).await?;
        self.told
            .retain(|id, _| held.iter().any(|voucher| voucher.voucher_id == *id));
        for voucher in held {
            let id = voucher.voucher_id;
            let failed = match self.sale(&voucher, &mut done).await {
                Err(Error::Internal(cause)) => Some(cause.to_string()),
                reconciled => reconciled.map(|()| None)?,
            };
            self.told_of_failure(id, failed, &mut done);
            self.still_ours()?;
        }
        for lane in self.shop.lanes().await? {
            match self.restore(lane).await {
                Ok(restored) => done.restored += restored,
                Err(error @ Error::Internal(_)) => {
                    tracing::error!(%error, %lane, "a lane's marks can't be looked at");
                    done.failed_lanes.push(lane);
                }
                Err(error) => return Err(error),
            }
            self.still_ours()?;
        }
        self.release(&mut done).await?;
        self.forget_reports().await?;
        Ok(done)
    }

    /// Waits until it is this process' turn, at most this long; false when another one still does it.
    ///
    /// # Errors
    /// `Unavailable` when Redis can't be asked.
    pub async fn turn(&mut self, limit: Duration) -> Result<bool, Error> {
        if let Some(guard) = &self.guard {
            if guard.renew().await? {
                return Ok(true);
            }
            self.guard = None;
        }
        self.guard = if limit.is_zero() {
            self.lock.try_acquire(LEASE).await?
        } else {
            self.lock.acquire(LEASE, limit).await?
        };
        Ok(self.guard.is_some())
    }

    /// Gives the lock back, so that another process need not wait for its lease to end.
    pub async fn close(self) {
        let Some(guard) = self.guard else { return };
        if let Err(error) = guard.release().await {
            tracing::debug!(%error, "the reconciler's lock expires by itself");
        }
    }

    /// Logs a sale that can't be reconciled, once for as long as it can't.
    fn told_of_failure(&mut self, id: VoucherId, failed: Option<String>, done: &mut Reconciled) {
        let told = self.told.entry(id).or_default();
        if let Some(error) = &failed {
            if !told.failed {
                tracing::error!(error, voucher_id = %id, "a sale can't be reconciled");
            }
            done.failed.push(id);
        }
        told.failed = failed.is_some();
    }

    /// Leaves the rest of a round to the process that has the lock by now.
    fn still_ours(&self) -> Result<(), Error> {
        match &self.guard {
            Some(guard) if !guard.is_lost() => Ok(()),
            _ => Err(Error::Unavailable(
                "the reconciler's lock was lost in the middle of a round".into(),
            )),
        }
    }

    async fn sale(&mut self, voucher: &Voucher, done: &mut Reconciled) -> Result<(), Error> {
        let (shop, id) = (self.shop.clone(), voucher.voucher_id);
        let live = shop.live(voucher).await?.sale;
        // An epoch that was taken and not loaded under belongs to an attempt that died: until
        // it is loaded no order of the sale can be confirmed.
        let Some(live) = live.filter(|live| {
            live.whole
                && live.epoch == voucher.loaded_epoch
                && voucher.epoch == voucher.loaded_epoch
        }) else {
            if shop.load(id).await? == Loaded::Written {
                done.loaded.push(id);
                shop.report(voucher, "loaded").await?;
            }
            return Ok(());
        };
        if live.loading {
            if shop.finish(voucher, live.epoch).await? {
                done.finished.push(id);
                shop.report(voucher, "finished").await?;
            }
            return Ok(());
        }
        if live.rev < voucher.rev {
            let applied = shop.apply_changes(voucher).await?;
            done.applied += applied;
            if applied > 0 {
                shop.report(voucher, "applied").await?;
            }
            return Ok(());
        }
        let begun_ms = shop.now_ms();
        if begun_ms < self.told.entry(id).or_default().rest_until_ms {
            return Ok(());
        }
        let Some(report) = self.weigh(voucher, &live).await? else {
            return Ok(());
        };
        let took_ms = (shop.now_ms() - begun_ms).max(0);
        let rest_until_ms = begun_ms + (took_ms * WEIGH_SHARE).min(WEIGH_MS);
        if report.drift {
            done.drift.push(id);
            return self.drifted(voucher, report).await;
        }
        let told = self.told.entry(id).or_default();
        told.rest_until_ms = rest_until_ms;
        if told.drift {
            tracing::info!(voucher_id = %id, "in balance again");
        }
        if told.drift || report.at_ms - told.at_ms >= REPORT_MS {
            *told = Told {
                at_ms: report.at_ms,
                drift: false,
                ..*told
            };
            report_insert(shop.pool(), &report).await?;
        }
        Ok(())
    }

    /// Rows against counters: *acked* read before the rows are counted, *acked + in flight +
    /// dead* read after. It holds at any time, under full load. None when the sale was loaded meanwhile.
    async fn weigh(&self, voucher: &Voucher, before: &LiveSale) -> Result<Option<Report>, Error> {
        let rows = order_count(self.shop.pool(), voucher.voucher_id).await?;
        let Some(after) = self.shop.live(voucher).await?.sale else {
            return Ok(None);
        };
        if after.epoch != before.epoch || !after.loaded() {
            return Ok(None);
        }
        let drift = rows < before.acked
            || rows > after.acked + after.in_flight + after.dead
            || after.stock + after.in_flight + after.dead + after.acked != after.total
            || after.stock < 0;
        Ok(Some(Report {
            drift,
            ..self.shop.report_of(voucher, rows, &after)
        }))
    }

    /// Closes a sale that drifts, once for each of its epochs: what drifts after a load is not
    /// mended by another.
    async fn drifted(&mut self, voucher: &Voucher, report: Report) -> Result<(), Error> {
        let told = self
            .told
            .get(&voucher.voucher_id)
            .copied()
            .unwrap_or_default();
        let close = told.closed != Some(report.epoch);
        if !told.drift || close || report.at_ms - told.at_ms >= REPORT_MS {
            tracing::error!(
                voucher_id = %voucher.voucher_id, rows = report.rows, acked = report.acked, in_flight = report.in_flight,
                dead = report.dead, left = report.left, total = report.total, "drift"
            );
            let action = if close { "closed" } else { "" };
            report_insert(
                self.shop.pool(),
                &Report {
                    action: action.into(),
                    ..report.clone()
                },
            )
            .await?;
        }
        let mut closed = told.closed;
        if close {
            self.shop.distrust(voucher).await?;
            closed = self.shop.live(voucher).await?.sale.map(|live| live.epoch);
        }
        self.told.insert(
            voucher.voucher_id,
            Told {
                at_ms: report.at_ms,
                drift: true,
                failed: false,
                closed,
                rest_until_ms: 0,
            },
        );
        Ok(())
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
            for chunk in orders.chunks(CHUNK as usize) {
                restored += self.restore_marks(lane, chunk.to_vec()).await?;
            }
            if cursor == "0" || cursor.is_empty() {
                return Ok(restored);
            }
        }
    }

    async fn restore_marks(&self, lane: Lane, orders: Vec<Value>) -> Result<u64, Error> {
        let names = self.shop.names();
        let keys = vec![names.orders(lane), names.inflight(lane), names.dead(lane)];
        let reply = list(self.shop.redis().eval(&RESTORE, keys, orders).await?)?;
        let sum: Result<Vec<u64>, Error> = reply.iter().map(count).collect();
        let sum: u64 = sum?.iter().sum();
        if sum > 0 {
            tracing::error!(%lane, marks = sum, "marks without an entry were given a new one");
        }
        Ok(sum)
    }

    async fn forget_reports(&mut self) -> Result<(), Error> {
        let now_ms = self.shop.now_ms();
        if now_ms - self.forgot_ms >= FORGET_MS {
            report_forget(self.shop.pool(), now_ms - KEEP_REPORTS_MS).await?;
            self.forgot_ms = now_ms;
        }
        Ok(())
    }

    /// Frees the memory of sales that ended long ago and have nothing in flight.
    async fn release(&self, done: &mut Reconciled) -> Result<(), Error> {
        let (shop, names) = (&self.shop, self.shop.names());
        let old_ms = shop.now_ms() - shop.hold_after_end_ms();
        for voucher in voucher_releasable(shop.pool(), old_ms).await? {
            let (lane, id) = (voucher.lane, voucher.voucher_id);
            let keys = vec![
                names.sale(lane, id),
                names.buyers(lane, id),
                names.inflight(lane),
            ];
            let args = vec![
                id.to_string().into(),
                shop.hold_after_end_ms().into(),
                voucher.end_ms.into(),
            ];
            let released = match shop.redis().eval(&RELEASE, keys, args).await {
                // Something made it unreadable: the others are freed all the same.
                Err(error @ Error::Internal(_)) => {
                    tracing::debug!(%error, voucher_id = %id, "an ended sale can't be freed");
                    done.failed.push(id);
                    continue;
                }
                reply => number(&reply?)? == 1,
            };
            if released {
                crate::fail_point("release-after-script");
                voucher_released(shop.pool(), id).await?;
                tracing::info!(voucher_id = %id, "the memory of an ended sale was freed");
                done.released.push(id);
            }
        }
        Ok(())
    }
}
