//! The gate: after a disturbance a process decides nothing until it has looked.
//!
//! A Redis that comes back may be another one: a replica, one without persistence, one that
//! lost its last writes. Every lost or new connection closes the gate of this process; it
//! opens when the ground is safe, the streams are not behind what this process saw, its own
//! last admissions are still there, and every sale has the changes its row has. What is
//! behind is distrusted: closed, and loaded anew under another epoch, until an admin resumes it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use fred::interfaces::{EventInterface, HashesInterface, StreamsInterface};
use fred::types::Value;
use tokio::sync::Notify;

use crate::ids::{EntryId, Lane, OrderId, UserId, VoucherId};
use crate::orders::OrderState;
use crate::redis::{list, text};
use crate::shop::Inner;
use crate::store::order::order_written;
use crate::store::voucher::Voucher;
use crate::vouchers::LiveSale;
use crate::{Error, Shop};

/// Pause between two looks while Redis or PostgreSQL can't be asked, or the ground is unsafe.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a purchase waits for a look that is under way: a connection made anew is looked at
/// within milliseconds, and need not cost a buyer the answer.
const GRACE: Duration = Duration::from_millis(250);

/// The last admission that this process was told of in a lane.
#[derive(Debug, Clone, Copy)]
struct Seen {
    place: EntryId,
    voucher: VoucherId,
    user: UserId,
    order: OrderId,
}

/// Whether this process may decide, and what it remembers to judge that by.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Disturbances so far, from 1: a process that was never connected has not looked yet.
    disturbed: AtomicU64,
    /// The disturbance after which it has looked.
    looked: AtomicU64,
    changed: Notify,
    opened: Notify,
    seen: Mutex<HashMap<Lane, Seen>>,
    /// How often something was behind.
    alarms: AtomicU64,
    /// The shop was closed: lost connections are no disturbance any more.
    closed: AtomicBool,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            disturbed: AtomicU64::new(1),
            ..Self::default()
        }
    }

    /// Whether this process may decide.
    pub(crate) fn is_open(&self) -> bool {
        self.looked.load(Ordering::Acquire) == self.disturbed.load(Ordering::Acquire)
    }

    /// Ends the watching.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    fn disturb(&self) {
        self.disturbed.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// Remembers an admission.
    pub(crate) fn saw(
        &self,
        lane: Lane,
        place: EntryId,
        voucher: VoucherId,
        user: UserId,
        order: OrderId,
    ) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = seen.get(&lane).is_none_or(|before| before.place < place);
        if newest {
            seen.insert(
                lane,
                Seen {
                    place,
                    voucher,
                    user,
                    order,
                },
            );
        }
    }

    fn forget(&self, lane: Lane) {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&lane);
    }

    fn remembered(&self) -> Vec<(Lane, Seen)> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().map(|(lane, seen)| (*lane, *seen)).collect()
    }
}

