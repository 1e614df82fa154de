//! The consumer of a lane: reads entries, writes them to PostgreSQL, acknowledges after the commit.
//!
//! Its own pending entries come first after every start and every failure, then what dead
//! consumers hold, then new ones. A transient fault waits and never counts. What counts is
//! kept in Redis and raised before an entry is tried alone, so that an entry that kills its
//! worker counts too. The loop around [`Consumer::step`] sleeps; the step never does.

mod claiming;
mod persisting;
mod reading;

use std::time::Duration;

use fred::clients::Client;
use fred::interfaces::{ClientLike, KeysInterface};
use fred::types::Value;
use sqlx::PgPool;
use tokio::task::JoinHandle;

use crate::ids::{Lane, LaneEntry, OrderId};
use crate::names::GROUP;
use crate::redis::{Redis, builder};
use crate::scripts::FORGET;
use crate::{Error, Shop, store};
use claiming::beat;
pub(crate) use persisting::acknowledgement;
use reading::is_no_group;

/// How long past its block time a read may take before its connection is given up as half open.
const READ_GRACE: Duration = Duration::from_secs(3);
/// How long a read waits for new entries while others have to be looked at again.
const SHORT_BLOCK: Duration = Duration::from_millis(50);
/// Connections to PostgreSQL of one consumer: its own, so that no cancelled request can hand it
/// one inside an open transaction.
const PG_CONNECTIONS: u32 = 2;

/// How a consumer works.
#[derive(Debug, Clone)]
pub struct ConsumerConfig {
    /// Entries read and written at a time.
    pub batch: usize,
    /// How long a read waits for new entries.
    pub block: Duration,
    /// How long a consumer's heartbeat lives; after that others take over what it holds.
    pub claim_after: Duration,
    /// Counted failures after which an entry becomes a dead letter.
    pub max_attempts: u32,
}

impl Default for ConsumerConfig {
    fn default() -> Self {
        Self {
            batch: 256,
            block: Duration::from_secs(1),
            claim_after: Duration::from_secs(5),
            max_attempts: 5,
        }
    }
}

/// An order that a step wrote to PostgreSQL.
#[derive(Debug, Clone)]
pub struct Persisted {
    /// Its id.
    pub order_id: OrderId,
    /// When it was admitted, in milliseconds by Redis' clock.
    pub admitted_ms: i64,
    /// When it was committed, in milliseconds by the process' clock.
    pub confirmed_ms: i64,
    /// The traceparent of the click that caused it.
    pub trace: String,
}

/// What a step did.
#[derive(Debug, Default)]
pub struct Step {
    /// Entries read.
    pub read: usize,
    /// Entries taken over from dead consumers.
    pub claimed: usize,
    /// Orders acknowledged after their commit.
    pub persisted: Vec<Persisted>,
    /// Entries that carried nothing.
    pub duplicates: usize,
    /// Entries moved to the dead letters, with the reason.
    pub dead: Vec<(LaneEntry, String)>,
    /// PostgreSQL could not be asked: wait before the next step.
    pub waited: bool,
}

/// A consumer of one lane.
pub struct Consumer {
    shop: Shop,
    lane: Lane,
    name: String,
    config: ConsumerConfig,
    /// For blocking reads only: a blocked connection stalls whatever is behind it.
    reader: Client,
    /// For everything else.
    redis: Redis,
    pool: PgPool,
    heartbeat: JoinHandle<()>,
    /// Own pending entries have to be looked at first.
    own_first: bool,
    /// They may have killed a worker: try them one by one.
    alone: bool,
    /// When dead consumers were last looked for.
    looked_ms: i64,
}

impl Consumer {
    /// Opens a consumer with connections of its own; `name` must be unlike every other's.
    ///
    /// # Errors
    /// `Internal` for a URL that is none.
    pub async fn open(
        shop: &Shop,
        lane: Lane,
        name: &str,
        config: ConsumerConfig,
    ) -> Result<Self, Error> {
        let url = &shop.config().redis_url;
        let redis = Redis::open(url, 1, shop.config().buy_timeout.max(READ_GRACE))?;
        let reader = builder(url, config.block + READ_GRACE)?.build()?;
        drop(reader.connect());
        let pool = store::pool(&shop.config().database_url, PG_CONNECTIONS)?;
        let key = shop.names().consumer(name);
        let heartbeat = tokio::spawn(beat(redis.clone(), key, config.claim_after));
        Ok(Self {
            shop: shop.clone(),
            lane,
            name: name.to_owned(),
            config,
            reader,
            redis,
            pool,
            heartbeat,
            own_first: true,
            alone: true,
            looked_ms: 0,
        })
    }

    /// One round: own pending entries, claims, then new ones.
    ///
    /// # Errors
    /// Redis could not be asked; entries that were read stay pending and come first next time.
    pub async fn step(&mut self) -> Result<Step, Error> {
        let mut step = Step::default();
        match self.round(&mut step).await {
            Ok(()) => Ok(step),
            Err(error) => {
                self.own_first = true;
                if is_no_group(&error) {
                    self.create_group().await?;
                    return Ok(step);
                }
                Err(error)
            }
        }
    }

    /// Ends in order: nothing is read any more, and the heartbeat goes.
    pub async fn close(self) {
        self.heartbeat.abort();
        let key = self.shop.names().consumer(&self.name);
        let gone: Result<Value, _> = self.redis.client().del(key).await;
        if let Err(error) = gone {
            tracing::debug!(%error, "the heartbeat expires by itself");
        }
        // It holds nothing; if it does, whoever claims it finds it there.
        let args = vec![GROUP.into(), self.name.as_str().into()];
        let keys = vec![self.shop.names().orders(self.lane)];
        if let Err(error) = self.redis.eval(&FORGET, keys, args).await {
            tracing::debug!(%error, "the consumer is forgotten later");
        }
        if let Err(error) = self.reader.quit().await {
            tracing::debug!(%error, "closing the reader");
        }
        self.redis.quit().await;
        self.pool.close().await;
    }

    async fn round(&mut self, step: &mut Step) -> Result<(), Error> {
        self.claim(step).await?;
        let mut block = self.config.block;
        if self.own_first {
            let own = self.read("0", None).await?;
            if own.is_empty() {
                (self.own_first, self.alone) = (false, false);
            } else {
                step.read += own.len();
                self.process(own, self.alone, step).await?;
                if step.waited {
                    return Ok(());
                }
                // Those that remain pending are looked at again, without keeping new ones waiting.
                block = SHORT_BLOCK;
            }
        }
        let new = self.read(">", Some(block)).await?;
        if !new.is_empty() {
            crate::fail_point("consumer-after-read");
            step.read += new.len();
            self.process(new, false, step).await?;
        }
        Ok(())
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.heartbeat.abort();
    }
}
