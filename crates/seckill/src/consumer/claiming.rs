//! Who consumes, who still lives, and how entries of the dead are taken over.

use std::collections::HashMap;
use std::time::Duration;

use fred::interfaces::{KeysInterface, StreamsInterface};
use fred::types::{Expiration, Value};

use super::{Consumer, Step};
use crate::ids::Lane;
use crate::names::GROUP;
use crate::redis::{Redis, count, list, text};
use crate::scripts::FORGET;
use crate::{Error, Shop};

impl Consumer {
    /// Takes over what consumers without a heartbeat hold; now and then.
    pub(super) async fn claim(&mut self, step: &mut Step) -> Result<(), Error> {
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
            crate::fail_point("consumer-after-claim");
            let claimed = list(claimed)?.len();
            if claimed > 0 {
                tracing::warn!(from = %consumer.name, consumer = %self.name, claimed, "claimed pending entries");
                step.claimed += claimed;
                (self.own_first, self.alone) = (true, true);
            }
        }
        Ok(())
    }
}

fn entry_ids(pending: Value) -> Result<Vec<String>, Error> {
    let rows = list(pending)?;
    rows.into_iter()
        .map(|row| Ok(list(row)?.first().map(text).unwrap_or_default()))
        .collect()
}

/// Renews a consumer's heartbeat until it is aborted.
pub(super) async fn beat(redis: Redis, key: String, lives: Duration) {
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
