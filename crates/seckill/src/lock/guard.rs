//! A lock that is held: how long it is certain, who renews it, and how it is given back.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Lease, Lock};
use crate::Error;

/// One acquisition, shared by the guards of those who entered it.
pub(super) struct Hold {
    /// Higher than that of every acquisition before, see [`Guard::fence`].
    pub(super) fence: u64,
    /// Until when no other can have it, by this process' monotonic clock: counted from before Redis was asked.
    until: std::sync::Mutex<Instant>,
    lost: watch::Sender<bool>,
}

impl Hold {
    pub(super) fn new(fence: u64, until: Instant) -> Self {
        Self {
            fence,
            until: std::sync::Mutex::new(until),
            lost: watch::Sender::new(false),
        }
    }

    pub(super) fn extend(&self, until: Instant) {
        let mut certain = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        *certain = until.max(*certain);
    }

    pub(super) fn lose(&self) {
        self.lost.send_replace(true);
    }

    fn until(&self) -> Instant {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Once lost, lost for good: what a holder has seen does not become untrue.
    pub(super) fn is_lost(&self) -> bool {
        if !*self.lost.borrow() && Instant::now() >= self.until() {
            self.lose();
        }
        *self.lost.borrow()
    }
}

/// A lock that is held until this is released or dropped, or until it is lost.
///
/// Dropped, it is given back in the background; [`release`](Self::release) says how that went.
#[must_use = "the lock is given back when this is dropped"]
pub struct Guard {
    lock: Lock,
    hold: Arc<Hold>,
    lease: Lease,
    watchdog: Option<JoinHandle<()>>,
    given_back: bool,
}

impl Guard {
    pub(super) fn new(lock: Lock, hold: Arc<Hold>, lease: Lease) -> Self {
        let watched = (lock.clone(), Arc::clone(&hold));
        let watchdog = lease
            .is_renewed()
            .then(|| tokio::spawn(watch_over(watched.0, watched.1, lease.length())));
        Self {
            lock,
            hold,
            lease,
            watchdog,
            given_back: false,
        }
    }

    /// The number of this acquisition, higher than that of every earlier one.
    ///
    /// What is guarded can refuse a holder that comes late: it remembers the highest number it
    /// has seen, and takes nothing under a lower one. It is at least the microseconds since the
    /// Unix epoch by Redis' clock, so that it rises also when Redis has lost the last one.
    pub fn fence(&self) -> u64 {
        self.hold.fence
    }

    /// Whether somebody else may hold the lock by now, as far as this process knows; asks nobody.
    ///
    /// True at once after a standstill that was longer than the lease.
    pub fn is_lost(&self) -> bool {
        self.hold.is_lost()
    }

    /// Waits until the lock is lost.
    pub async fn lost(&self) {
        let mut lost = self.hold.lost.subscribe();
        while !self.is_lost() {
            let end = tokio::time::Instant::from_std(self.hold.until());
            tokio::select! {
                // The sender lives in the hold, which this guard keeps.
                _ = lost.changed() => {}
                () = tokio::time::sleep_until(end) => {}
            }
        }
    }

    /// Asks Redis whether the lock is still held, and gives it its whole lease again if it is.
    ///
    /// # Errors
    /// `Unavailable` when Redis can't be asked: nothing is known then.
    pub async fn renew(&self) -> Result<bool, Error> {
        self.lock.renew(&self.hold, self.lease.length()).await
    }

    /// Gives the lock back, or counts it down; false when it was not held any more.
    ///
    /// # Errors
    /// `Unavailable` when Redis can't be asked: the lock ends with its lease, if it did not end.
    pub async fn release(mut self) -> Result<bool, Error> {
        let released = tokio::spawn(self.give_back());
        released
            .await
            .map_err(|error| Error::Internal(error.into()))?
    }

    /// From now on nobody renews it.
    pub(super) fn stop_renewing(&mut self) {
        if let Some(watchdog) = self.watchdog.take() {
            watchdog.abort();
        }
    }

    fn give_back(&mut self) -> impl Future<Output = Result<bool, Error>> + Send + use<> {
        self.given_back = true;
        self.stop_renewing();
        let (lock, hold) = (self.lock.clone(), Arc::clone(&self.hold));
        let lease = self.lease.length();
        async move { lock.leave(&hold, lease).await }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.given_back {
            return;
        }
        let leaving = self.give_back();
        // Without a runtime there is nobody to tell Redis: the lease ends.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = leaving.await {
                    tracing::debug!(%error, "a lock ends with its lease");
                }
            });
        }
    }
}

/// The watchdog: renews a third into the lease, and again, until it is lost.
async fn watch_over(lock: Lock, hold: Arc<Hold>, lease: Duration) {
    let third = lease / 3;
    let mut rest = third;
    loop {
        tokio::time::sleep(rest).await;
        rest = match lock.renew(&hold, lease).await {
            Ok(true) => third,
            Ok(false) => {
                tracing::warn!(lock = lock.0.name, "a lock was lost while it was held");
                return;
            }
            Err(error) => {
                tracing::debug!(%error, lock = lock.0.name, "a lock can't be renewed now");
                third / 4
            }
        };
    }
}
