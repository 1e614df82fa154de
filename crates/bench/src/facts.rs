//! Gathers what the audit judges: waits until the queue is empty, then reads counters, dead
//! letters, rows and counters again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use seckill::{OrderId, Page, SaleState, Shop, ShopConfig, VoucherId};
use sqlx::PgPool;

use crate::args::Stores;
use crate::audit::{Counters, Facts};
use crate::record::Record;
use crate::sql;

/// Between two looks at the queue.
const LOOK: Duration = Duration::from_millis(20);

/// Why facts can't be gathered.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// A URL or prefix that is none.
    #[error("{0}")]
    Open(#[from] seckill::OpenError),
    /// PostgreSQL can't be asked.
    #[error("PostgreSQL: {0}")]
    Sql(#[from] sqlx::Error),
    /// Redis can't be asked.
    #[error("{0}")]
    Shop(#[from] seckill::Error),
    /// Neither can.
    #[error("{0} did not answer in time")]
    Away(&'static str),
}

/// The stores, opened for reading.
pub struct Books {
    shop: Shop,
    pool: PgPool,
    settle_within: Duration,
}

impl Books {
    /// Opens them.
    ///
    /// # Errors
    /// When a setting can't be used or Redis does not answer.
    pub async fn open(stores: &Stores) -> Result<Self, FactsError> {
        let mut config = ShopConfig::new(&stores.database_url, &stores.redis_url);
        config.prefix.clone_from(&stores.prefix);
        (config.redis_connections, config.pg_connections) = (1, 2);
        let shop = Shop::open(config).await?;
        shop.wait_for_redis(stores.settle_within()).await?;
        Ok(Self {
            shop,
            pool: sql::pool(&stores.database_url)?,
            settle_within: stores.settle_within(),
        })
    }

    /// How long a voucher's orders took to be persisted.
    ///
    /// # Errors
    /// When PostgreSQL can't be asked.
    pub async fn span(&self, voucher: VoucherId) -> Result<sql::Span, FactsError> {
        Ok(sql::span(&self.pool, voucher).await?)
    }

    /// Waits until nothing of these sales is in flight; tells how long that took, or nothing
    /// when it was given up.
    pub async fn drained(&self, vouchers: &BTreeSet<VoucherId>) -> Option<Duration> {
        let begun = Instant::now();
        loop {
            if let Some(counters) = self.counters(vouchers).await
                && vouchers
                    .iter()
                    .all(|id| counters.get(id).is_some_and(|sale| sale.in_flight == 0))
            {
                return Some(begun.elapsed());
            }
            if begun.elapsed() >= self.settle_within {
                return None;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Gathers the facts about a ledger, after its sales have drained or the time for it is over.
    ///
    /// # Errors
    /// When one of the stores can't be asked.
    pub async fn facts(&self, record: Record) -> Result<Facts, FactsError> {
        let ids: Vec<i64> = record.vouchers.iter().map(|id| id.get()).collect();
        let held = sql::stocks(&self.pool, &ids)
            .await?
            .into_iter()
            .filter(|sale| !sale.ended);
        self.drained(&held.map(|sale| sale.voucher).collect()).await;
        let away = || FactsError::Away("Redis or PostgreSQL");
        let before = self.counters(&record.vouchers).await.ok_or_else(away)?;
        // Dead letters come first: a replayed one may become a row meanwhile, never the reverse.
        let dead = self.dead_letters().await?;
        let rows = sql::orders(&self.pool, &ids).await?;
        let stocks = sql::stocks(&self.pool, &ids).await?;
        let after = self.counters(&record.vouchers).await.ok_or_else(away)?;
        Ok(Facts {
            record,
            rows,
            stocks,
            dead,
            before,
            after,
        })
    }

    /// Lets go of the stores.
    pub async fn close(self) {
        self.shop.close().await;
        self.pool.close().await;
    }

    /// The counters of these sales; nothing when a store does not answer.
    async fn counters(
        &self,
        vouchers: &BTreeSet<VoucherId>,
    ) -> Option<HashMap<VoucherId, Counters>> {
        let overview = self.shop.overview().await;
        let known = overview
            .sales
            .into_iter()
            .filter(|sale| vouchers.contains(&sale.voucher_id));
        let counters = known.map(|sale| {
            let counters = Counters {
                loaded: sale.state != SaleState::NotLoaded,
                total: sale.total,
                left: sale.left,
                in_flight: sale.in_flight,
                dead: sale.dead,
                confirmed: sale.confirmed,
            };
            (sale.voucher_id, counters)
        });
        (overview.redis && overview.postgres).then(|| counters.collect())
    }

    async fn dead_letters(&self) -> Result<HashSet<OrderId>, FactsError> {
        let mut page = Page {
            after: None,
            limit: seckill::page::MAX_LIMIT,
        };
        let mut found = HashSet::new();
        loop {
            let letters = self.shop.dead_letters(None, &page).await?;
            found.extend(
                letters
                    .items
                    .iter()
                    .filter_map(|letter| letter.order_id.parse::<OrderId>().ok()),
            );
            match letters.next {
                Some(next) => page.after = Some(next),
                None => return Ok(found),
            }
        }
    }
}
