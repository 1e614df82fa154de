//! Locks on Redis, for jobs that one process at a time should do.
//!
//! No order depends on one. A lock on a lease is a matter of luck by its nature: a holder that
//! stands still beyond its lease goes on working beside the next one, and a failover can forget
//! the lock. So a lock only saves work from being done twice, its holder can see that it has
//! lost it, and where that is not enough a fencing number tells the later holder from the
//! earlier one.
//!
//! - [`Locks`]: the locks of one Redis; [`Shop::locks`](crate::Shop::locks) are the product's
//! - [`Lock`]: one owner's view of one lock: entered again by the same owner, waited for in line
//! - [`Guard`]: a lock that is held, renewed for as long as it lives, given back when it is dropped
//! - [`MultiLock`]: one lock over several independent servers, all or none

mod guard;
mod line;
mod multi;

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use fred::types::Value;
use tokio::sync::Mutex;

use crate::names::Names;
use crate::redis::{Redis, count, list, number};
use crate::scripts::{ENTER, LEAVE, RENEW};
use crate::{Error, OpenError};

pub use guard::Guard;
use guard::Hold;
pub use line::PATIENCE;
use line::{Line, Turns};
pub use multi::{MultiGuard, MultiLock};

/// The longest lease.
pub const LONGEST_LEASE: Duration = Duration::from_secs(24 * 3_600);
/// The longest name of a lock, in bytes.
const LONGEST_NAME: usize = 200;

/// How long a lock is held by whoever took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// This long from the answer on, and not longer: nobody renews it.
    Fixed(Duration),
    /// For as long as the guard lives: it is set to this length again each third of it, and ends
    /// this long after the process died.
    Renewed(Duration),
}

impl Lease {
    fn length(self) -> Duration {
        match self {
            Self::Fixed(length) | Self::Renewed(length) => length,
        }
    }

    fn is_renewed(self) -> bool {
        matches!(self, Self::Renewed(_))
    }

    fn check(self) -> Result<(), Error> {
        if self.length() < Duration::from_millis(1) || self.length() > LONGEST_LEASE {
            return Err(Error::Invalid(
                "a lease has from one millisecond to a day".into(),
            ));
        }
        Ok(())
    }
}

fn new_token() -> String {
    format!("{:032x}", rand::random::<u128>())
}

fn millis(length: Duration) -> Value {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX).into()
}

/// The locks of one Redis. Cheap to clone.
#[derive(Clone)]
pub struct Locks(Arc<Server>);

struct Server {
    redis: Redis,
    names: Names,
    turns: Turns,
}

impl Locks {
    /// The locks of a Redis of their own, as a [`MultiLock`] needs several.
    ///
    /// # Errors
    /// Only for settings that can't be used.
    pub fn open(url: &str, prefix: &str, timeout: Duration) -> Result<Self, OpenError> {
        let names = Names::new(prefix).ok_or(OpenError::Prefix)?;
        let redis = Redis::open(url, 1, timeout).map_err(OpenError::RedisUrl)?;
        Self::of(redis, names, url, timeout)
    }

    /// The locks of a Redis that is connected already; one more connection listens.
    pub(crate) fn of(
        redis: Redis,
        names: Names,
        url: &str,
        timeout: Duration,
    ) -> Result<Self, OpenError> {
        let turns = Turns::new(url, names.lock_turns(), timeout).map_err(OpenError::RedisUrl)?;
        Ok(Self(Arc::new(Server {
            redis,
            names,
            turns,
        })))
    }

    /// A lock for a new owner, held by nobody of this name yet.
    ///
    /// Clones of the [`Lock`] are the same owner, and enter it beside each other; who calls this
    /// again is another one, and waits.
    ///
    /// # Errors
    /// `Invalid` for a name that is empty, longer than 200 bytes, or has braces or line breaks.
    pub fn lock(&self, name: &str) -> Result<Lock, Error> {
        if name.is_empty()
            || name.len() > LONGEST_NAME
            || name.contains(['{', '}', '\n', '\r', '\0'])
        {
            return Err(Error::Invalid(
                "a lock's name has 1 to 200 bytes, no braces and no line breaks".into(),
            ));
        }
        Ok(Lock(Arc::new(Owner {
            locks: self.clone(),
            name: name.to_owned(),
            token: std::sync::Mutex::new(new_token()),
            held: Mutex::default(),
        })))
    }

