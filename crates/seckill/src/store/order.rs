//! Statements about `voucher_order`.

use sqlx::{PgConnection, PgExecutor};

use super::impossible;
use crate::Error;
use crate::ids::{OrderId, UserId, VoucherId};
use crate::orders::OrderState;

/// An admitted order on its way into the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub(crate) order_id: OrderId,
    pub(crate) user_id: UserId,
    pub(crate) voucher_id: VoucherId,
    pub(crate) admitted_ms: i64,
    pub(crate) traceparent: String,
}

/// What tells one row from another when an id is met twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) order_id: OrderId,
    pub(crate) user_id: UserId,
    pub(crate) voucher_id: VoucherId,
    pub(crate) state: OrderState,
}

/// A row with the title of what was bought.
#[derive(Debug, Clone)]
pub(crate) struct OrderRow {
    pub(crate) written: Written,
    pub(crate) title: String,
    pub(crate) reason: Option<String>,
    pub(crate) admitted_ms: i64,
    pub(crate) settled_ms: i64,
}

fn written(order_id: i64, user_id: i64, voucher_id: i64, state: &str) -> Result<Written, Error> {
    let wrong = |column| impossible("voucher_order", column, order_id);
    Ok(Written {
        order_id: OrderId::new(order_id).ok_or_else(|| wrong("order_id"))?,
        user_id: UserId::new(user_id).ok_or_else(|| wrong("user_id"))?,
        voucher_id: VoucherId::new(voucher_id).ok_or_else(|| wrong("voucher_id"))?,
        state: state.parse().map_err(|()| wrong("state"))?,
    })
}

/// The epochs of these vouchers, their rows locked in the order of their ids until the
/// transaction ends: a load waits for it, and it for a load.
pub(crate) async fn epoch_lock(
    on: impl PgExecutor<'_>,
    vouchers: &[i64],
) -> Result<Vec<(i64, i64)>, Error> {
    let rows = sqlx::query!(
        "select voucher_id, epoch from voucher where voucher_id = any($1) order by voucher_id for no key update",
        vouchers
    )
    .fetch_all(on)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.voucher_id, row.epoch))
        .collect())
}

/// Writes orders as confirmed; tells the ids of those that were really new.
///
/// A conflict, of the id or of the one live order per user and voucher, is left out.
pub(crate) async fn order_insert(
    on: impl PgExecutor<'_>,
    orders: &[Admitted],
    now_ms: i64,
) -> Result<Vec<i64>, Error> {
    let ids: Vec<i64> = orders.iter().map(|o| o.order_id.get()).collect();
    let users: Vec<i64> = orders.iter().map(|o| o.user_id.get()).collect();
    let vouchers: Vec<i64> = orders.iter().map(|o| o.voucher_id.get()).collect();
    let admitted: Vec<i64> = orders.iter().map(|o| o.admitted_ms).collect();
    let traces: Vec<String> = orders.iter().map(|o| o.traceparent.clone()).collect();
    Ok(sqlx::query_scalar!(
        "insert into voucher_order (order_id, user_id, voucher_id, state, admitted_ms, settled_ms, traceparent)
         select order_id, user_id, voucher_id, 'confirmed', admitted_ms, $6, traceparent
         from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[])
              as new (order_id, user_id, voucher_id, admitted_ms, traceparent)
         on conflict do nothing returning order_id",
        &ids,
        &users,
        &vouchers,
        &admitted,
        &traces,
        now_ms
    )
    .fetch_all(on)
    .await?)
}

/// Takes these units out of the vouchers' stock, in the order of their ids; the table's check refuses to go below zero.
pub(crate) async fn stock_take(
    on: impl PgExecutor<'_>,
    vouchers: &[i64],
    units: &[i64],
) -> Result<(), Error> {
    sqlx::query!(
        "update voucher set stock = stock - taken.units
         from unnest($1::bigint[], $2::bigint[]) as taken (voucher_id, units)
         where voucher.voucher_id = taken.voucher_id",
        vouchers,
        units
    )
    .execute(on)
    .await?;
    Ok(())
}

