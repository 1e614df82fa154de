//! What operators watch: lanes, sales, workers and pending entries, as they are now.

use std::collections::HashMap;

use fred::interfaces::StreamsInterface;
use fred::types::Value;
use futures::future::join_all;

use crate::entry::Entry;
use crate::ids::{EntryId, Lane, LaneEntry, VoucherId};
use crate::names::GROUP;
use crate::page::{Page, Paged};
use crate::redis::{count, list, number, text};
use crate::scripts::LANE;
use crate::store::voucher::Voucher;
use crate::vouchers::{LiveSale, SaleState};
use crate::{Error, Shop};

/// How long an operator's figures of one store may take before it counts as away.
const PING: std::time::Duration = std::time::Duration::from_secs(2);

/// Everything at a glance. A part that can't be asked is missing, and says so.
#[derive(Debug, Clone, Default)]
pub struct Overview {
    /// The lanes.
    pub lanes: Vec<LaneOverview>,
    /// The sales that Redis has to hold.
    pub sales: Vec<SaleOverview>,
    /// Whether Redis answered.
    pub redis: bool,
    /// Whether PostgreSQL answered.
    pub postgres: bool,
    /// The consumers of every lane.
    pub workers: Vec<Worker>,
    /// When, in milliseconds by the process' clock.
    pub at_ms: i64,
}

/// A lane's queue.
#[derive(Debug, Clone)]
pub struct LaneOverview {
    /// Which.
    pub lane: Lane,
    /// Entries in its stream.
    pub stream_length: u64,
    /// Entries not yet delivered; none when Redis does not know.
    pub lag: Option<u64>,
    /// Orders admitted and not yet confirmed, dead letters not counted.
    pub in_flight: u64,
    /// Entries delivered and not yet acknowledged.
    pub pending: u64,
    /// Dead letters.
    pub dead: u64,
    /// The age of the oldest pending entry, in milliseconds.
    pub oldest_pending_ms: Option<u64>,
}

/// A sale's conservation: total = left + in flight + dead + confirmed.
#[derive(Debug, Clone)]
pub struct SaleOverview {
    /// Which.
    pub voucher_id: VoucherId,
    /// What it is called.
    pub title: String,
    /// Units put on sale.
    pub total: i64,
    /// Units left.
    pub left: i64,
    /// Admitted, not yet confirmed.
    pub in_flight: i64,
    /// Dead letters.
    pub dead: i64,
    /// Acknowledged rows.
    pub confirmed: i64,
    /// Whether the equation holds.
    pub balanced: bool,
    /// How the sale stands.
    pub state: SaleState,
}

/// A consumer.
#[derive(Debug, Clone)]
pub struct Worker {
    /// Its lane.
    pub lane: Lane,
    /// Its name.
    pub name: String,
    /// Entries that it holds.
    pub pending: u64,
    /// Milliseconds since it last read.
    pub idle_ms: u64,
    /// Its heartbeat has not expired.
    pub alive: bool,
}

/// An entry delivered and not yet acknowledged. Ids are text: an entry may be broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingEntry {
    /// The entry, in the orders stream.
    pub entry_id: LaneEntry,
    /// The order it carries.
    pub order_id: String,
    /// Whose it is.
    pub user_id: String,
    /// What was bought.
    pub voucher_id: String,
    /// Who holds it.
    pub consumer: String,
    /// Milliseconds since it was delivered.
    pub idle_ms: u64,
    /// How often it was delivered.
    pub deliveries: u64,
}

impl Shop {
    /// The overview. It never fails: what can't be asked is missing.
    pub async fn overview(&self) -> Overview {
        let mut overview = Overview {
            at_ms: self.now_ms(),
            redis: self.ping_redis().await.is_ok(),
            postgres: matches!(
                tokio::time::timeout(PING, self.ping_postgres()).await,
                Ok(Ok(()))
            ),
            ..Overview::default()
        };
        if !overview.redis {
            return overview;
        }
        let held = if overview.postgres {
            self.held(overview.at_ms).await.unwrap_or_default()
        } else {
            self.remembered()
        };
        let live = join_all(held.iter().map(|voucher| self.live(voucher))).await;
        let mut in_flight: HashMap<Lane, i64> = HashMap::new();
        for (voucher, live) in held.iter().zip(live) {
            // One that can't be read now is shown by its row, as not loaded.
            let (sale, now_ms) = match live {
                Ok(live) => (live.sale, live.now_ms),
                Err(_) => (None, overview.at_ms),
            };
            if let Some(sale) = &sale {
                *in_flight.entry(voucher.lane).or_default() += sale.in_flight;
            }
            overview
                .sales
                .push(sale_overview(voucher, sale.as_ref(), now_ms));
        }
        for lane in self.lanes().await.unwrap_or_default() {
            match self
                .lane_overview(lane, in_flight.get(&lane).copied().unwrap_or(0))
                .await
            {
                Ok(figures) => overview.lanes.push(figures),
                Err(error) => tracing::debug!(%error, %lane, "a lane can't be counted"),
            }
            let consumers = self.consumers(lane).await.unwrap_or_default();
            overview
                .workers
                .extend(consumers.into_iter().map(|c| Worker {
                    lane,
                    name: c.name,
                    pending: c.pending,
                    idle_ms: c.idle_ms,
                    alive: c.alive,
                }));
        }
        overview
    }

