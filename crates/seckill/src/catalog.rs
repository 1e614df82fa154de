//! Which voucher is which: a process remembers what never changes of each, so that the
//! purchase path asks PostgreSQL nothing.
//!
//! Title, rules, price and lane stay as they were created. What moves (stock, window, state)
//! is read where it is decided. An id that does not exist is remembered for a second, so that
//! asking for it a thousand times costs one query.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use crate::coalesce::{Coalesced, told};
use crate::ids::{Lane, VoucherId};
use crate::store::voucher::{Voucher, voucher_by_id};
use crate::{Error, Shop};

/// How long an unknown id stays unknown, in milliseconds of the process' clock.
const MISSING_MS: i64 = 1_000;
/// How many unknown ids are remembered.
const MISSING_MOST: usize = 10_000;
/// How long the lanes are as they were told.
const LANES_MS: i64 = 1_000;

/// What a look-up finds; none where there is no such voucher.
type LookUp = Coalesced<Option<Arc<Voucher>>>;

/// What a process knows of the vouchers.
#[derive(Default)]
pub(crate) struct Catalog {
    known: RwLock<HashMap<VoucherId, Arc<Voucher>>>,
    /// Where Redis holds sales that were asked for while PostgreSQL was away.
    found: RwLock<HashMap<VoucherId, Lane>>,
    /// Unknown id → when it was looked for.
    missing: RwLock<HashMap<VoucherId, i64>>,
    /// Look-ups under way: a crowd before a process that has just started costs one query.
    looked_up: Mutex<HashMap<VoucherId, Arc<LookUp>>>,
    /// The lanes that vouchers belong to.
    lanes: RwLock<Vec<Lane>>,
    /// When they were last asked for.
    lanes_ms: AtomicI64,
}

impl Catalog {
    fn get(&self, id: VoucherId) -> Option<Arc<Voucher>> {
        self.known
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&id)
            .cloned()
    }

    /// Every voucher met so far.
    pub(crate) fn all(&self) -> Vec<Voucher> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known
            .values()
            .map(|voucher| Voucher::clone(voucher))
            .collect()
    }

    /// Meets the vouchers of rows that were read for something else.
    pub(crate) fn learn(&self, rows: &[Voucher]) {
        for row in rows {
            if self.get(row.voucher_id).is_none() {
                self.put(row.clone());
            }
        }
    }

    fn put(&self, voucher: Voucher) -> Arc<Voucher> {
        let voucher = Arc::new(voucher);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(voucher.voucher_id, Arc::clone(&voucher));
        voucher
    }

    /// Whether the lanes have to be asked for; then the caller is the one who asks.
    pub(crate) fn lanes_are_due(&self, now_ms: i64) -> bool {
        let asked = self.lanes_ms.load(Ordering::Acquire);
        let fresh = (0..LANES_MS).contains(&(now_ms - asked));
        !fresh
            && self
                .lanes_ms
                .compare_exchange(asked, now_ms, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
    }

    /// The lanes as they were last told, and those of the vouchers met so far.
    pub(crate) fn lanes(&self) -> Vec<Lane> {
        let mut lanes = self
            .lanes
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        lanes.extend(known.values().map(|voucher| voucher.lane));
        lanes
    }

    pub(crate) fn put_lanes(&self, lanes: Vec<Lane>) {
        *self.lanes.write().unwrap_or_else(PoisonError::into_inner) = lanes;
    }

    /// The lane of a voucher, as far as it is known without its row.
    fn lane(&self, id: VoucherId) -> Option<Lane> {
        let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
        self.get(id)
            .map(|voucher| voucher.lane)
            .or_else(|| found.get(&id).copied())
    }

    fn put_found(&self, id: VoucherId, lane: Lane) {
        let mut found = self.found.write().unwrap_or_else(PoisonError::into_inner);
        found.insert(id, lane);
    }

    fn look_up(&self, id: VoucherId) -> Arc<LookUp> {
        let mut all = self
            .looked_up
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(id).or_default())
    }

    fn end_look_up(&self, id: VoucherId) {
        let mut all = self
            .looked_up
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.remove(&id);
    }

    fn is_missing(&self, id: VoucherId, now_ms: i64) -> bool {
        let missing = self.missing.read().unwrap_or_else(PoisonError::into_inner);
        missing
            .get(&id)
            .is_some_and(|at| (0..MISSING_MS).contains(&(now_ms - at)))
    }

    fn put_missing(&self, id: VoucherId, now_ms: i64) {
        let mut missing = self.missing.write().unwrap_or_else(PoisonError::into_inner);
        if missing.len() >= MISSING_MOST {
            missing.clear();
        }
        missing.insert(id, now_ms);
    }
}

impl Shop {
    /// The voucher with this id, remembered or looked up.
    pub(crate) async fn voucher(&self, id: VoucherId) -> Result<Arc<Voucher>, Error> {
        if let Some(voucher) = self.catalog().get(id) {
            return Ok(voucher);
        }
        if self.catalog().is_missing(id, self.now_ms()) {
            return Err(Error::NotFound);
        }
        let under_way = self.catalog().look_up(id).get(Duration::ZERO, || {
            let shop = self.clone();
            async move {
                let found = voucher_by_id(shop.pool(), id).await;
                // What is found from here on is found in the catalog.
                shop.catalog().end_look_up(id);
                let Some(voucher) = found? else {
                    shop.catalog().put_missing(id, shop.now_ms());
                    return Ok(None);
                };
                Ok(Some(shop.catalog().put(voucher)))
            }
        });
        let found = under_way.await.map_err(told)?;
        Option::clone(&found).ok_or(Error::NotFound)
    }

    /// The lane that decides about this voucher.
    ///
    /// A process that has not met the voucher and can't ask PostgreSQL looks where Redis holds
    /// the sale: buying works while PostgreSQL is away, and only the first buyer waits for it.
    pub(crate) async fn lane_of(&self, id: VoucherId) -> Result<Lane, Error> {
        if let Some(lane) = self.catalog().lane(id) {
            return Ok(lane);
        }
        match self.voucher(id).await {
            Ok(voucher) => Ok(voucher.lane),
            Err(error @ Error::Unavailable(_)) => {
                for lane in (0..self.lane_count()).map(Lane) {
                    if self.redis().exists(self.names().sale(lane, id)).await? {
                        self.catalog().put_found(id, lane);
                        return Ok(lane);
                    }
                }
                Err(error)
            }
            Err(error) => Err(error),
        }
    }
}
