//! Statements about `voucher` and `voucher_change`.

use sqlx::PgExecutor;

use super::impossible;
use crate::Error;
use crate::change::{Change, ChangeKind};
use crate::ids::{Lane, UserId, VoucherId};
use crate::vouchers::NewVoucher;

/// A row of `voucher`.
#[derive(Debug, Clone)]
pub(crate) struct Voucher {
    pub(crate) voucher_id: VoucherId,
    pub(crate) lane: Lane,
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) rules: String,
    pub(crate) pay_cents: i64,
    pub(crate) value_cents: i64,
    pub(crate) total: i64,
    pub(crate) stock: i64,
    pub(crate) begin_ms: i64,
    pub(crate) end_ms: i64,
    pub(crate) epoch: i64,
    pub(crate) loaded_epoch: i64,
    pub(crate) rev: i64,
    pub(crate) paused: bool,
}

/// The columns as PostgreSQL has them.
struct Row {
    voucher_id: i64,
    lane: i32,
    title: String,
    subtitle: String,
    rules: String,
    pay_cents: i64,
    value_cents: i64,
    total: i64,
    stock: i64,
    begin_ms: i64,
    end_ms: i64,
    epoch: i64,
    loaded_epoch: i64,
    rev: i64,
    paused: bool,
}

impl TryFrom<Row> for Voucher {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let id = row.voucher_id;
        Ok(Self {
            voucher_id: VoucherId::new(id)
                .ok_or_else(|| impossible("voucher", "voucher_id", id))?,
            lane: Lane(u16::try_from(row.lane).map_err(|_| impossible("voucher", "lane", id))?),
            title: row.title,
            subtitle: row.subtitle,
            rules: row.rules,
            pay_cents: row.pay_cents,
            value_cents: row.value_cents,
            total: row.total,
            stock: row.stock,
            begin_ms: row.begin_ms,
            end_ms: row.end_ms,
            epoch: row.epoch,
            loaded_epoch: row.loaded_epoch,
            rev: row.rev,
            paused: row.paused,
        })
    }
}

/// A new voucher.
pub(crate) async fn voucher_insert(
    on: impl PgExecutor<'_>,
    lane_count: u16,
    by: UserId,
    new: &NewVoucher,
) -> Result<VoucherId, Error> {
    // Sales made one after the other meet different lanes.
    let row = sqlx::query!(
        "insert into voucher (lane, title, subtitle, rules, pay_cents, value_cents, total, stock, begin_ms, end_ms, created_by)
         select ((select count(*) from voucher) % $1::integer)::integer, $2, $3, $4, $5, $6, $7, $7, $8, $9, $10
         returning voucher_id",
        i32::from(lane_count.max(1)),
        new.title,
        new.subtitle,
        new.rules,
        new.pay_cents,
        new.value_cents,
        new.stock,
        new.begin_ms,
        new.end_ms,
        by.get()
    )
    .fetch_one(on)
    .await?;
    VoucherId::new(row.voucher_id)
        .ok_or_else(|| impossible("voucher", "voucher_id", row.voucher_id))
}

/// The voucher with this id.
pub(crate) async fn voucher_by_id(
    on: impl PgExecutor<'_>,
    id: VoucherId,
) -> Result<Option<Voucher>, Error> {
    sqlx::query_as!(
        Row,
        "select voucher_id, lane, title, subtitle, rules, pay_cents, value_cents, total, stock, begin_ms, end_ms,
                epoch, loaded_epoch, rev, paused
         from voucher where voucher_id = $1",
        id.get()
    )
    .fetch_optional(on)
    .await?
    .map(Voucher::try_from)
    .transpose()
}

/// The voucher with this id, its row locked until the transaction ends.
pub(crate) async fn voucher_lock(
    on: impl PgExecutor<'_>,
    id: VoucherId,
) -> Result<Option<Voucher>, Error> {
    sqlx::query_as!(
        Row,
        "select voucher_id, lane, title, subtitle, rules, pay_cents, value_cents, total, stock, begin_ms, end_ms,
                epoch, loaded_epoch, rev, paused
         from voucher where voucher_id = $1 for no key update",
        id.get()
    )
    .fetch_optional(on)
    .await?
    .map(Voucher::try_from)
    .transpose()
}

/// Vouchers below this id (all when none), newest first.
pub(crate) async fn voucher_page(
    on: impl PgExecutor<'_>,
    below: Option<VoucherId>,
    limit: i64,
) -> Result<Vec<Voucher>, Error> {
    sqlx::query_as!(
        Row,
        "select voucher_id, lane, title, subtitle, rules, pay_cents, value_cents, total, stock, begin_ms, end_ms,
                epoch, loaded_epoch, rev, paused
         from voucher where voucher_id < $1 order by voucher_id desc limit $2",
        below.map_or(i64::MAX, VoucherId::get),
        limit
    )
    .fetch_all(on)
    .await?
    .into_iter()
    .map(Voucher::try_from)
    .collect()
}

