//! Statements about `reconcile_report` and `audit_log`.

use sqlx::PgExecutor;

use super::impossible;
use crate::Error;
use crate::ids::{UserId, VoucherId};
use crate::reports::{AuditEntry, Report, Standstill};

/// Adds a report.
pub(crate) async fn report_insert(on: impl PgExecutor<'_>, report: &Report) -> Result<(), Error> {
    sqlx::query!(
        "insert into reconcile_report
            (at_ms, voucher_id, epoch, rows_counted, total, remaining, in_flight, dead, acked, drift, action)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        report.at_ms,
        report.voucher_id.get(),
        report.epoch,
        report.rows,
        report.total,
        report.left,
        report.in_flight,
        report.dead,
        report.acked,
        report.drift,
        report.action
    )
    .execute(on)
    .await?;
    Ok(())
}

/// Reports below this id (all when none), newest first, of one voucher or of all.
pub(crate) async fn report_page(
    on: impl PgExecutor<'_>,
    voucher: Option<VoucherId>,
    below: Option<i64>,
    limit: i64,
) -> Result<Vec<Report>, Error> {
    let rows = sqlx::query!(
        "select report_id, at_ms, voucher_id, epoch, rows_counted, total, remaining, in_flight, dead, acked, drift, action
         from reconcile_report
         where report_id < $1 and ($2::bigint is null or voucher_id = $2)
         order by report_id desc limit $3",
        below.unwrap_or(i64::MAX),
        voucher.map(VoucherId::get),
        limit
    )
    .fetch_all(on)
    .await?;
    rows.into_iter()
        .map(|row| {
            let wrong = || impossible("reconcile_report", "voucher_id", row.report_id);
            Ok(Report {
                report_id: row.report_id,
                at_ms: row.at_ms,
                voucher_id: VoucherId::new(row.voucher_id).ok_or_else(wrong)?,
                epoch: row.epoch,
                rows: row.rows_counted,
                total: row.total,
                left: row.remaining,
                in_flight: row.in_flight,
                dead: row.dead,
                acked: row.acked,
                drift: row.drift,
                action: row.action,
            })
        })
        .collect()
}

/// Of these vouchers those that are paused, each with what stopped it.
///
/// A pause is written only while the sale sells, so a paused row whose newest change is no
/// pause was closed by a load. The report of that load names its epoch; the one of a drift
/// precedes it.
pub(crate) async fn standstills(
    on: impl PgExecutor<'_>,
    vouchers: &[VoucherId],
) -> Result<Vec<(VoucherId, Standstill)>, Error> {
    let ids: Vec<i64> = vouchers.iter().map(|id| id.get()).collect();
    let rows = sqlx::query!(
        r#"select voucher_id,
            case kind when 'pause' then changed_ms end as "paused_ms?",
            case kind when 'pause' then username end as "paused_by?",
            (select max(at_ms) from reconcile_report r
             where r.voucher_id = v.voucher_id and action = 'closed' and r.epoch < v.loaded_epoch
               and at_ms > coalesce(changed_ms, 0)) as "drift_ms?",
            (select max(at_ms) from reconcile_report r
             where r.voucher_id = v.voucher_id and action = 'loaded' and r.epoch = v.loaded_epoch and r.epoch > 1
               and (kind is distinct from 'pause' or at_ms > changed_ms)) as "lost_ms?"
         from voucher v left join lateral (
            select kind, username, (extract(epoch from changed_at) * 1000)::bigint as changed_ms
            from voucher_change c left join user_account on user_id = changed_by
            where c.voucher_id = v.voucher_id and kind in ('pause', 'resume') order by c.rev desc limit 1
         ) newest on true
         where voucher_id = any($1) and paused"#,
        &ids
    )
    .fetch_all(on)
    .await?;
    rows.into_iter()
        .map(|row| {
            let wrong = || impossible("voucher", "voucher_id", row.voucher_id);
            let standstill = Standstill {
                paused_ms: row.paused_ms,
                paused_by: row.paused_by,
                drift_ms: row.drift_ms,
                lost_ms: row.lost_ms,
            };
            Ok((
                VoucherId::new(row.voucher_id).ok_or_else(wrong)?,
                standstill,
            ))
        })
        .collect()
}

/// Removes reports up to this time.
pub(crate) async fn report_forget(on: impl PgExecutor<'_>, until_ms: i64) -> Result<(), Error> {
    sqlx::query!("delete from reconcile_report where at_ms <= $1", until_ms)
        .execute(on)
        .await?;
    Ok(())
}

/// Adds what an operator did.
pub(crate) async fn audit_insert(
    on: impl PgExecutor<'_>,
    at_ms: i64,
    by: UserId,
    action: &str,
    subject: &str,
    detail: &str,
) -> Result<(), Error> {
    sqlx::query!(
        "insert into audit_log (at_ms, user_id, action, subject, detail) values ($1, $2, $3, $4, $5)",
        at_ms,
        by.get(),
        action,
        subject,
        detail
    )
    .execute(on)
    .await?;
    Ok(())
}

/// What operators did, entries below this id (all when none), newest first.
pub(crate) async fn audit_page(
    on: impl PgExecutor<'_>,
    below: Option<i64>,
    limit: i64,
) -> Result<Vec<AuditEntry>, Error> {
    let rows = sqlx::query!(
        "select audit_id, at_ms, user_id, username, action, subject, detail
         from audit_log join user_account using (user_id)
         where audit_id < $1 order by audit_id desc limit $2",
        below.unwrap_or(i64::MAX),
        limit
    )
    .fetch_all(on)
    .await?;
    rows.into_iter()
        .map(|row| {
            let wrong = || impossible("audit_log", "user_id", row.audit_id);
            Ok(AuditEntry {
                audit_id: row.audit_id,
                at_ms: row.at_ms,
                user_id: UserId::new(row.user_id).ok_or_else(wrong)?,
                username: row.username,
                action: row.action,
                subject: row.subject,
                detail: row.detail,
            })
        })
        .collect()
}
