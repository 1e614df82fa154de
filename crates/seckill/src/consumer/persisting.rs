//! What a consumer does with entries: each is brought to its end.
//!
//! A batch is written in one transaction and acknowledged after its commit. What fails is
//! tried alone, counted in Redis before the try, and becomes a dead letter after its attempts.

use std::collections::HashMap;

use fred::interfaces::HashesInterface;
use fred::types::Value;

use super::{Consumer, Persisted, Step};
use crate::confirm::{Confirmed, Due, confirm};
use crate::entry::Entry;
use crate::ids::{EntryId, Lane, LaneEntry, VoucherId};
use crate::mark::Mark;
use crate::names::GROUP;
use crate::orders::OrderState;
use crate::redis::{list, number, text};
use crate::scripts::{ACK, BURY, DROP, UNCOUNT};
use crate::store::order::{Admitted, order_written};
use crate::{Error, Shop};

/// An entry with the order it carries.
struct Held {
    entry: Entry,
    order: Admitted,
}

impl Consumer {
    /// Sorts entries by what they carry and brings each to its end.
    pub(super) async fn process(
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
        let read = |(held, text): (&Held, &Option<String>)| {
            let read = text.as_deref().map(Mark::parse).transpose();
            // To the scripts a mark that none of them wrote is none either.
            read.unwrap_or_else(|error| {
                tracing::error!(%error, order_id = %held.order.order_id, lane = %self.lane, "an order's mark can't be read");
                None
            })
        };
        Ok(held.iter().zip(&texts).map(read).collect())
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
                return self.uncount(key, field).await;
            }
            Ok(result) => result
                .rejected
                .into_iter()
                .next()
                .map(|(_, reason)| reason)
                .unwrap_or_default(),
            Err(error) if error.is_transient() => {
                self.wait(&error, step)?;
                return self.uncount(key, field).await;
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

    async fn uncount(&self, attempts: String, entry: String) -> Result<(), Error> {
        let reply = self
            .redis
            .eval(&UNCOUNT, vec![attempts], vec![entry.into()]);
        reply.await.map(|_| ())
    }

    async fn write(&self, due: &[(Held, i64)], now_ms: i64) -> Result<Confirmed, Error> {
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
    let mut sales: HashMap<VoucherId, usize> = HashMap::new();
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
