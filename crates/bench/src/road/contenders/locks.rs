//! Four forms of a lock for each user on one Redis, in the order in which people find them.
//!
//! They are the contenders' own and small on purpose; the product's are in the domain crate.

use tokio::task::JoinHandle;

use crate::road::stores::{Redis, Scene};
use crate::road::{Ask, Fault, RoadError};

/// Which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Set if absent with an expiry; released by deleting.
    First,
    /// The same with an owner, who is looked up before the deleting, in two steps.
    OwnerCheck,
    /// Looking and deleting in one script.
    Script,
    /// A hash of owner and depth, renewed for as long as the holder lives.
    Reentrant,
}

const RELEASE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
const ENTER: &str = "if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then \
    redis.call('HINCRBY', KEYS[1], ARGV[1], 1) redis.call('PEXPIRE', KEYS[1], ARGV[2]) return 1 end return 0";
const LEAVE: &str = "if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end \
    if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) <= 0 then redis.call('DEL', KEYS[1]) end return 1";
const RENEW: &str = "if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then \
    return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0";

pub(crate) struct Lease {
    redis: Redis,
    form: Form,
    scene: Scene,
    release: String,
    enter: String,
    leave: String,
    renew: String,
}

/// A lock that is held. Dropping it without [`Lease::release`] leaves it to its expiry.
pub(crate) struct Held {
    key: String,
    owner: String,
    watchdog: Option<JoinHandle<()>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(watchdog) = &self.watchdog {
            watchdog.abort();
        }
    }
}

impl Lease {
    pub(crate) async fn open(scene: &Scene, form: Form) -> Result<Self, RoadError> {
        let redis = Redis::open(&scene.redis_url).await?;
        Ok(Self {
            release: redis.load(RELEASE).await?,
            enter: redis.load(ENTER).await?,
            leave: redis.load(LEAVE).await?,
            renew: redis.load(RENEW).await?,
            scene: scene.clone(),
            redis,
            form,
        })
    }

    /// Takes a user's lock, or tells at once that it is held.
    pub(crate) async fn acquire(&self, user: i64) -> Result<Option<Held>, RoadError> {
        let key = self.scene.key(&format!("lock:{user}"));
        let owner = format!("{:032x}", rand::random::<u128>());
        let lease = self.scene.lease_ms.to_string();
        let taken = match self.form {
            Form::Reentrant => {
                self.redis
                    .number(&["EVALSHA", &self.enter, "1", &key, &owner, &lease])
                    .await?
                    == 1
            }
            _ => self
                .redis
                .text(&["SET", &key, &owner, "NX", "PX", &lease])
                .await?
                .is_some(),
        };
        let watchdog = (taken && self.form == Form::Reentrant).then(|| self.watch(&key, &owner));
        Ok(taken.then_some(Held {
            key,
            owner,
            watchdog,
        }))
    }

    /// Gives it back, in the way of its form.
    pub(crate) async fn release(&self, mut held: Held, ask: &Ask) -> Result<(), RoadError> {
        if let Some(watchdog) = held.watchdog.take() {
            watchdog.abort();
        }
        let (key, owner) = (held.key.as_str(), held.owner.as_str());
        match self.form {
            Form::First => {
                ask.at(Fault::SlowRelease).await;
                self.redis.call(&["DEL", key]).await?;
            }
            Form::OwnerCheck => {
                if self.redis.text(&["GET", key]).await?.as_deref() == Some(owner) {
                    ask.at(Fault::SlowRelease).await;
                    self.redis.call(&["DEL", key]).await?;
                }
            }
            Form::Script => {
                ask.at(Fault::SlowRelease).await;
                self.redis
                    .call(&["EVALSHA", &self.release, "1", key, owner])
                    .await?;
            }
            Form::Reentrant => {
                ask.at(Fault::SlowRelease).await;
                self.redis
                    .call(&["EVALSHA", &self.leave, "1", key, owner])
                    .await?;
            }
        }
        Ok(())
    }

    /// Renews a lock a third into its lease, again and again, until it is aborted or lost.
    fn watch(&self, key: &str, owner: &str) -> JoinHandle<()> {
        let (redis, sha) = (self.redis.clone(), self.renew.clone());
        let (key, owner) = (key.to_owned(), owner.to_owned());
        let (third, lease) = (self.scene.lease() / 3, self.scene.lease_ms.to_string());
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(third).await;
                let renewed = redis
                    .number(&["EVALSHA", &sha, "1", &key, &owner, &lease])
                    .await;
                if matches!(renewed, Ok(0)) {
                    return;
                }
            }
        })
    }
}
