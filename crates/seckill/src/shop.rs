//! [`Shop`]: the connections and what every function of the domain needs.

use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use fred::interfaces::ClientLike;
use sqlx::PgPool;

use crate::catalog::Catalog;
use crate::clock::{SharedClock, SystemClock};
use crate::gate::{self, Gate};
use crate::ids::{Lane, VoucherId};
use crate::lock::Locks;
use crate::names::{self, Names};
use crate::redis::Redis;
use crate::sequence::Sequence;
use crate::showcase::Showcase;
use crate::store::voucher::{Voucher, voucher_lanes};
use crate::{Error, store};

/// How the domain is connected and how it works.
#[derive(Clone)]
pub struct ShopConfig {
    /// PostgreSQL's URL.
    pub database_url: String,
    /// Redis' URL; `redis-cluster://` for a cluster.
    pub redis_url: String,
    /// What every Redis name begins with.
    pub prefix: String,
    /// Lanes that new vouchers are spread over, 1 or more.
    pub lanes: u16,
    /// Connections to Redis for deciding; commands share them.
    pub redis_connections: usize,
    /// The most connections to PostgreSQL, consumers' not counted.
    pub pg_connections: u32,
    /// Order numbers leased at a time.
    pub id_block: u32,
    /// How long a purchase waits for Redis' answer.
    pub buy_timeout: Duration,
    /// How long after its end a sale stays in Redis.
    pub hold_after_end: Duration,
    /// How old what is shown to everybody may be; zero: Redis is asked each time.
    pub show_for: Duration,
    /// Decide although Redis can't keep the promise.
    pub allow_unsafe: bool,
    /// The process' clock.
    pub clock: SharedClock,
}

impl ShopConfig {
    /// The defaults, with these URLs.
    pub fn new(database_url: &str, redis_url: &str) -> Self {
        Self {
            database_url: database_url.to_owned(),
            redis_url: redis_url.to_owned(),
            prefix: names::DEFAULT_PREFIX.to_owned(),
            lanes: 1,
            redis_connections: 4,
            pg_connections: 10,
            id_block: 1_000,
            buy_timeout: Duration::from_secs(2),
            hold_after_end: Duration::from_secs(24 * 3_600),
            show_for: Duration::from_millis(250),
            allow_unsafe: false,
            clock: Arc::new(SystemClock),
        }
    }
}

/// A setting that can't be used. Redis or PostgreSQL being away is not one.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Not a PostgreSQL URL.
    #[error("DATABASE_URL is not a PostgreSQL URL")]
    DatabaseUrl(#[source] sqlx::Error),
    /// Not a Redis URL.
    #[error("REDIS_URL is not a Redis URL")]
    RedisUrl(#[source] fred::error::Error),
    /// Not a prefix.
    #[error("the prefix must have 1 to 64 characters and no braces or spaces")]
    Prefix,
}

/// The shop: everything that is asked of the domain goes through it. Cheap to clone.
#[derive(Clone)]
pub struct Shop(Arc<Inner>);

pub(crate) struct Inner {
    config: ShopConfig,
    names: Names,
    redis: Redis,
    locks: Locks,
    pool: PgPool,
    ids: Arc<Sequence>,
    catalog: Catalog,
    showcase: Showcase,
    gate: Arc<Gate>,
}

impl Inner {
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }
}

impl Shop {
    /// Opens the shop. Connections are made when they are needed, and again after each loss.
    ///
    /// # Errors
    /// Only for settings that can't be used.
    pub async fn open(config: ShopConfig) -> Result<Self, OpenError> {
        let names = Names::new(&config.prefix).ok_or(OpenError::Prefix)?;
        let pool = store::pool(&config.database_url, config.pg_connections)
            .map_err(OpenError::DatabaseUrl)?;
        let redis = Redis::open(
            &config.redis_url,
            config.redis_connections,
            config.buy_timeout,
        )
        .map_err(OpenError::RedisUrl)?;
        let locks = Locks::of(
            redis.clone(),
            names.clone(),
            &config.redis_url,
            config.buy_timeout,
        )?;
        let ids = Arc::new(Sequence::new(redis.clone(), names.clone(), config.id_block));
        let shop = Self(Arc::new(Inner {
            config,
            names,
            redis,
            locks,
            pool,
            ids,
            catalog: Catalog::default(),
            showcase: Showcase::default(),
            gate: Arc::new(Gate::new()),
        }));
        gate::watch(&shop);
        Ok(shop)
    }

    /// Closes every connection.
    pub async fn close(&self) {
        self.0.gate.close();
        self.0.locks.close().await;
        self.0.pool.close().await;
    }

    /// Waits until Redis is connected, at most this long.
    ///
    /// # Errors
    /// `Unavailable` when it is not by then.
    pub async fn wait_for_redis(&self, limit: Duration) -> Result<(), Error> {
        self.0.redis.wait(limit).await
    }

