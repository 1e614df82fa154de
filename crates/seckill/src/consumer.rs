//! The consumer of a lane: reads entries, writes them to PostgreSQL, acknowledges after the commit.
//!
//! Its own pending entries come first after every start and every failure, then what dead
//! consumers hold, then new ones. A transient fault waits and never counts. What counts is
//! kept in Redis and raised before an entry is tried alone, so that an entry that kills its
//! worker counts too. The loop around [`Consumer::step`] sleeps; the step never does.

use std::collections::HashMap;
use std::time::Duration;

use fred::clients::Client;
use fred::interfaces::{ClientLike, HashesInterface, KeysInterface, StreamsInterface};
use fred::types::config::Options;
use fred::types::{Expiration, Value};
use sqlx::PgPool;
use tokio::task::JoinHandle;

use crate::confirm::{Due, confirm};
use crate::entry::Entry;
use crate::ids::{EntryId, Lane, LaneEntry, OrderId};
use crate::mark::Mark;
use crate::names::GROUP;
use crate::orders::OrderState;
use crate::redis::{Redis, builder, count, list, number, text};
use crate::scripts::{ACK, BURY, DROP, FORGET};
use crate::store::order::{Admitted, order_written};
use crate::{Error, Shop, store};

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

/// An entry with the order it carries.
struct Held {
    entry: Entry,
    order: Admitted,
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
        crate::fail_point("consumer-after-read");
        if !new.is_empty() {
            step.read += new.len();
            self.process(new, false, step).await?;
        }
        Ok(())
    }

    async fn read(&self, from: &str, block: Option<Duration>) -> Result<Vec<Entry>, Error> {
        let limit = block.unwrap_or_default() + READ_GRACE;
        let options = Options {
            max_attempts: Some(1),
            timeout: Some(limit),
            fail_fast: true,
            ..Options::default()
        };
        let block_ms =
            block.map(|block| u64::try_from(block.as_millis()).unwrap_or(u64::MAX).max(1));
        let count = Some(u64::try_from(self.config.batch).unwrap_or(u64::MAX));
        let reply: Result<Value, _> = self
            .reader
            .with_options(&options)
            .xreadgroup(
                GROUP,
                &self.name,
                count,
                block_ms,
                false,
                self.shop.names().orders(self.lane),
                from,
            )
            .await;
        let reply = match reply {
            Err(error) if matches!(error.kind(), fred::error::ErrorKind::Timeout) => {
                // No answer although the block time has passed: the connection is half open.
                tracing::warn!(consumer = %self.name, "a blocking read got no answer; connecting anew");
                if let Err(error) = self.reader.force_reconnection().await {
                    tracing::debug!(%error, "reconnecting the reader");
                }
                return Err(error.into());
            }
            reply => reply?,
        };
        // [[key, entries]], or a map of one in RESP3; nothing when the block time passed.
        let Some(stream) = list(reply)?.into_iter().next() else {
            return Ok(Vec::new());
        };
        let entries = list(stream)?.into_iter().nth(1).unwrap_or(Value::Null);
        Entry::decode_all(entries)
    }

    async fn create_group(&self) -> Result<(), Error> {
        // At 0: what is in the stream and was acknowledged is deleted, so nothing comes twice.
        let made: Result<Value, _> = self
            .redis
            .client()
            .xgroup_create(self.shop.names().orders(self.lane), GROUP, "0", true)
            .await;
        match made {
            Ok(_) => tracing::info!(lane = %self.lane, "group created"),
            Err(error) if error.details().starts_with("BUSYGROUP") => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Takes over what consumers without a heartbeat hold; now and then.
    async fn claim(&mut self, step: &mut Step) -> Result<(), Error> {
        let now_ms = self.shop.now_ms();
        let every = i64::try_from(self.config.claim_after.as_millis()).unwrap_or(i64::MAX) / 2;
        if (0..every).contains(&(now_ms - self.looked_ms)) {
            return Ok(());
        }
        self.looked_ms = now_ms;
        let orders = self.shop.names().orders(self.lane);
        let client = self.redis.client();
        for consumer in self.shop.consumers(self.lane).await? {
            if consumer.name == self.name || consumer.alive {
                continue;
            }
            if consumer.pending == 0 {
                let args = vec![GROUP.into(), consumer.name.into()];
                self.redis.eval(&FORGET, vec![orders.clone()], args).await?;
                continue;
            }
            let idle = u64::try_from(self.config.claim_after.as_millis()).unwrap_or(u64::MAX);
            let batch = u64::try_from(self.config.batch).unwrap_or(u64::MAX);
            let pending: Value = client
                .xpending(
                    &orders,
                    GROUP,
                    (idle, "-", "+", batch, consumer.name.as_str()),
                )
                .await?;
            let ids = entry_ids(pending)?;
            if ids.is_empty() {
                continue;
            }
            let claimed: Value = client
                .xclaim(
                    &orders, GROUP, &self.name, idle, ids, None, None, None, false, true,
                )
                .await?;
            let claimed = list(claimed)?.len();
            if claimed > 0 {
                tracing::warn!(from = %consumer.name, consumer = %self.name, claimed, "claimed pending entries");
                step.claimed += claimed;
                (self.own_first, self.alone) = (true, true);
            }
        }
        Ok(())
    }

    /// Sorts entries by what they carry and brings each to its end.
    async fn process(
        &mut self,
        entries: Vec<Entry>,
        alone: bool,
        step: &mut Step,
    ) -> Result<(), Error> {
        let (mut held, mut empty) = (Vec::new(), Vec::new());
        for entry in entries {
            if entry.fields.is_none() {
                // Its mark, if there is one, gets a new entry from the reconciler.
                tracing::error!(entry_id = %entry.id, lane = %self.lane, "a pending entry is gone from the stream");
                empty.push(entry.id);
                continue;
            }
            match entry.order() {
                Ok(order) => held.push(Held { entry, order }),
                Err(reason) => self.bury(&entry, None, &reason, step).await?,
            }
        }
        let marks = self.marks(&held).await?;
        let (mut due, mut unmarked) = (Vec::new(), Vec::new());
        for (held, mark) in held.into_iter().zip(marks) {
            match mark {
                Some(mark) if mark.is_of(held.order.user_id, held.order.voucher_id) => {
                    if !mark.dead && mark.place == held.entry.id {
                        due.push((held, mark.epoch));
                    } else {
                        empty.push(held.entry.id);
                    }
                }
                _ => unmarked.push(held),
            }
        }
        self.drop_entries(empty, step).await?;
        self.settle_unmarked(unmarked, step).await?;
        if step.waited {
            return Ok(());
        }
        let rest = if alone {
            due
        } else {
            self.persist_batch(due, step).await?
        };
        for (held, epoch) in rest {
            if step.waited {
                break;
            }
            self.persist_alone(held, epoch, step).await?;
        }
        Ok(())
    }

    async fn marks(&self, held: &[Held]) -> Result<Vec<Option<Mark>>, Error> {
        if held.is_empty() {
            return Ok(Vec::new());
        }
        let fields: Vec<String> = held
            .iter()
            .map(|held| held.order.order_id.to_string())
            .collect();
        let key = self.shop.names().inflight(self.lane);
        let texts: Vec<Option<String>> = self.redis.client().hmget(key, fields).await?;
        texts
            .iter()
            .map(|text| text.as_deref().map(Mark::parse).transpose())
            .collect()
    }

    /// Entries that carry nothing: acknowledged and deleted.
    async fn drop_entries(&self, ids: Vec<EntryId>, step: &mut Step) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        let names = self.shop.names();
        let keys = vec![names.orders(self.lane), names.attempts(self.lane)];
        let mut args: Vec<Value> = vec![GROUP.into()];
        args.extend(ids.iter().map(|id| Value::from(id.to_string())));
        step.duplicates += ids.len();
        self.redis.eval(&DROP, keys, args).await?;
        Ok(())
    }

    /// Entries without a mark: acknowledged if the order is in the database, else dead letters.
    async fn settle_unmarked(&mut self, unmarked: Vec<Held>, step: &mut Step) -> Result<(), Error> {
        if unmarked.is_empty() {
            return Ok(());
        }
        let ids: Vec<i64> = unmarked
            .iter()
            .map(|held| held.order.order_id.get())
            .collect();
        let rows = match order_written(&self.pool, &ids).await {
            Ok(rows) => rows,
            Err(error) => return self.wait(&error, step),
        };
        let mut done = Vec::new();
        for held in unmarked {
            let order = &held.order;
            let confirmed = rows.iter().any(|row| {
                row.order_id == order.order_id
                    && row.user_id == order.user_id
                    && row.voucher_id == order.voucher_id
                    && row.state == OrderState::Confirmed
            });
            if confirmed {
                done.push(held);
            } else {
                self.bury(
                    &held.entry,
                    Some(order),
                    "no mark: Redis never admitted it, or the mark was lost",
                    step,
                )
                .await?;
            }
        }
        self.acknowledge(&done).await
    }

    /// Writes a batch; returns what has to be tried alone.
    async fn persist_batch(
        &mut self,
        due: Vec<(Held, i64)>,
        step: &mut Step,
    ) -> Result<Vec<(Held, i64)>, Error> {
        if due.is_empty() {
            return Ok(Vec::new());
        }
        let now_ms = self.shop.now_ms();
        let result = match self.write(&due, now_ms).await {
            Ok(result) => result,
            Err(error) if error.is_transient() => {
                self.wait(&error, step)?;
                return Ok(Vec::new());
            }
            Err(error) => {
                tracing::warn!(%error, entries = due.len(), "a batch failed; trying its entries alone");
                return Ok(due);
            }
        };
        crate::fail_point("consumer-after-commit");
        self.own_first |= !result.let_go.is_empty() || !result.rejected.is_empty();
        let mut rest: Vec<Option<(Held, i64)>> = due.into_iter().map(Some).collect();
        let mut take = |i: usize| rest.get_mut(i).and_then(Option::take);
        let done: Vec<Held> = result
            .confirmed
            .iter()
            .filter_map(|i| take(*i))
            .map(|(held, _)| held)
            .collect();
        let rejected = result
            .rejected
            .iter()
            .filter_map(|(i, _)| take(*i))
            .collect();
        self.finish(done, now_ms, step).await?;
        Ok(rejected)
    }

    /// Tries one entry, counted.
    async fn persist_alone(
        &mut self,
        held: Held,
        epoch: i64,
        step: &mut Step,
    ) -> Result<(), Error> {
        let (key, field) = (
            self.shop.names().attempts(self.lane),
            held.entry.id.to_string(),
        );
        let client = self.redis.client();
        let before: Option<i64> = client.hget(&key, &field).await?;
        let most = i64::from(self.config.max_attempts);
        if before.unwrap_or(0) >= most {
            let reason =
                format!("given up after {most} attempts: its worker died or stopped in each");
            return self
                .bury(&held.entry, Some(&held.order), &reason, step)
                .await;
        }
        let tried: i64 = client.hincrby(&key, &field, 1).await?;
        crate::fail_point("consumer-before-alone");
        let now_ms = self.shop.now_ms();
        let pair = [(held, epoch)];
        let result = self.write(&pair, now_ms).await;
        let [(held, _)] = pair;
        let reason = match result {
            Ok(result) if !result.confirmed.is_empty() => {
                crate::fail_point("consumer-after-commit");
                return self.finish(vec![held], now_ms, step).await;
            }
            Ok(result) if result.rejected.is_empty() => {
                // Another epoch: not a failure. Its mark is read again in the next round.
                self.own_first = true;
                let _: i64 = client.hincrby(&key, &field, -1).await?;
                return Ok(());
            }
            Ok(result) => result
                .rejected
                .into_iter()
                .next()
                .map(|(_, reason)| reason)
                .unwrap_or_default(),
            Err(error) if error.is_transient() => {
                self.wait(&error, step)?;
                let _: i64 = client.hincrby(&key, &field, -1).await?;
                return Ok(());
            }
            Err(error) => {
                tracing::error!(%error, order_id = %held.order.order_id, tried, "an order can't be written");
                "the database refused it".to_owned()
            }
        };
        if tried >= most {
            self.bury(&held.entry, Some(&held.order), &reason, step)
                .await
        } else {
            self.own_first = true;
            Ok(())
        }
    }

    async fn write(
        &self,
        due: &[(Held, i64)],
        now_ms: i64,
    ) -> Result<crate::confirm::Confirmed, Error> {
        let batch: Vec<Due> = due
            .iter()
            .map(|(held, epoch)| Due {
                order: held.order.clone(),
                epoch: *epoch,
            })
            .collect();
        // Whatever keeps a connection from being made, it is not the entry's fault.
        let acquired = self.pool.acquire().await;
        let mut connection = acquired.map_err(|error| Error::Unavailable(error.into()))?;
        let written = confirm(&mut connection, &batch, now_ms).await;
        if written.is_err() {
            // Whatever state it is in, nobody meets it again.
            connection.close_on_drop();
        }
        written
    }

    /// Acknowledges committed orders and tells of them.
    async fn finish(
        &mut self,
        done: Vec<Held>,
        confirmed_ms: i64,
        step: &mut Step,
    ) -> Result<(), Error> {
        self.acknowledge(&done).await?;
        crate::fail_point("consumer-after-ack");
        step.persisted
            .extend(done.into_iter().map(|held| Persisted {
                order_id: held.order.order_id,
                admitted_ms: held.order.admitted_ms,
                confirmed_ms,
                trace: held.order.traceparent,
            }));
        Ok(())
    }

    async fn acknowledge(&self, done: &[Held]) -> Result<(), Error> {
        if done.is_empty() {
            return Ok(());
        }
        let orders = done.iter().map(|held| (Some(held.entry.id), &held.order));
        let (keys, args) = acknowledgement(&self.shop, self.lane, orders);
        self.redis.eval(&ACK, keys, args).await?;
        Ok(())
    }

    async fn bury(
        &self,
        entry: &Entry,
        order: Option<&Admitted>,
        reason: &str,
        step: &mut Step,
    ) -> Result<(), Error> {
        let names = self.shop.names();
        // A broken entry names no sale; a key in the same slot stands in for it.
        let sale = order.map_or_else(
            || names.attempts(self.lane),
            |order| names.sale(self.lane, order.voucher_id),
        );
        let keys = vec![
            names.orders(self.lane),
            names.inflight(self.lane),
            names.attempts(self.lane),
            names.dead(self.lane),
            sale,
        ];
        let args = vec![
            GROUP.into(),
            self.name.as_str().into(),
            entry.id.to_string().into(),
            entry.field("order_id").into(),
            entry.field("user_id").into(),
            entry.field("voucher_id").into(),
            reason.into(),
            entry.payload().into(),
        ];
        let reply = list(self.redis.eval(&BURY, keys, args).await?)?;
        match reply.first().map(number).transpose()? {
            Some(1) => {
                let dead: EntryId = reply
                    .get(1)
                    .map(text)
                    .unwrap_or_default()
                    .parse()
                    .map_err(|_| Error::impossible("bury.lua answered without an entry id"))?;
                tracing::error!(entry_id = %entry.id, dead_letter = %dead, lane = %self.lane, reason, "dead letter");
                let at = LaneEntry {
                    lane: self.lane,
                    entry: dead,
                };
                step.dead.push((at, reason.to_owned()));
            }
            Some(2) => step.duplicates += 1,
            // Somebody else holds it now and will bring it to its end.
            _ => {}
        }
        Ok(())
    }

    /// A fault that passes: what was read stays pending and comes first next time.
    fn wait(&mut self, error: &Error, step: &mut Step) -> Result<(), Error> {
        tracing::debug!(%error, consumer = %self.name, "PostgreSQL can't be asked; waiting");
        self.own_first = true;
        step.waited = true;
        Ok(())
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.heartbeat.abort();
    }
}

