//! The reconciler's reports, the log of what operators did, and why a sale stands still.

use std::collections::HashMap;

use crate::ids::{UserId, VoucherId};
use crate::page::{Page, Paged};
use crate::store::order::order_count;
use crate::store::voucher::Voucher;
use crate::store::watch::{audit_page, report_insert, report_page, standstills};
use crate::vouchers::LiveSale;
use crate::{Error, Shop};

/// What the reconciler found about a sale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Its id; 0 before it is written.
    pub report_id: i64,
    /// When, in milliseconds.
    pub at_ms: i64,
    /// Which sale.
    pub voucher_id: VoucherId,
    /// The load that the counters belong to.
    pub epoch: i64,
    /// Live rows, counted between two readings of the counters.
    pub rows: i64,
    /// Units put on sale.
    pub total: i64,
    /// Units left.
    pub left: i64,
    /// Admitted, not yet confirmed.
    pub in_flight: i64,
    /// Dead letters.
    pub dead: i64,
    /// Acknowledged rows.
    pub acked: i64,
    /// Whether rows and counters can't both be right.
    pub drift: bool,
    /// What was done: `loaded`, `finished`, `applied`, `closed`, `released`; empty when nothing was.
    pub action: String,
}

/// Something an operator did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its id.
    pub audit_id: i64,
    /// When, in milliseconds.
    pub at_ms: i64,
    /// Who.
    pub user_id: UserId,
    /// Their name.
    pub username: String,
    /// What: `create`, `stock`, `pause`, `resume`, `end`, `replay`, `discard`.
    pub action: String,
    /// To what: `voucher 7`, `dead letter 0:1-1`.
    pub subject: String,
    /// With what result or value.
    pub detail: String,
}

/// Why a paused sale is paused. With neither an operator nor a report, it was closed and
/// loaded anew because Redis came back behind what a process had seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standstill {
    /// When an operator paused it, if one did.
    pub paused_ms: Option<i64>,
    /// Who that was.
    pub paused_by: Option<String>,
    /// When rows and counters could not both be right, since it last sold.
    pub drift_ms: Option<i64>,
    /// When it was loaded anew because Redis had lost it, since it last sold.
    pub lost_ms: Option<i64>,
}

impl Shop {
    /// A report of these figures, before anything is judged or done.
    pub(crate) fn report_of(&self, voucher: &Voucher, rows: i64, live: &LiveSale) -> Report {
        Report {
            report_id: 0,
            at_ms: self.now_ms(),
            voucher_id: voucher.voucher_id,
            epoch: live.epoch,
            rows,
            total: live.total,
            left: live.stock,
            in_flight: live.in_flight,
            dead: live.dead,
            acked: live.acked,
            drift: false,
            action: String::new(),
        }
    }

    /// Reports what was done to a sale, with its figures after it.
    pub(crate) async fn report(&self, voucher: &Voucher, action: &str) -> Result<(), Error> {
        let rows = order_count(self.pool(), voucher.voucher_id).await?;
        let Some(live) = self.live(voucher).await?.sale else {
            return Ok(());
        };
        let report = Report {
            action: action.to_owned(),
            ..self.report_of(voucher, rows, &live)
        };
        report_insert(self.pool(), &report).await
    }

    /// Of these sales those that are paused, and why each is.
    ///
    /// # Errors
    /// `Unavailable` when PostgreSQL can't be asked.
    pub async fn standstills(
        &self,
        vouchers: &[VoucherId],
    ) -> Result<HashMap<VoucherId, Standstill>, Error> {
        Ok(standstills(self.pool(), vouchers)
            .await?
            .into_iter()
            .collect())
    }

    /// The reconciler's reports, newest first, of one sale or of all.
    ///
    /// # Errors
    /// `Invalid` for a cursor that is none; `Unavailable` when PostgreSQL can't be asked.
    pub async fn reports(
        &self,
        voucher: Option<VoucherId>,
        page: &Page,
    ) -> Result<Paged<Report>, Error> {
        let reports = report_page(
            self.pool(),
            voucher,
            page.row_cursor()?,
            i64::from(page.limit) + 1,
        )
        .await?;
        Ok(Paged::cut(reports, page, |report| {
            report.report_id.to_string()
        }))
    }

    /// What operators did, newest first.
    ///
    /// # Errors
    /// As for [`Shop::reports`].
    pub async fn audit_log(&self, page: &Page) -> Result<Paged<AuditEntry>, Error> {
        let entries =
            audit_page(self.pool(), page.row_cursor()?, i64::from(page.limit) + 1).await?;
        Ok(Paged::cut(entries, page, |entry| {
            entry.audit_id.to_string()
        }))
    }
}