/// Watches the connections and opens the gate after each disturbance, until the shop is gone.
pub(crate) fn watch(shop: &Shop) {
    for client in shop.redis().clients() {
        let (mut lost, mut made) = (client.error_rx(), client.reconnect_rx());
        let inner: Weak<Inner> = shop.weak();
        tokio::spawn(async move {
            loop {
                // An event that was missed was an event.
                let more = tokio::select! {
                    event = lost.recv() => !matches!(event, Err(tokio::sync::broadcast::error::RecvError::Closed)),
                    event = made.recv() => !matches!(event, Err(tokio::sync::broadcast::error::RecvError::Closed)),
                };
                let Some(inner) = inner.upgrade() else { return };
                if !more {
                    return;
                }
                inner.gate().disturb();
            }
        });
    }
    let inner: Weak<Inner> = shop.weak();
    tokio::spawn(async move {
        let mut told = String::new();
        loop {
            let Some(strong) = inner.upgrade() else {
                return;
            };
            let shop = Shop::of(strong);
            let gate = shop.gate();
            if gate.is_open() {
                let (gate, shop_weak) = (Arc::clone(&gate), shop.weak());
                drop(shop);
                // Looks up now and then whether the shop is still there.
                let _ = tokio::time::timeout(Duration::from_secs(1), gate.changed.notified()).await;
                if shop_weak.strong_count() == 0 {
                    return;
                }
                continue;
            }
            let disturbance = gate.disturbed.load(Ordering::Acquire);
            match shop.look().await {
                Ok(()) => {
                    gate.looked.store(disturbance, Ordering::Release);
                    if !told.is_empty() {
                        tracing::info!("selling again");
                        told.clear();
                    }
                    gate.changed.notify_waiters();
                    gate.opened.notify_waiters();
                }
                Err(error) => {
                    let why = error.to_string();
                    if gate.closed.load(Ordering::Acquire) {
                        return;
                    }
                    // Before it was ever connected nothing was disturbed; the process says at
                    // start what is away.
                    if why != told && gate.looked.load(Ordering::Acquire) > 0 {
                        tracing::warn!(%error, "not selling until Redis was looked at");
                        told = why;
                    }
                    drop(shop);
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    });
}

impl Shop {
    /// Whether this process decides about purchases now.
    pub fn is_selling(&self) -> bool {
        self.gate().is_open()
    }

    /// How often this process found Redis behind what it had seen.
    pub fn alarms(&self) -> u64 {
        self.gate().alarms.load(Ordering::Relaxed)
    }

    /// Waits until this process decides about purchases, at most this long.
    ///
    /// # Errors
    /// `Unavailable` when it does not by then.
    pub async fn wait_until_selling(&self, limit: Duration) -> Result<(), Error> {
        let gate = self.gate();
        let open = async {
            loop {
                let mut opened = std::pin::pin!(gate.opened.notified());
                // From here on no opening is missed.
                opened.as_mut().enable();
                if gate.is_open() {
                    return;
                }
                opened.await;
            }
        };
        tokio::time::timeout(limit, open)
            .await
            .map_err(|late| Error::Unavailable(late.into()))
    }

    /// Lets a purchase through: at once, or after a look that ends within [`GRACE`].
    ///
    /// # Errors
    /// `Unavailable` when it does not, and at once when there is no connection to look through.
    pub(crate) async fn may_decide(&self) -> Result<(), Error> {
        if self.is_selling() {
            return Ok(());
        }
        let looking = self.redis().is_connected();
        if looking && self.wait_until_selling(GRACE).await.is_ok() {
            return Ok(());
        }
        Err(Error::Unavailable("Redis has to be looked at first".into()))
    }

    /// Looks whether Redis is what this process takes it for; distrusts what is behind.
    async fn look(&self) -> Result<(), Error> {
        if !self.config().allow_unsafe {
            let findings = self.redis_ground().await?;
            if let Some(finding) = findings.first() {
                return Err(Error::Unavailable(finding.what.clone().into()));
            }
        }
        let remembered = self.gate().remembered();
        let known_nothing = remembered.is_empty();
        for (lane, seen) in remembered {
            let behind = match self.behind(lane, &seen).await {
                // Something made it unreadable: what it holds is looked at sale by sale below.
                Err(error @ Error::Internal(_)) => {
                    tracing::error!(%error, %lane, "a lane in Redis can't be read");
                    None
                }
                behind => behind?,
            };
            if let Some(why) = behind {
                tracing::error!(%lane, why, "ALARM: Redis is behind what this process saw; its sales are closed");
                let held = self.held(self.now_ms()).await?;
                for voucher in held.iter().filter(|voucher| voucher.lane == lane) {
                    self.close_behind(voucher).await?;
                }
                self.gate().alarms.fetch_add(1, Ordering::Relaxed);
                self.gate().forget(lane);
            }
        }
        let held = match self.held(self.now_ms()).await {
            // A process that has seen nothing has nothing to compare; buying works without PostgreSQL.
            Err(Error::Unavailable(_)) if known_nothing => return Ok(()),
            held => held?,
        };
        for voucher in held {
            self.look_at(&voucher).await?;
        }
        Ok(())
    }

    /// Looks whether Redis has a sale's rows and changes; closes what is behind its row.
    async fn look_at(&self, voucher: &Voucher) -> Result<(), Error> {
        let live = match self.live(voucher).await {
            // Something made it unreadable: it sells nothing, and stops no other sale.
            Err(error @ Error::Internal(_)) => {
                tracing::error!(%error, voucher_id = %voucher.voucher_id, "a sale in Redis can't be read");
                return Ok(());
            }
            live => live?.sale,
        };
        if let Some(why) = live.and_then(|live| behind_row(voucher, &live)) {
            tracing::error!(voucher_id = %voucher.voucher_id, why, "ALARM: Redis is behind PostgreSQL; the sale is closed");
            self.close_behind(voucher).await?;
            self.gate().alarms.fetch_add(1, Ordering::Relaxed);
        }
        self.apply_changes(voucher).await?;
        Ok(())
    }

    async fn close_behind(&self, voucher: &Voucher) -> Result<(), Error> {
        self.distrust(voucher).await?;
        self.report(voucher, "loaded").await
    }

    /// In what a lane is behind; none when it is not.
    async fn behind(&self, lane: Lane, seen: &Seen) -> Result<Option<&'static str>, Error> {
        let client = self.redis().client();
        let info: Result<Value, _> = client
            .xinfo_stream(self.names().orders(lane), false, None)
            .await;
        let newest: Option<EntryId> = match info {
            Ok(info) => last_generated(info)?,
            Err(error) if error.details().contains("no such key") => None,
            Err(error) => return Err(error.into()),
        };
        if newest.is_none_or(|newest| newest < seen.place) {
            return Ok(Some("the stream's last id lies before an admission"));
        }
        if self.is_released_by_row(seen.voucher).await? {
            // Its buyers were freed in order.
            return Ok(None);
        }
        let buyers = self.names().buyers(lane, seen.voucher);
        let holds: Option<String> = client.hget(buyers, seen.user.to_string()).await?;
        if holds.as_deref() == Some(seen.order.to_string().as_str()) {
            return Ok(None);
        }
        let rows = order_written(self.pool(), &[seen.order.get()]).await?;
        let failed = rows.iter().any(|row| row.state == OrderState::Failed);
        Ok((!failed).then_some("the last admission is not among the buyers"))
    }

    /// Closes a sale at once and loads it anew under another epoch; an admin resumes it.
    pub(crate) async fn distrust(&self, voucher: &Voucher) -> Result<(), Error> {
        self.load_anew(voucher).await?;
        Ok(())
    }
}

/// In what a sale is behind the row that was read before it; none when it is not. The row's
/// stock is taken by confirmed orders alone, each counted in Redis from its admission on.
fn behind_row(row: &Voucher, live: &LiveSale) -> Option<&'static str> {
    if !live.loaded() {
        return None;
    }
    if live.epoch < row.loaded_epoch {
        return Some("its load is older than its row's");
    }
    let counted = live.acked + live.in_flight + live.dead;
    (live.epoch == row.loaded_epoch && row.total - row.stock > counted)
        .then_some("it counts fewer orders than were confirmed")
}

fn last_generated(info: Value) -> Result<Option<EntryId>, Error> {
    let parts = match info {
        Value::Map(map) => map
            .inner()
            .into_iter()
            .flat_map(|(key, value)| [key.into(), value])
            .collect(),
        other => list(other)?,
    };
    let found = parts
        .chunks_exact(2)
        .find(|pair| text(&pair[0]) == "last-generated-id");
    Ok(found.and_then(|pair| text(&pair[1]).parse().ok()))
}