/// Vouchers whose sale ends, or ended, after this time, or whose load was not completed: those that Redis has to hold.
pub(crate) async fn voucher_held(
    on: impl PgExecutor<'_>,
    end_after_ms: i64,
) -> Result<Vec<Voucher>, Error> {
    sqlx::query_as!(
        Row,
        "select voucher_id, lane, title, subtitle, rules, pay_cents, value_cents, total, stock, begin_ms, end_ms,
                epoch, loaded_epoch, rev, paused
         from voucher where end_ms > $1 or epoch <> loaded_epoch order by voucher_id",
        end_after_ms
    )
    .fetch_all(on)
    .await?
    .into_iter()
    .map(Voucher::try_from)
    .collect()
}

/// Vouchers whose sale ended before this time and that Redis may still hold.
pub(crate) async fn voucher_releasable(
    on: impl PgExecutor<'_>,
    end_before_ms: i64,
) -> Result<Vec<Voucher>, Error> {
    sqlx::query_as!(
        Row,
        "select voucher_id, lane, title, subtitle, rules, pay_cents, value_cents, total, stock, begin_ms, end_ms,
                epoch, loaded_epoch, rev, paused
         from voucher where end_ms <= $1 and not released order by voucher_id limit 100",
        end_before_ms
    )
    .fetch_all(on)
    .await?
    .into_iter()
    .map(Voucher::try_from)
    .collect()
}

/// Notes that Redis does not hold a sale any more.
pub(crate) async fn voucher_released(on: impl PgExecutor<'_>, id: VoucherId) -> Result<(), Error> {
    sqlx::query!(
        "update voucher set released = true where voucher_id = $1",
        id.get()
    )
    .execute(on)
    .await?;
    Ok(())
}

/// The lanes that vouchers belong to.
pub(crate) async fn voucher_lanes(on: impl PgExecutor<'_>) -> Result<Vec<Lane>, Error> {
    let rows = sqlx::query_scalar!("select distinct lane from voucher order by lane")
        .fetch_all(on)
        .await?;
    let lane = |number: i32| {
        u16::try_from(number)
            .map(Lane)
            .map_err(|_| impossible("voucher", "lane", number))
    };
    rows.into_iter().map(lane).collect()
}

/// Takes a new epoch for a load attempt.
pub(crate) async fn voucher_take_epoch(
    on: impl PgExecutor<'_>,
    id: VoucherId,
) -> Result<Option<i64>, Error> {
    Ok(sqlx::query_scalar!(
        "update voucher set epoch = epoch + 1 where voucher_id = $1 returning epoch",
        id.get()
    )
    .fetch_optional(on)
    .await?)
}

/// Completes a load attempt, if it is still the newest; a sale that was loaded before comes back paused.
pub(crate) async fn voucher_loaded(
    on: impl PgExecutor<'_>,
    id: VoucherId,
    epoch: i64,
) -> Result<bool, Error> {
    let done = sqlx::query!(
        "update voucher set loaded_epoch = $2, paused = paused or loaded_epoch > 0, released = false
         where voucher_id = $1 and epoch = $2",
        id.get(),
        epoch
    )
    .execute(on)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Writes the next change of a sale together with what it changes in the row, which the caller has locked.
pub(crate) async fn change_insert(
    on: &mut sqlx::PgConnection,
    id: VoucherId,
    change: Change,
    request_id: Option<&str>,
    by: UserId,
) -> Result<i64, Error> {
    let rev = sqlx::query_scalar!(
        "update voucher set
            rev = rev + 1,
            total = total + case $2 when 'stock' then $3::bigint else 0 end,
            stock = stock + case $2 when 'stock' then $3::bigint else 0 end,
            end_ms = case $2 when 'end' then $3::bigint else end_ms end,
            paused = case $2 when 'pause' then true when 'resume' then false else paused end
         where voucher_id = $1 returning rev",
        id.get(),
        change.kind.as_str(),
        change.value
    )
    .fetch_one(&mut *on)
    .await?;
    sqlx::query!(
        "insert into voucher_change (voucher_id, rev, kind, value, request_id, changed_by) values ($1, $2, $3, $4, $5, $6)",
        id.get(),
        rev,
        change.kind.as_str(),
        change.value,
        request_id,
        by.get()
    )
    .execute(on)
    .await?;
    Ok(rev)
}

/// The change that this request made, if it was made.
pub(crate) async fn change_by_request(
    on: impl PgExecutor<'_>,
    id: VoucherId,
    request_id: &str,
) -> Result<Option<Change>, Error> {
    let row = sqlx::query!(
        "select kind, value from voucher_change where voucher_id = $1 and request_id = $2",
        id.get(),
        request_id
    )
    .fetch_optional(on)
    .await?;
    row.map(|row| change(id, &row.kind, row.value)).transpose()
}

/// The changes after this rev, in order.
pub(crate) async fn change_after(
    on: impl PgExecutor<'_>,
    id: VoucherId,
    rev: i64,
) -> Result<Vec<(i64, Change)>, Error> {
    let rows = sqlx::query!(
        "select rev, kind, value from voucher_change where voucher_id = $1 and rev > $2 order by rev",
        id.get(),
        rev
    )
    .fetch_all(on)
    .await?;
    rows.into_iter()
        .map(|row| Ok((row.rev, change(id, &row.kind, row.value)?)))
        .collect()
}

fn change(id: VoucherId, kind: &str, value: i64) -> Result<Change, Error> {
    let kind: ChangeKind = kind
        .parse()
        .map_err(|()| impossible("voucher_change", "kind", id))?;
    Ok(Change { kind, value })
}
