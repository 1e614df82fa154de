//! Writing admitted orders to PostgreSQL: one transaction for a batch.
//!
//! The vouchers' rows are locked first, so that a load (which locks them too) comes before or
//! after and never between; an order is written only under the epoch that its mark names.
//! What conflicts is compared: an order met twice is confirmed, anything else is rejected.

use std::collections::BTreeMap;

use sqlx::{Connection, PgConnection};

use crate::Error;
use crate::orders::OrderState;
use crate::store::order::{Admitted, Written, epoch_lock, order_insert, order_written, stock_take};

/// An order with the epoch that its mark names.
#[derive(Debug, Clone)]
pub(crate) struct Due {
    pub(crate) order: Admitted,
    pub(crate) epoch: i64,
}

/// What became of each order of a batch, by its index.
#[derive(Debug, Default)]
pub(crate) struct Confirmed {
    /// In the database now, or since an earlier try.
    pub(crate) confirmed: Vec<usize>,
    /// Of another epoch: the mark has to be read again.
    pub(crate) let_go: Vec<usize>,
    /// Refused by the database's own rules, with the reason.
    pub(crate) rejected: Vec<(usize, String)>,
}

/// Writes a batch. An error means that nothing is known to be written.
pub(crate) async fn confirm(
    on: &mut PgConnection,
    batch: &[Due],
    now_ms: i64,
) -> Result<Confirmed, Error> {
    let mut tx = on.begin().await?;
    let mut result = Confirmed::default();
    let mut vouchers: Vec<i64> = batch.iter().map(|due| due.order.voucher_id.get()).collect();
    vouchers.sort_unstable();
    vouchers.dedup();
    let epochs: BTreeMap<i64, i64> = epoch_lock(&mut *tx, &vouchers).await?.into_iter().collect();

    let mut ready = Vec::with_capacity(batch.len());
    for (i, due) in batch.iter().enumerate() {
        match epochs.get(&due.order.voucher_id.get()) {
            None => result.rejected.push((i, "there is no such voucher".into())),
            Some(epoch) if *epoch != due.epoch => result.let_go.push(i),
            Some(_) => ready.push(i),
        }
    }
    // In the order of their ids: two workers meet the same rows in the same order.
    ready.sort_unstable_by_key(|i| batch[*i].order.order_id);
    let orders: Vec<Admitted> = ready.iter().map(|i| batch[*i].order.clone()).collect();
    if orders.is_empty() {
        tx.rollback().await?;
        return Ok(result);
    }
    let new = order_insert(&mut *tx, &orders, now_ms).await?;
    crate::fail_point("confirm-in-transaction");

    let mut taken: BTreeMap<i64, i64> = BTreeMap::new();
    let mut met: Vec<usize> = Vec::new();
    for i in ready {
        let order = &batch[i].order;
        if new.contains(&order.order_id.get()) {
            *taken.entry(order.voucher_id.get()).or_default() += 1;
            result.confirmed.push(i);
        } else {
            met.push(i);
        }
    }
    if !met.is_empty() {
        let ids: Vec<i64> = met.iter().map(|i| batch[*i].order.order_id.get()).collect();
        let rows = order_written(&mut *tx, &ids).await?;
        for i in met {
            let order = &batch[i].order;
            match compare(
                order,
                rows.iter().find(|row| row.order_id == order.order_id),
            ) {
                None => result.confirmed.push(i),
                Some(reason) => result.rejected.push((i, reason.into())),
            }
        }
    }
    let (ids, units): (Vec<i64>, Vec<i64>) = taken.into_iter().unzip();
    stock_take(&mut *tx, &ids, &units).await?;
    crate::fail_point("confirm-before-commit");
    tx.commit().await?;
    Ok(result)
}

/// Why an order that conflicts can't be confirmed; none when it is this very order.
fn compare(order: &Admitted, row: Option<&Written>) -> Option<&'static str> {
    match row {
        None => Some("the user holds another order of this voucher"),
        Some(row) if row.user_id != order.user_id || row.voucher_id != order.voucher_id => {
            tracing::error!(order_id = %order.order_id, "an order id stands for another order in the database");
            Some("the order id belongs to another order")
        }
        Some(row) if row.state == OrderState::Confirmed => None,
        Some(_) => Some("the order was settled as failed"),
    }
}
