//! Every contender, by the name that the roster calls it.

mod counted;
mod locks;
mod one_per_user;
pub(crate) mod product;
mod queues;
mod rabbit;
mod scripted;

use std::sync::Arc;

use super::stores::Scene;
use super::{Contender, RoadError};
use counted::{Counted, Guard};
use locks::Form;
use one_per_user::OnePerUser;
use queues::{ListQueue, MemoryQueue, PublishSubscribe, StreamFrom};

/// Opens the contender of a scene.
pub(crate) async fn open(scene: &Scene) -> Result<Arc<dyn Contender>, RoadError> {
    Ok(match scene.contender.as_str() {
        "check-then-decrement" => Arc::new(Counted::open(scene, Guard::None).await?),
        "optimistic-version" => Arc::new(Counted::open(scene, Guard::Version).await?),
        "optimistic-stock" => Arc::new(Counted::open(scene, Guard::SameStock).await?),
        "stock-above-zero" => Arc::new(Counted::open(scene, Guard::AboveZero).await?),
        "one-per-user-unguarded" => Arc::new(OnePerUser::unguarded(scene).await?),
        "mutex" | "mutex-two-processes" => Arc::new(OnePerUser::mutex(scene).await?),
        "lease-first" => Arc::new(OnePerUser::leased(scene, Form::First).await?),
        "lease-owner-check" => Arc::new(OnePerUser::leased(scene, Form::OwnerCheck).await?),
        "lease-script" => Arc::new(OnePerUser::leased(scene, Form::Script).await?),
        "lease-reentrant" => Arc::new(OnePerUser::locked(scene).await?),
        "memory-queue" => Arc::new(MemoryQueue::open(scene).await?),
        "redis-list" => Arc::new(ListQueue::open(scene).await?),
        "publish-subscribe" => Arc::new(PublishSubscribe::open(scene).await?),
        "stream-from-now" => Arc::new(StreamFrom::open(scene, "$").await?),
        "stream-from-start" => Arc::new(StreamFrom::open(scene, "0").await?),
        "rabbitmq" => Arc::new(rabbit::Rabbit::open(scene).await?),
        "product" => Arc::new(product::Product::open(scene).await?),
        other => return Err(RoadError::Broken(format!("no contender is called {other}"))),
    })
}
