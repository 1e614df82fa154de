//! The stock counted in the database: without a guard, and with the three optimistic ones.
//!
//! None of them asks whether the user has an order already.

use futures::future::BoxFuture;
use sqlx::PgPool;

use crate::road::stores::{Scene, insert, order_id, postgres};
use crate::road::{Answer, Ask, Contender, Fault, RoadError};

/// What the decrement compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Nothing.
    None,
    /// The version that was read.
    Version,
    /// The stock that was read.
    SameStock,
    /// Only that something is left.
    AboveZero,
}

pub(crate) struct Counted {
    pool: PgPool,
    guard: Guard,
}

impl Counted {
    pub(crate) async fn open(scene: &Scene, guard: Guard) -> Result<Self, RoadError> {
        let pool = postgres(&scene.database_url, 40).await?;
        Ok(Self { pool, guard })
    }

    async fn take(&self, ask: &Ask) -> Result<Answer, RoadError> {
        let (stock, version): (i64, i64) =
            sqlx::query_as("select stock, version from voucher where voucher_id = $1")
                .bind(ask.voucher)
                .fetch_one(&self.pool)
                .await?;
        if stock <= 0 {
            return Ok(Answer::SoldOut);
        }
        let (statement, compared) = match self.guard {
            Guard::None => (
                "update voucher set stock = stock - 1 where voucher_id = $1 and $2 = $2",
                0,
            ),
            Guard::Version => (
                "update voucher set stock = stock - 1, version = version + 1 where voucher_id = $1 and version = $2",
                version,
            ),
            Guard::SameStock => (
                "update voucher set stock = stock - 1 where voucher_id = $1 and stock = $2",
                stock,
            ),
            Guard::AboveZero => (
                "update voucher set stock = stock - 1 where voucher_id = $1 and stock > $2",
                0,
            ),
        };
        let mut tx = self.pool.begin().await?;
        let taken = sqlx::query(statement)
            .bind(ask.voucher)
            .bind(compared)
            .execute(&mut *tx)
            .await?
            .rows_affected();
        if taken == 0 {
            tx.rollback().await?;
            // Above zero fails only when nothing is left.
            return Ok(if self.guard == Guard::AboveZero {
                Answer::SoldOut
            } else {
                Answer::Conflict
            });
        }
        ask.at(Fault::Crash).await;
        let order = order_id();
        insert(&mut *tx, order, ask.user, ask.voucher).await?;
        tx.commit().await?;
        Ok(Answer::Accepted(order))
    }
}

impl Contender for Counted {
    fn buy<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<Answer, RoadError>> {
        Box::pin(self.take(ask))
    }
}
