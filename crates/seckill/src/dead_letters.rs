//! Dead letters: entries that can't be persisted, until an operator replays or discards them.
//!
//! Both actions first look whether the order is in the database: then they acknowledge it and
//! say so. A replay is one script. A discard writes the row `failed` under the order's id
//! first, so that a stopped worker's late commit conflicts, and then gives back in one script.

use fred::interfaces::StreamsInterface;
use fred::types::Value;
use sqlx::Connection;

use crate::consumer::acknowledgement;
use crate::entry::Entry;
use crate::ids::{EntryId, Lane, LaneEntry, UserId};
use crate::orders::OrderState;
use crate::page::{Page, Paged};
use crate::redis::number;
use crate::scripts::{ACK, DISCARD, REPLAY};
use crate::store::order::{Admitted, order_fail, order_written};
use crate::store::watch::audit_insert;
use crate::{Error, Shop};

/// A dead letter as the console shows it. Ids are text: an entry may be broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its own id, in the dead stream.
    pub entry_id: LaneEntry,
    /// The order, if it could be read.
    pub order_id: String,
    /// Whose it is.
    pub user_id: String,
    /// What was bought.
    pub voucher_id: String,
    /// Why it is here.
    pub reason: String,
    /// How often it was handed to a worker.
    pub deliveries: u64,
    /// When it was moved here, in milliseconds by Redis' clock.
    pub at_ms: i64,
    /// The entry's fields as JSON.
    pub payload: String,
}

/// How a dead letter was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Queued again.
    Replayed,
    /// Given up; stock and buyer are free again.
    Discarded,
    /// The order was in the database already, and is acknowledged now.
    Confirmed,
    /// It carried nothing: its order goes on by another entry, or never was one.
    Removed,
}

/// An audit row's detail before the result is known.
const REQUESTED: &str = "requested";

impl Settled {
    /// Its word, as it stands in the log and in the console's address.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Replayed => "replayed",
            Self::Discarded => "discarded",
            Self::Confirmed => "confirmed",
            Self::Removed => "removed",
        }
    }
}

impl Shop {
    /// Dead letters of one lane or of all, oldest first.
    ///
    /// # Errors
    /// `Invalid` for a cursor that is none; `Unavailable` when Redis can't be asked.
    pub async fn dead_letters(
        &self,
        lane: Option<Lane>,
        page: &Page,
    ) -> Result<Paged<DeadLetter>, Error> {
        let found = self
            .entries_of_lanes(lane, page, |names, lane| names.dead(lane))
            .await?;
        let letters = found.into_iter().map(|(lane, entry)| DeadLetter {
            entry_id: LaneEntry {
                lane,
                entry: entry.id,
            },
            order_id: entry.field("order_id").to_owned(),
            user_id: entry.field("user_id").to_owned(),
            voucher_id: entry.field("voucher_id").to_owned(),
            reason: entry.field("reason").to_owned(),
            deliveries: entry.field("deliveries").parse().unwrap_or(0),
            at_ms: entry.field("at_ms").parse().unwrap_or(0),
            payload: entry.field("payload").to_owned(),
        });
        Ok(Paged::cut(letters.collect(), page, |letter| {
            letter.entry_id.to_string()
        }))
    }