    async fn lane_overview(&self, lane: Lane, in_flight: i64) -> Result<LaneOverview, Error> {
        let keys = vec![self.names().orders(lane), self.names().dead(lane)];
        let parts = list(self.redis().eval(&LANE, keys, vec![GROUP.into()]).await?)?;
        let part = |i: usize| parts.get(i).unwrap_or(&Value::Null);
        let now_ms = count(part(0))?;
        let oldest: Option<EntryId> = text(part(4)).parse().ok();
        Ok(LaneOverview {
            lane,
            stream_length: count(part(1))?,
            // After a restart Redis does not know: then it is not zero.
            lag: text(part(2)).parse().ok(),
            in_flight: u64::try_from(in_flight).unwrap_or(0),
            pending: count(part(3))?,
            dead: count(part(5))?,
            oldest_pending_ms: oldest.map(|id| now_ms.saturating_sub(id.ms)),
        })
    }

    /// Pending entries of one lane or of all, oldest first.
    ///
    /// # Errors
    /// `Invalid` for a cursor that is none; `Unavailable` when Redis can't be asked.
    pub async fn pending(
        &self,
        lane: Option<Lane>,
        page: &Page,
    ) -> Result<Paged<PendingEntry>, Error> {
        let after: Option<LaneEntry> = page.cursor()?;
        let lanes = match lane {
            Some(lane) => vec![lane],
            None => self.lanes().await?,
        };
        let mut found = Vec::new();
        for lane in lanes {
            let start = match after {
                Some(after) if lane < after.lane => continue,
                Some(after) if lane == after.lane => format!("({}", after.entry),
                _ => "-".to_owned(),
            };
            let wanted = page.size() + 1 - found.len();
            found.extend(self.pending_of(lane, &start, wanted).await?);
            if found.len() > page.size() {
                break;
            }
        }
        Ok(Paged::cut(found, page, |entry| entry.entry_id.to_string()))
    }

    async fn pending_of(
        &self,
        lane: Lane,
        start: &str,
        wanted: usize,
    ) -> Result<Vec<PendingEntry>, Error> {
        let (client, orders) = (self.redis().client(), self.names().orders(lane));
        let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
        let reply: Result<Value, _> = client.xpending(&orders, GROUP, (start, "+", wanted)).await;
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
        let rows: Vec<Vec<Value>> = rows.into_iter().map(list).collect::<Result<_, _>>()?;
        let ids: Vec<String> = rows
            .iter()
            .map(|row| row.first().map(text).unwrap_or_default())
            .collect();
        let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
            return Ok(Vec::new());
        };
        // One range instead of a look-up for each: what lies between is pending or was just read.
        let reply: Value = client
            .xrange(&orders, first, last, Some(wanted.saturating_mul(4)))
            .await?;
        let entries: HashMap<EntryId, Entry> = Entry::decode_all(reply)?
            .into_iter()
            .map(|e| (e.id, e))
            .collect();
        let mut found = Vec::with_capacity(rows.len());
        for (row, id) in rows.iter().zip(&ids) {
            let part = |i: usize| row.get(i).unwrap_or(&Value::Null);
            let id: EntryId = id
                .parse()
                .map_err(|_| Error::impossible("a pending id that is none"))?;
            let field = |name| {
                entries
                    .get(&id)
                    .map(|entry| entry.field(name).to_owned())
                    .unwrap_or_default()
            };
            found.push(PendingEntry {
                entry_id: LaneEntry { lane, entry: id },
                order_id: field("order_id"),
                user_id: field("user_id"),
                voucher_id: field("voucher_id"),
                consumer: text(part(1)),
                idle_ms: count(part(2))?,
                deliveries: count(part(3))?,
            });
        }
        Ok(found)
    }

    /// Redis' clock, of the node that decides about this sale.
    ///
    /// # Errors
    /// `Unavailable` when Redis can't be asked, `NotFound` for an unknown voucher.
    pub async fn clock(&self, voucher: Option<VoucherId>) -> Result<i64, Error> {
        let lane = match voucher {
            Some(id) => self.lane_of(id).await?,
            None => Lane(0),
        };
        self.lane_clock(lane).await
    }

    /// Redis' clock where this lane lives.
    pub(crate) async fn lane_clock(&self, lane: Lane) -> Result<i64, Error> {
        let keys = vec![self.names().orders(lane), self.names().dead(lane)];
        let reply = list(self.redis().eval(&LANE, keys, vec![GROUP.into()]).await?)?;
        number(reply.first().unwrap_or(&Value::Null))
    }
}

fn sale_overview(voucher: &Voucher, live: Option<&LiveSale>, now_ms: i64) -> SaleOverview {
    let confirmed = live.map_or(voucher.total - voucher.stock, |l| l.acked);
    let (total, left) = live.map_or((voucher.total, voucher.stock), |l| (l.total, l.stock));
    let (in_flight, dead) = live.map_or((0, 0), |l| (l.in_flight, l.dead));
    SaleOverview {
        voucher_id: voucher.voucher_id,
        title: voucher.title.clone(),
        total,
        left,
        in_flight,
        dead,
        confirmed,
        balanced: total == left + in_flight + dead + confirmed && left >= 0,
        state: live.map_or(SaleState::NotLoaded, |l| l.state(now_ms)),
    }
}
