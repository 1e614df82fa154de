//! What everybody who watches is shown: one read of Redis per sale and short while, however many
//! look ([`ShopConfig::show_for`](crate::ShopConfig::show_for)).
//!
//! The time is told as of the moment of the answer, so that a sale opens and ends on the
//! millisecond; the stock counts what this process has sold since it was read, so that nobody
//! is shown more than is left after his own purchase here. A change made by this process is
//! seen at once, one made by another within the short while. Nothing is decided by any of it:
//! operators, purchases and the reconciler read Redis itself.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures::future::join_all;

use crate::coalesce::{Coalesced, told};
use crate::ids::{Lane, VoucherId};
use crate::page::{Page, Paged};
use crate::store::voucher::{self, Voucher};
use crate::vouchers::{Live, Sale, told_or_logged};
use crate::{Error, Shop};

/// How many pages of the list are remembered: everybody asks for the first.
const LISTS_MOST: usize = 64;

/// A page of the list: its cursor and its limit.
type Asked = (Option<VoucherId>, u32);
/// The ids of one page of the list.
type List = Coalesced<Paged<VoucherId>>;

/// What this process shows.
#[derive(Default)]
pub(crate) struct Showcase {
    sales: RwLock<HashMap<VoucherId, Arc<Shown>>>,
    lists: RwLock<HashMap<Asked, Arc<List>>>,
    clocks: RwLock<HashMap<Lane, Arc<Coalesced<Reading>>>>,
}

/// One sale as it is shown.
#[derive(Default)]
struct Shown {
    stand: Arc<Coalesced<Stand>>,
    /// Units that this process has sold.
    sold: AtomicU64,
}

/// How a sale stood.
pub(crate) struct Stand {
    row: Arc<Voucher>,
    /// None: Redis could not be asked.
    live: Option<Live>,
    /// When, by the process' monotonic clock.
    at: Instant,
    /// What this process had sold when the read was sent.
    sold: u64,
}

/// Redis' clock at a moment of the monotonic one.
struct Reading {
    now_ms: i64,
    at: Instant,
}

/// The middle between then and now: when Redis looked, as well as anybody can tell.
fn middle(sent: Instant) -> Instant {
    sent + sent.elapsed() / 2
}

fn ms(since: Instant) -> i64 {
    i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX)
}

/// The value of `key`, made if it is not there.
fn entry<K: Eq + std::hash::Hash, V: Default>(map: &RwLock<HashMap<K, Arc<V>>>, key: K) -> Arc<V> {
    if let Some(found) = map.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Arc::clone(found);
    }
    let mut map = map.write().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(map.entry(key).or_default())
}

impl Showcase {
    fn of(&self, id: VoucherId) -> Option<Arc<Shown>> {
        let sales = self.sales.read().unwrap_or_else(PoisonError::into_inner);
        sales.get(&id).cloned()
    }