/// Keys and arguments of `ack.lua` for these orders.
pub(crate) fn acknowledgement<'a>(
    shop: &Shop,
    lane: Lane,
    orders: impl Iterator<Item = (Option<EntryId>, &'a Admitted)>,
) -> (Vec<String>, Vec<Value>) {
    let names = shop.names();
    let mut keys = vec![
        names.orders(lane),
        names.inflight(lane),
        names.attempts(lane),
        names.dead(lane),
    ];
    let mut args: Vec<Value> = vec![GROUP.into()];
    let mut sales: HashMap<crate::ids::VoucherId, usize> = HashMap::new();
    for (entry, order) in orders {
        let sale = *sales.entry(order.voucher_id).or_insert_with(|| {
            keys.push(names.sale(lane, order.voucher_id));
            keys.len()
        });
        args.push(entry.map(|id| id.to_string()).unwrap_or_default().into());
        args.push(order.order_id.to_string().into());
        args.push(order.user_id.to_string().into());
        args.push(order.voucher_id.to_string().into());
        args.push(i64::try_from(sale).unwrap_or(i64::MAX).into());
    }
    (keys, args)
}

fn entry_ids(pending: Value) -> Result<Vec<String>, Error> {
    let rows = list(pending)?;
    rows.into_iter()
        .map(|row| Ok(list(row)?.first().map(text).unwrap_or_default()))
        .collect()
}