    /// Waits until its Redis is connected, at most this long.
    ///
    /// # Errors
    /// `Unavailable` when it is not by then.
    pub async fn wait_for_redis(&self, limit: Duration) -> Result<(), Error> {
        self.0.redis.wait(limit).await
    }

    /// Closes the connections. What is held ends with its lease.
    pub async fn close(&self) {
        self.0.turns.close().await;
        self.0.redis.quit().await;
    }
}

/// One owner's view of one lock; clones are the same owner.
#[derive(Clone)]
pub struct Lock(Arc<Owner>);

struct Owner {
    locks: Locks,
    name: String,
    /// Who Redis is told that this is; another one after an answer that was lost.
    token: std::sync::Mutex<String>,
    /// Kept during a round trip only, so that what Redis is told of the depth is in order.
    held: Mutex<Held>,
}

/// What the owner has of the lock.
#[derive(Default)]
struct Held {
    hold: Option<Arc<Hold>>,
    /// Guards of this hold.
    depth: u32,
}

/// What came of an attempt to enter.
enum Entered {
    In(Guard),
    /// Not yet; it may be free this long from now.
    Not(Duration),
}

impl Lock {
    /// Takes the lock if it is free and nobody stands in line for it, or enters it once more.
    ///
    /// # Errors
    /// `Invalid` for a lease that is none, `Unavailable` when Redis can't be asked: the lock is not
    /// held then, whatever Redis did.
    pub async fn try_acquire(&self, lease: Lease) -> Result<Option<Guard>, Error> {
        match self.enter(lease, Duration::ZERO).await? {
            Entered::In(guard) => Ok(Some(guard)),
            Entered::Not(_) => Ok(None),
        }
    }