/// What stands in the database under these ids.
pub(crate) async fn order_written(
    on: impl PgExecutor<'_>,
    ids: &[i64],
) -> Result<Vec<Written>, Error> {
    let rows = sqlx::query!(
        "select order_id, user_id, voucher_id, state from voucher_order where order_id = any($1)",
        ids
    )
    .fetch_all(on)
    .await?;
    rows.into_iter()
        .map(|row| written(row.order_id, row.user_id, row.voucher_id, &row.state))
        .collect()
}

/// Writes an order as failed under its id, unless the id has a row; then tells what stands there.
pub(crate) async fn order_fail(
    on: &mut PgConnection,
    order: &Admitted,
    reason: &str,
    now_ms: i64,
) -> Result<Written, Error> {
    sqlx::query!(
        "insert into voucher_order (order_id, user_id, voucher_id, state, reason, admitted_ms, settled_ms, traceparent)
         values ($1, $2, $3, 'failed', $4, $5, $6, $7) on conflict (order_id) do nothing",
        order.order_id.get(),
        order.user_id.get(),
        order.voucher_id.get(),
        reason,
        order.admitted_ms,
        now_ms,
        order.traceparent
    )
    .execute(&mut *on)
    .await?;
    let rows = order_written(on, &[order.order_id.get()]).await?;
    rows.into_iter()
        .next()
        .ok_or_else(|| impossible("voucher_order", "order_id", order.order_id))
}

/// The order with this id, of this user.
pub(crate) async fn order_of_user(
    on: impl PgExecutor<'_>,
    user: UserId,
    id: OrderId,
) -> Result<Option<OrderRow>, Error> {
    let row = sqlx::query!(
        "select o.order_id, o.user_id, o.voucher_id, o.state, o.reason, o.admitted_ms, o.settled_ms, v.title
         from voucher_order o join voucher v using (voucher_id) where o.order_id = $1 and o.user_id = $2",
        id.get(),
        user.get()
    )
    .fetch_optional(on)
    .await?;
    row.map(|row| {
        Ok(OrderRow {
            written: written(row.order_id, row.user_id, row.voucher_id, &row.state)?,
            title: row.title,
            reason: row.reason,
            admitted_ms: row.admitted_ms,
            settled_ms: row.settled_ms,
        })
    })
    .transpose()
}

/// A user's orders below this id (all when none), newest first.
pub(crate) async fn order_page(
    on: impl PgExecutor<'_>,
    user: UserId,
    below: Option<OrderId>,
    limit: i64,
) -> Result<Vec<OrderRow>, Error> {
    let rows = sqlx::query!(
        "select o.order_id, o.user_id, o.voucher_id, o.state, o.reason, o.admitted_ms, o.settled_ms, v.title
         from voucher_order o join voucher v using (voucher_id)
         where o.user_id = $1 and o.order_id < $2 order by o.order_id desc limit $3",
        user.get(),
        below.map_or(i64::MAX, OrderId::get),
        limit
    )
    .fetch_all(on)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(OrderRow {
                written: written(row.order_id, row.user_id, row.voucher_id, &row.state)?,
                title: row.title,
                reason: row.reason,
                admitted_ms: row.admitted_ms,
                settled_ms: row.settled_ms,
            })
        })
        .collect()
}

/// How many live orders a voucher has.
pub(crate) async fn order_count(on: impl PgExecutor<'_>, voucher: VoucherId) -> Result<i64, Error> {
    let count = sqlx::query_scalar!(
        "select count(*) from voucher_order where voucher_id = $1 and state = 'confirmed'",
        voucher.get()
    )
    .fetch_one(on)
    .await?;
    Ok(count.unwrap_or(0))
}

/// A voucher's live orders as (user, order), users above this one, in their order.
pub(crate) async fn order_live(
    on: impl PgExecutor<'_>,
    voucher: VoucherId,
    above_user: i64,
    limit: i64,
) -> Result<Vec<(i64, i64)>, Error> {
    let rows = sqlx::query!(
        "select user_id, order_id from voucher_order
         where voucher_id = $1 and state = 'confirmed' and user_id > $2 order by user_id limit $3",
        voucher.get(),
        above_user,
        limit
    )
    .fetch_all(on)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.user_id, row.order_id))
        .collect())
}