/// The stream or its group is gone: said to a new read, and to one that was blocked in it.
fn is_no_group(error: &Error) -> bool {
    let (Error::Internal(cause) | Error::Unavailable(cause)) = error else {
        return false;
    };
    let words = cause.to_string();
    words.contains("NOGROUP") || words.contains("UNBLOCKED")
}

/// Renews a consumer's heartbeat until it is aborted.
async fn beat(redis: Redis, key: String, lives: Duration) {
    let lives_ms = i64::try_from(lives.as_millis()).unwrap_or(i64::MAX);
    let mut every = tokio::time::interval((lives / 3).max(Duration::from_millis(10)));
    loop {
        every.tick().await;
        let set: Result<Value, _> = redis
            .client()
            .set(&key, "1", Some(Expiration::PX(lives_ms)), None, false)
            .await;
        if let Err(error) = set {
            tracing::debug!(%error, "a heartbeat could not be sent");
        }
    }
}

/// A consumer as Redis knows it.
#[derive(Debug, Clone)]
pub(crate) struct ConsumerInfo {
    pub(crate) name: String,
    pub(crate) pending: u64,
    pub(crate) idle_ms: u64,
    /// Its heartbeat has not expired.
    pub(crate) alive: bool,
}

impl Shop {
    /// The consumers of a lane's group; none when there is no group yet.
    pub(crate) async fn consumers(&self, lane: Lane) -> Result<Vec<ConsumerInfo>, Error> {
        let client = self.redis().client();
        let reply: Result<Value, _> = client
            .xinfo_consumers(self.names().orders(lane), GROUP)
            .await;
        let rows = match reply {
            Ok(reply) => list(reply)?,
            Err(error)
                if error.details().contains("NOGROUP")
                    || error.details().contains("no such key") =>
            {
                return Ok(Vec::new());
            }
            Err(error) => return Err(error.into()),
        };
        let mut consumers = Vec::with_capacity(rows.len());
        for row in rows {
            let parts = list(row)?;
            let info: HashMap<String, &Value> = parts
                .chunks_exact(2)
                .map(|pair| (text(&pair[0]), &pair[1]))
                .collect();
            let get = |name: &str| info.get(name).copied().unwrap_or(&Value::Null);
            let name = text(get("name"));
            let beats: i64 = client.exists(self.names().consumer(&name)).await?;
            consumers.push(ConsumerInfo {
                pending: count(get("pending"))?,
                idle_ms: count(get("idle"))?,
                alive: beats == 1,
                name,
            });
        }
        Ok(consumers)
    }
}
