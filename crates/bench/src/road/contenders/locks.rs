//! Three forms of a lock for each user on one Redis, in the order in which people find them.
//!
//! What comes after them is the product's own lock (`seckill::lock`).

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
}

const RELEASE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

pub(crate) struct Lease {
    redis: Redis,
    form: Form,
    scene: Scene,
    release: String,
}

/// A lock that is held. Dropped without [`Lease::release`], it is left to its expiry.
pub(crate) struct Held {
    key: String,
    owner: String,
}

impl Lease {
    pub(crate) async fn open(scene: &Scene, form: Form) -> Result<Self, RoadError> {
        let redis = Redis::open(&scene.redis_url).await?;
        Ok(Self {
            release: redis.load(RELEASE).await?,
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
        let taken = self
            .redis
            .text(&["SET", &key, &owner, "NX", "PX", &lease])
            .await?;
        Ok(taken.map(|_| Held { key, owner }))
    }

    /// Gives it back, in the way of its form.
    pub(crate) async fn release(&self, held: Held, ask: &Ask) -> Result<(), RoadError> {
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
        }
        Ok(())
    }
}
