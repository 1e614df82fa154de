//! One order per user, looked up in the database before the order is written, under a guard.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use seckill::lock::{self, Locks};
use sqlx::PgPool;

use super::locks::{Form, Lease};
use crate::road::stores::{Scene, insert, order_id, postgres};
use crate::road::{Answer, Ask, Contender, Fault, RoadError};

/// What keeps a user's orders apart.
enum Guard {
    Nothing,
    /// A mutex for each user, in this process.
    Mutex(Mutex<HashMap<i64, Arc<tokio::sync::Mutex<()>>>>),
    Lease(Lease),
    Lock(Locks, lock::Lease),
}

pub(crate) struct OnePerUser {
    pool: PgPool,
    guard: Guard,
}

impl OnePerUser {
    async fn with(scene: &Scene, guard: Guard) -> Result<Self, RoadError> {
        let pool = postgres(&scene.database_url, 40).await?;
        Ok(Self { pool, guard })
    }

    pub(crate) async fn unguarded(scene: &Scene) -> Result<Self, RoadError> {
        Self::with(scene, Guard::Nothing).await
    }

    pub(crate) async fn mutex(scene: &Scene) -> Result<Self, RoadError> {
        Self::with(scene, Guard::Mutex(Mutex::default())).await
    }

    pub(crate) async fn leased(scene: &Scene, form: Form) -> Result<Self, RoadError> {
        let lease = Lease::open(scene, form).await?;
        Self::with(scene, Guard::Lease(lease)).await
    }

    /// Under the product's own lock, which its watchdog renews.
    pub(crate) async fn locked(scene: &Scene) -> Result<Self, RoadError> {
        let locks = Locks::open(&scene.redis_url, &scene.prefix, Duration::from_secs(10))?;
        locks.wait_for_redis(Duration::from_secs(10)).await?;
        let lease = lock::Lease::Renewed(scene.lease());
        Self::with(scene, Guard::Lock(locks, lease)).await
    }

    async fn guarded(&self, ask: &Ask) -> Result<Answer, RoadError> {
        match &self.guard {
            Guard::Nothing => self.take(ask).await,
            Guard::Mutex(users) => {
                let lock = {
                    let mut users = users.lock().unwrap_or_else(PoisonError::into_inner);
                    Arc::clone(users.entry(ask.user).or_default())
                };
                // Held until the commit, not only until the end of the statement.
                let _held = lock.lock().await;
                self.take(ask).await
            }
            Guard::Lease(lease) => {
                let Some(held) = lease.acquire(ask.user).await? else {
                    return Ok(Answer::Busy);
                };
                let answer = self.take_or_fail(ask).await;
                // However the work ended.
                lease.release(held, ask).await?;
                answer
            }
            Guard::Lock(locks, lease) => {
                let lock = locks.lock(&ask.user.to_string())?;
                let Some(held) = lock.try_acquire(*lease).await? else {
                    return Ok(Answer::Busy);
                };
                let answer = self.take_or_fail(ask).await;
                ask.at(Fault::SlowRelease).await;
                held.release().await?;
                answer
            }
        }
    }

    async fn take_or_fail(&self, ask: &Ask) -> Result<Answer, RoadError> {
        if ask.at(Fault::FailLate).await || ask.fault == Fault::SlowRelease {
            return Ok(Answer::Failed);
        }
        self.take(ask).await
    }

    async fn take(&self, ask: &Ask) -> Result<Answer, RoadError> {
        let earlier: Option<i64> = sqlx::query_scalar(
            "select order_id from voucher_order where voucher_id = $1 and user_id = $2 limit 1",
        )
        .bind(ask.voucher)
        .bind(ask.user)
        .fetch_optional(&self.pool)
        .await?;
        if earlier.is_some() {
            return Ok(Answer::Already(earlier));
        }
        ask.at(Fault::Crash).await;
        ask.at(Fault::Slow).await;
        ask.at(Fault::Dwell).await;
        let mut tx = self.pool.begin().await?;
        let taken =
            sqlx::query("update voucher set stock = stock - 1 where voucher_id = $1 and stock > 0")
                .bind(ask.voucher)
                .execute(&mut *tx)
                .await?
                .rows_affected();
        if taken == 0 {
            tx.rollback().await?;
            return Ok(Answer::SoldOut);
        }
        let order = order_id();
        insert(&mut *tx, order, ask.user, ask.voucher).await?;
        tx.commit().await?;
        Ok(Answer::Accepted(order))
    }
}

impl Contender for OnePerUser {
    fn buy<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<Answer, RoadError>> {
        Box::pin(self.guarded(ask))
    }
}