    /// Takes the lock as soon as it is this owner's turn, at most this long from now; `None` when it was not.
    ///
    /// Who waits stands in line in the order of coming, and is woken by a message when its turn
    /// has come; without the message it looks when the lease ends, and each half second. The
    /// future may be dropped: the place in line is given up.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    pub async fn acquire(&self, lease: Lease, limit: Duration) -> Result<Option<Guard>, Error> {
        let deadline = Instant::now() + limit;
        let mut line = Line::join(self);
        loop {
            line.stands();
            match self.enter(lease, PATIENCE).await? {
                Entered::In(guard) => {
                    line.left();
                    return Ok(Some(guard));
                }
                Entered::Not(free_in) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(None);
                    }
                    line.nap(free_in, left).await;
                }
            }
        }
    }

    /// One attempt, in a task of its own: a caller that goes away meanwhile leaves nothing held,
    /// for the guard that nobody takes gives the lock back.
    async fn enter(&self, lease: Lease, patience: Duration) -> Result<Entered, Error> {
        lease.check()?;
        let lock = self.clone();
        let attempt = tokio::spawn(async move { lock.enter_now(lease, patience).await });
        attempt
            .await
            .map_err(|error| Error::Internal(error.into()))?
    }

    async fn enter_now(&self, lease: Lease, patience: Duration) -> Result<Entered, Error> {
        let owner = &self.0;
        let mut held = owner.held.lock().await;
        // A hold that is lost is no depth to add to.
        held.forget_lost();
        let names = &owner.locks.0.names;
        let keys = vec![
            names.lock(&owner.name),
            names.lock_fence(&owner.name),
            names.lock_line(&owner.name),
            names.lock_waiting(&owner.name),
        ];
        let args = vec![
            self.token().into(),
            i64::from(held.depth).into(),
            millis(lease.length()),
            millis(patience),
        ];
        let asked = Instant::now();
        let reply = match owner.locks.0.redis.eval(&ENTER, keys, args).await {
            Ok(reply) => list(reply)?,
            Err(error) => {
                // Redis may have given it all the same, or may yet. What is entered again stands anyhow.
                if held.depth == 0 {
                    self.become_another();
                }
                return Err(error);
            }
        };
        let (Some(entered), Some(told)) = (reply.first(), reply.get(1)) else {
            return Err(Error::impossible("Redis answered half of what was due"));
        };
        let told = count(told)?;
        if number(entered)? != 1 {
            return Ok(Entered::Not(Duration::from_millis(told)));
        }
        let until = asked + lease.length();
        let hold = match held.hold.take().filter(|hold| hold.fence == told) {
            Some(hold) => {
                hold.extend(until);
                held.depth += 1;
                hold
            }
            // The first entry, or the earlier hold ended unseen.
            None => {
                held.depth = 1;
                Arc::new(Hold::new(told, until))
            }
        };
        held.hold = Some(Arc::clone(&hold));
        drop(held);
        Ok(Entered::In(Guard::new(self.clone(), hold, lease)))
    }

    fn token(&self) -> String {
        let token = self.0.token.lock();
        token.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives back what a lost answer may have left with Redis, and is somebody else from now on:
    /// however late that is done, it undoes nothing that this owner gets later.
    fn become_another(&self) {
        let mut token = self.0.token.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *token, new_token());
        drop(token);
        let lock = self.clone();
        tokio::spawn(async move {
            let gone = match lock.leave_redis(&before, "", 0, Duration::ZERO).await {
                Ok(_) => lock.withdraw(&before).await,
                Err(error) => Err(error),
            };
            if let Err(error) = gone {
                tracing::debug!(%error, lock = lock.0.name, "what may be held ends with its lease");
            }
        });
    }

    /// Counts a hold down by one; false when it was not this owner's any more.
    async fn leave(&self, hold: &Arc<Hold>, lease: Duration) -> Result<bool, Error> {
        let mut held = self.0.held.lock().await;
        if !held.hold.as_ref().is_some_and(|now| Arc::ptr_eq(now, hold)) {
            return Ok(false);
        }
        held.depth = held.depth.saturating_sub(1);
        if held.depth == 0 {
            held.hold = None;
        }
        let left = self
            .leave_redis(&self.token(), &hold.fence.to_string(), held.depth, lease)
            .await?;
        if !left {
            hold.lose();
        }
        Ok(left)
    }

    async fn leave_redis(
        &self,
        token: &str,
        fence: &str,
        depth: u32,
        lease: Duration,
    ) -> Result<bool, Error> {
        let (owner, names) = (&self.0, &self.0.locks.0.names);
        let keys = vec![
            names.lock(&owner.name),
            names.lock_fence(&owner.name),
            names.lock_line(&owner.name),
        ];
        let args = vec![
            token.into(),
            fence.into(),
            i64::from(depth).into(),
            millis(lease),
            names.lock_turns().into(),
        ];
        Ok(number(&owner.locks.0.redis.eval(&LEAVE, keys, args).await?)? == 1)
    }

    /// Gives a hold its whole lease again; false when it was not this owner's any more.
    async fn renew(&self, hold: &Hold, lease: Duration) -> Result<bool, Error> {
        if hold.is_lost() {
            return Ok(false);
        }
        let (owner, names) = (&self.0, &self.0.locks.0.names);
        let keys = vec![names.lock(&owner.name), names.lock_fence(&owner.name)];
        let args = vec![
            self.token().into(),
            hold.fence.to_string().into(),
            millis(lease),
        ];
        let asked = Instant::now();
        let renewed = number(&owner.locks.0.redis.eval(&RENEW, keys, args).await?)? == 1;
        if renewed {
            hold.extend(asked + lease);
        } else {
            hold.lose();
        }
        Ok(renewed && !hold.is_lost())
    }
}

impl Held {
    fn forget_lost(&mut self) {
        if self.hold.as_ref().is_some_and(|hold| hold.is_lost()) {
            *self = Self::default();
        }
    }
}