    /// Reads at most `limit + 1` entries after the cursor out of a stream of each lane, lane by lane.
    async fn entries_of_lanes(
        &self,
        lane: Option<Lane>,
        page: &Page,
        stream: impl Fn(&crate::names::Names, Lane) -> String,
    ) -> Result<Vec<(Lane, Entry)>, Error> {
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
            let reply: Value = self
                .redis()
                .client()
                .xrange(
                    stream(self.names(), lane),
                    start,
                    "+",
                    Some(u64::try_from(wanted).unwrap_or(u64::MAX)),
                )
                .await?;
            found.extend(
                Entry::decode_all(reply)?
                    .into_iter()
                    .map(|entry| (lane, entry)),
            );
            if found.len() > page.size() {
                break;
            }
        }
        Ok(found)
    }

    async fn dead_entry(&self, at: LaneEntry) -> Result<Entry, Error> {
        let id = at.entry.to_string();
        let reply: Value = self
            .redis()
            .client()
            .xrange(self.names().dead(at.lane), &id, &id, None)
            .await?;
        Entry::decode_all(reply)?
            .into_iter()
            .next()
            .ok_or(Error::NotFound)
    }

    /// Gives a dead letter back to the queue.
    ///
    /// # Errors
    /// `NotFound` when it is there no more; `Conflict` when it can't become an order: it is
    /// broken, nothing is left, the sale is not loaded, or the buyer holds another order.
    pub async fn replay(&self, by: UserId, at: LaneEntry) -> Result<Settled, Error> {
        let shop = self.clone();
        self.detached(async move {
            let entry = shop.dead_entry(at).await?;
            let order = order_of(&entry)
                .ok_or_else(|| Error::Conflict("the entry is broken and can't become an order; discard it".into()))?;
            shop.audit_letter(by, "replay", at, REQUESTED).await?;
            let settled = if shop.is_confirmed(&order).await? {
                shop.settle_confirmed(at, &order).await?
            } else {
                shop.replay_unwritten(at, &order).await?
            };
            crate::fail_point("replay-after-script");
            tracing::info!(dead_letter = %at, user_id = %by, order_id = %order.order_id, ?settled, "dead letter replayed");
            shop.audit_letter(by, "replay", at, settled.as_str()).await?;
            Ok(settled)
        })
        .await
    }

    /// Writes down who settles a dead letter: before it is done, so that no crash hides it, and
    /// after it, with the result.
    async fn audit_letter(
        &self,
        by: UserId,
        action: &str,
        at: LaneEntry,
        detail: &str,
    ) -> Result<(), Error> {
        let subject = format!("dead letter {at}");
        audit_insert(self.pool(), self.now_ms(), by, action, &subject, detail).await
    }

    async fn replay_unwritten(&self, at: LaneEntry, order: &Admitted) -> Result<Settled, Error> {
        let (names, lane) = (self.names(), at.lane);
        let keys = vec![
            names.orders(lane),
            names.inflight(lane),
            names.dead(lane),
            names.sale(lane, order.voucher_id),
            names.buyers(lane, order.voucher_id),
        ];
        let mut args = identity(at.entry, order);
        args.push(order.traceparent.as_str().into());
        match number(&self.redis().eval(&REPLAY, keys, args).await?)? {
            0 => Err(Error::NotFound),
            1 => Ok(Settled::Replayed),
            2 => Ok(Settled::Removed),
            3 => Err(Error::Conflict(
                "the sale is not loaded; try again when it is".into(),
            )),
            4 => Err(Error::Conflict(
                "nothing is left of this voucher; add stock or discard".into(),
            )),
            5 => Err(Error::Conflict(
                "the buyer holds another order, or the id is another order's; discard it".into(),
            )),
            code => Err(Error::impossible(format!(
                "replay.lua answered the unknown code {code}"
            ))),
        }
    }

    /// Gives a dead letter up: a row `failed`, the unit back on sale, the buyer free to try again.
    ///
    /// # Errors
    /// `NotFound` when it is there no more.
    pub async fn discard(&self, by: UserId, at: LaneEntry) -> Result<Settled, Error> {
        let shop = self.clone();
        self.detached(async move {
            let entry = shop.dead_entry(at).await?;
            shop.audit_letter(by, "discard", at, REQUESTED).await?;
            let Some(order) = order_of(&entry) else {
                // It can't have a mark, a row or a buyer: only the entry itself goes.
                let _: i64 = shop.redis().client().xdel(shop.names().dead(at.lane), at.entry.to_string()).await?;
                tracing::info!(dead_letter = %at, user_id = %by, "broken dead letter discarded");
                shop.audit_letter(by, "discard", at, Settled::Discarded.as_str()).await?;
                return Ok(Settled::Discarded);
            };
            let settled = if shop.fail_row(&order, entry.field("reason")).await? {
                crate::fail_point("discard-after-row");
                shop.give_back(at, &order).await?
            } else {
                shop.settle_confirmed(at, &order).await?
            };
            crate::fail_point("discard-after-script");
            tracing::info!(dead_letter = %at, user_id = %by, order_id = %order.order_id, ?settled, "dead letter discarded");
            shop.audit_letter(by, "discard", at, settled.as_str()).await?;
            Ok(settled)
        })
        .await
    }

    /// Writes the row `failed`; false when the order is in the database as confirmed.
    async fn fail_row(&self, order: &Admitted, reason: &str) -> Result<bool, Error> {
        let mut connection = self.pool().acquire().await?;
        let mut tx = connection.begin().await?;
        match order_fail(&mut tx, order, reason, self.now_ms()).await {
            Ok(row) => {
                tx.commit().await?;
                let same = row.user_id == order.user_id && row.voucher_id == order.voucher_id;
                Ok(!(same && row.state == OrderState::Confirmed))
            }
            // Forged: no such user or voucher. Then no worker can ever commit it either.
            Err(Error::Internal(cause)) if is_foreign_key(&cause) => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn give_back(&self, at: LaneEntry, order: &Admitted) -> Result<Settled, Error> {
        let (names, lane) = (self.names(), at.lane);
        let keys = vec![
            names.inflight(lane),
            names.dead(lane),
            names.sale(lane, order.voucher_id),
            names.buyers(lane, order.voucher_id),
        ];
        let reply = self
            .redis()
            .eval(&DISCARD, keys, identity(at.entry, order))
            .await;
        // A unit may be on sale again.
        self.sale_changed(order.voucher_id);
        match number(&reply?)? {
            0 => Err(Error::NotFound),
            1 | 2 => Ok(Settled::Discarded),
            3 => Ok(Settled::Removed),
            code => Err(Error::impossible(format!(
                "discard.lua answered the unknown code {code}"
            ))),
        }
    }

    async fn is_confirmed(&self, order: &Admitted) -> Result<bool, Error> {
        let rows = order_written(self.pool(), &[order.order_id.get()]).await?;
        Ok(rows.iter().any(|row| {
            row.user_id == order.user_id
                && row.voucher_id == order.voucher_id
                && row.state == OrderState::Confirmed
        }))
    }

    async fn settle_confirmed(&self, at: LaneEntry, order: &Admitted) -> Result<Settled, Error> {
        let (keys, args) = acknowledgement(self, at.lane, std::iter::once((None, order)));
        self.redis().eval(&ACK, keys, args).await?;
        crate::fail_point("settle-after-ack");
        let _: i64 = self
            .redis()
            .client()
            .xdel(self.names().dead(at.lane), at.entry.to_string())
            .await?;
        Ok(Settled::Confirmed)
    }
}

/// The order of a dead letter; what is missing besides its identity does not matter any more.
fn order_of(entry: &Entry) -> Option<Admitted> {
    Some(Admitted {
        order_id: entry.field("order_id").parse().ok()?,
        user_id: entry.field("user_id").parse().ok()?,
        voucher_id: entry.field("voucher_id").parse().ok()?,
        admitted_ms: payload_number(entry, "admitted_ms")
            .unwrap_or_else(|| i64::try_from(entry.id.ms).unwrap_or(0)),
        traceparent: String::new(),
    })
}

fn payload_number(entry: &Entry, name: &str) -> Option<i64> {
    let payload: serde_json::Value = serde_json::from_str(entry.field("payload")).ok()?;
    payload.get(name)?.as_str()?.parse().ok()
}

fn identity(dead: EntryId, order: &Admitted) -> Vec<Value> {
    vec![
        dead.to_string().into(),
        order.order_id.to_string().into(),
        order.user_id.to_string().into(),
        order.voucher_id.to_string().into(),
    ]
}

fn is_foreign_key(cause: &crate::error::Cause) -> bool {
    cause
        .downcast_ref::<sqlx::Error>()
        .and_then(sqlx::Error::as_database_error)
        .is_some_and(sqlx::error::DatabaseError::is_foreign_key_violation)
}
