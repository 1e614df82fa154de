//! One lock over several independent servers: it survives that one of them forgets it.

use std::time::{Duration, Instant};

use futures::future::join_all;

use super::{Guard, Lease, Lock, Locks};
use crate::Error;

/// One owner's view of one lock on each of several servers, taken in the order they were given.
///
/// Everybody must give the same servers in the same order: then two never hold one half each.
#[derive(Clone)]
pub struct MultiLock(Vec<Lock>);

impl MultiLock {
    /// The lock of this name on these servers, for a new owner.
    ///
    /// # Errors
    /// `Invalid` without a server, or for a name that [`Locks::lock`] refuses.
    pub fn new(servers: &[Locks], name: &str) -> Result<Self, Error> {
        if servers.is_empty() {
            return Err(Error::Invalid(
                "a lock over several servers needs a server".into(),
            ));
        }
        let locks: Result<Vec<Lock>, Error> =
            servers.iter().map(|server| server.lock(name)).collect();
        Ok(Self(locks?))
    }

    /// Takes the lock on every server, at most this long from now; otherwise on none.
    ///
    /// While the later ones are waited for the earlier ones are renewed, and after the last one
    /// each gets its whole lease. What was taken is given back when one of them can't be.
    ///
    /// # Errors
    /// As [`Lock::acquire`], when any of the servers can't be asked.
    pub async fn acquire(
        &self,
        lease: Lease,
        limit: Duration,
    ) -> Result<Option<MultiGuard>, Error> {
        lease.check()?;
        let deadline = Instant::now() + limit;
        loop {
            // A server that does not answer must not hold the others longer than the limit.
            let all = self.acquire_all(lease, deadline);
            let taken = match tokio::time::timeout_at(deadline.into(), all).await {
                Ok(taken) => taken?,
                // Dropped half way: the guards that it had gave their locks back.
                Err(_) => return Ok(None),
            };
            match taken {
                Taken::All(guard) => return Ok(Some(guard)),
                Taken::Late => return Ok(None),
                Taken::LostOne => {}
            }
        }
    }

    async fn acquire_all(&self, lease: Lease, deadline: Instant) -> Result<Taken, Error> {
        let mut guards = Vec::with_capacity(self.0.len());
        for lock in &self.0 {
            let left = deadline.saturating_duration_since(Instant::now());
            match lock.acquire(Lease::Renewed(lease.length()), left).await? {
                Some(guard) => guards.push(guard),
                None => return Ok(Taken::Late),
            }
        }
        let mut all = MultiGuard(guards);
        if !lease.is_renewed() {
            for guard in &mut all.0 {
                guard.stop_renewing();
            }
        }
        if all.renew().await? {
            Ok(Taken::All(all))
        } else {
            Ok(Taken::LostOne)
        }
    }
}

enum Taken {
    All(MultiGuard),
    /// The time was up before the last one.
    Late,
    /// One of them was lost while others were waited for.
    LostOne,
}

/// A lock that is held on every server, until this is released or dropped.
#[must_use = "the lock is given back when this is dropped"]
pub struct MultiGuard(Vec<Guard>);

impl MultiGuard {
    /// Whether any of the servers may have given it to somebody else, as far as this process knows.
    pub fn is_lost(&self) -> bool {
        self.0.iter().any(Guard::is_lost)
    }

    /// The fencing numbers, one for each server in their order.
    pub fn fences(&self) -> Vec<u64> {
        self.0.iter().map(Guard::fence).collect()
    }

    /// Asks every server, and gives each its whole lease again; false when one of them has lost it.
    ///
    /// # Errors
    /// `Unavailable` when one of them can't be asked.
    pub async fn renew(&self) -> Result<bool, Error> {
        let renewed = join_all(self.0.iter().map(Guard::renew)).await;
        renewed
            .into_iter()
            .try_fold(true, |all, one| Ok(one? && all))
    }

    /// Gives the lock back on every server; false when one of them had lost it.
    ///
    /// # Errors
    /// `Unavailable` when one of them can't be asked; the others have it back.
    pub async fn release(self) -> Result<bool, Error> {
        let released = join_all(self.0.into_iter().map(Guard::release)).await;
        released
            .into_iter()
            .try_fold(true, |all, one| Ok(one? && all))
    }
}