    /// This process has sold a unit of a sale.
    pub(crate) fn sold(&self, id: VoucherId) {
        if let Some(shown) = self.of(id) {
            shown.sold.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// This process has changed a sale: what is shown of it is read anew.
    pub(crate) fn changed(&self, id: VoucherId) {
        if let Some(shown) = self.of(id) {
            shown.stand.forget();
        }
    }

    /// This process has created a sale: lists are read anew.
    pub(crate) fn created(&self) {
        let lists = self.lists.read().unwrap_or_else(PoisonError::into_inner);
        lists.values().for_each(|list| list.forget());
    }

    fn list(&self, below: Option<VoucherId>, limit: u32) -> Arc<List> {
        let key = (below, limit);
        let mut lists = self.lists.write().unwrap_or_else(PoisonError::into_inner);
        if lists.len() >= LISTS_MOST && !lists.contains_key(&key) {
            lists.clear();
        }
        Arc::clone(lists.entry(key).or_default())
    }
}

impl Stand {
    /// The sale as it is now, `sold` being what this process has sold by now.
    ///
    /// None when the stock that was read would be gone by that count: a purchase that was under
    /// way during the read may be counted twice, and only Redis can say that a sale is sold out.
    fn now(&self, shop: &Shop, sold: u64) -> Option<Sale> {
        let Some(live) = &self.live else {
            return Some(shop.merged(&self.row, None));
        };
        let mut live = live.clone();
        live.now_ms = live.now_ms.saturating_add(ms(self.at));
        if let Some(sale) = &mut live.sale
            && sale.stock > 0
        {
            let since = i64::try_from(sold.saturating_sub(self.sold)).unwrap_or(i64::MAX);
            sale.stock -= since.min(sale.stock);
            if sale.stock == 0 {
                return None;
            }
        }
        Some(shop.merged(&self.row, Some(live)))
    }
}

impl Shop {
    /// A sale as everybody is shown it, at most [`show_for`](crate::ShopConfig::show_for) old.
    ///
    /// # Errors
    /// As [`Shop::sale`].
    pub async fn sale_shown(&self, id: VoucherId) -> Result<Sale, Error> {
        if self.show_for().is_zero() {
            return self.sale(id).await;
        }
        // Only of a voucher that exists is anything kept.
        let known = self.voucher(id).await?;
        let shown = entry(&self.showcase().sales, id);
        // Purchases may use up what the second read found too; then it is time to ask for oneself.
        for _ in 0..2 {
            let stand = shown
                .stand
                .get(self.show_for(), || {
                    let sold = shown.sold.load(Ordering::Acquire);
                    self.clone().stand(Arc::clone(&known), sold)
                })
                .await
                .map_err(told)?;
            match stand.now(self, shown.sold.load(Ordering::Acquire)) {
                Some(sale) => return Ok(sale),
                None => shown.stand.outlived(&stand),
            }
        }
        self.sale(id).await
    }

    async fn stand(self, known: Arc<Voucher>, sold: u64) -> Result<Stand, Error> {
        let sent = Instant::now();
        let live = self.live(&known).await;
        let at = middle(sent);
        let live = told_or_logged(&known, live);
        let row = self.row_beside(known, live.as_ref()).await?;
        Ok(Stand {
            row,
            live,
            at,
            sold,
        })
    }

    /// A page of the list as everybody is shown it, newest first.
    ///
    /// # Errors
    /// As [`Shop::sales`].
    pub async fn sales_shown(&self, page: &Page) -> Result<Paged<Sale>, Error> {
        if self.show_for().is_zero() {
            return self.sales(page).await;
        }
        let (below, limit) = (page.cursor()?, page.limit);
        let list = self.showcase().list(below, limit);
        let ids = list
            .get(self.show_for(), || {
                let (shop, page) = (self.clone(), page.clone());
                async move {
                    let rows =
                        voucher::voucher_page(shop.pool(), below, i64::from(limit) + 1).await?;
                    shop.catalog().learn(&rows);
                    let rows = Paged::cut(rows, &page, |row| row.voucher_id.to_string());
                    Ok(Paged {
                        items: rows.items.iter().map(|row| row.voucher_id).collect(),
                        next: rows.next,
                    })
                }
            })
            .await
            .map_err(told)?;
        let sales = join_all(ids.items.iter().map(|id| self.sale_shown(*id))).await;
        Ok(Paged {
            items: sales.into_iter().collect::<Result<_, _>>()?,
            next: ids.next.clone(),
        })
    }

    /// The clock that decides, for everybody who asks: read once per lane and short while,
    /// and told as of this moment.
    ///
    /// # Errors
    /// As [`Shop::clock`].
    pub async fn clock_shown(&self, voucher: Option<VoucherId>) -> Result<i64, Error> {
        if self.show_for().is_zero() {
            return self.clock(voucher).await;
        }
        let lane = match voucher {
            Some(id) => self.lane_of(id).await?,
            None => Lane(0),
        };
        let clock = entry(&self.showcase().clocks, lane);
        let reading = clock
            .get(self.show_for(), || {
                let shop = self.clone();
                async move {
                    let sent = Instant::now();
                    let now_ms = shop.lane_clock(lane).await?;
                    let at = middle(sent);
                    Ok(Reading { now_ms, at })
                }
            })
            .await
            .map_err(told)?;
        Ok(reading.now_ms.saturating_add(ms(reading.at)))
    }

    fn show_for(&self) -> Duration {
        self.config().show_for
    }
}