    /// Brings the database to this release's schema.
    ///
    /// # Errors
    /// `Unavailable` when PostgreSQL can't be asked; `Internal` when a migration fails or was changed.
    pub async fn migrate(&self) -> Result<(), Error> {
        match MIGRATOR.run(&self.0.pool).await {
            Ok(()) => Ok(()),
            Err(sqlx::migrate::MigrateError::Execute(error)) => Err(error.into()),
            Err(error) => Err(Error::Internal(error.into())),
        }
    }

    /// Names of this release's migrations that the database does not have.
    ///
    /// # Errors
    /// `Unavailable` when PostgreSQL can't be asked.
    pub async fn missing_migrations(&self) -> Result<Vec<String>, Error> {
        use sqlx::migrate::Migrate;
        let mut connection = self.0.pool.acquire().await?;
        let there: bool = sqlx::query_scalar("select to_regclass('_sqlx_migrations') is not null")
            .fetch_one(&mut *connection)
            .await?;
        let applied = if there {
            let listed = connection.list_applied_migrations().await;
            listed.map_err(|error| Error::Internal(error.into()))?
        } else {
            Vec::new()
        };
        let missing = MIGRATOR
            .iter()
            .filter(|m| applied.iter().all(|a| a.version != m.version));
        Ok(missing
            .map(|m| format!("{:04} {}", m.version, m.description))
            .collect())
    }

    /// Whether Redis answers.
    ///
    /// # Errors
    /// `Unavailable` when it does not.
    pub async fn ping_redis(&self) -> Result<(), Error> {
        let _: String = self.0.redis.client().ping(None).await?;
        Ok(())
    }

    /// Whether PostgreSQL answers.
    ///
    /// # Errors
    /// `Unavailable` when it does not.
    pub async fn ping_postgres(&self) -> Result<(), Error> {
        sqlx::query("select 1").execute(&self.0.pool).await?;
        Ok(())
    }

    /// The locks of the shop's Redis, for jobs that one process at a time should do.
    pub fn locks(&self) -> &Locks {
        &self.0.locks
    }

    /// The lanes of the setting and those that vouchers belong to, in their order.
    ///
    /// PostgreSQL is asked at most once a second; while it is away, the lanes known so far count.
    ///
    /// # Errors
    /// `Internal` for an impossible row.
    pub async fn lanes(&self) -> Result<Vec<Lane>, Error> {
        let (now_ms, catalog) = (self.now_ms(), self.catalog());
        let mut lanes: Vec<Lane> = (0..self.lane_count()).map(Lane).collect();
        if catalog.lanes_are_due(now_ms) {
            match voucher_lanes(&self.0.pool).await {
                Ok(known) => catalog.put_lanes(known),
                Err(Error::Unavailable(_)) => {}
                Err(error) => return Err(error),
            }
        }
        lanes.extend(catalog.lanes());
        lanes.sort_unstable();
        lanes.dedup();
        Ok(lanes)
    }

    /// The vouchers this process has met.
    pub(crate) fn remembered(&self) -> Vec<Voucher> {
        self.0.catalog.all()
    }

    /// Runs work to its end although the caller goes away: a request's future is dropped when
    /// its client leaves, and a transaction must not be dropped half way.
    pub(crate) async fn detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        tokio::spawn(work)
            .await
            .map_err(|error| Error::Internal(error.into()))?
    }

    pub(crate) fn config(&self) -> &ShopConfig {
        &self.0.config
    }

    pub(crate) fn names(&self) -> &Names {
        &self.0.names
    }

    pub(crate) fn redis(&self) -> &Redis {
        &self.0.redis
    }

    pub(crate) fn pool(&self) -> &PgPool {
        &self.0.pool
    }

    pub(crate) fn ids(&self) -> &Arc<Sequence> {
        &self.0.ids
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    pub(crate) fn showcase(&self) -> &Showcase {
        &self.0.showcase
    }

    /// This process has changed a sale: nothing that it remembers of it holds.
    pub(crate) fn sale_changed(&self, id: VoucherId) {
        self.showcase().changed(id);
    }

    pub(crate) fn gate(&self) -> Arc<Gate> {
        Arc::clone(&self.0.gate)
    }

    /// The shop without keeping it.
    pub(crate) fn weak(&self) -> Weak<Inner> {
        Arc::downgrade(&self.0)
    }

    pub(crate) fn of(inner: Arc<Inner>) -> Self {
        Self(inner)
    }

    pub(crate) fn lane_count(&self) -> u16 {
        self.0.config.lanes.max(1)
    }

    pub(crate) fn hold_after_end_ms(&self) -> i64 {
        i64::try_from(self.0.config.hold_after_end.as_millis()).unwrap_or(i64::MAX)
    }

    /// The process' clock; Redis' own decides.
    pub(crate) fn now_ms(&self) -> i64 {
        self.0.config.clock.now_ms()
    }
}

static MIGRATOR: sqlx::migrate::Migrator = sqlx::migrate!("../../migrations");
