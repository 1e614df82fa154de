//! What the system says about itself and what people did to it: reports and audit log.

#![expect(
    missing_docs,
    reason = "`#[server]` makes a struct of the arguments that each function describes"
)]

use leptos::{
    prelude::server,
    server_fn::codec::{GetUrl, Json},
};
use serde::{Deserialize, Serialize};

use super::{ApiError, Listed};

/// What the reconciler found about a sale: rows in PostgreSQL against counters in Redis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Its id.
    pub report_id: String,
    /// When.
    pub at_ms: i64,
    /// Which sale.
    pub voucher_id: String,
    /// The load that the counters belong to.
    pub epoch: i64,
    /// Live orders in PostgreSQL.
    pub rows: i64,
    /// How many there are in all.
    pub total: i64,
    /// Not taken.
    pub left: i64,
    /// Admitted, not yet confirmed.
    pub in_flight: i64,
    /// Given up on, waiting for an operator.
    pub dead: i64,
    /// Orders that Redis knows to be in the database.
    pub confirmed: i64,
    /// Whether rows and counters cannot both be right.
    pub drift: bool,
    /// What was done: `loaded`, `finished`, `applied`, `closed`; empty when nothing was.
    pub action: String,
}

/// Something an operator did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Its id.
    pub audit_id: String,
    /// When.
    pub at_ms: i64,
    /// Who.
    pub user_id: String,
    /// Their name.
    pub username: String,
    /// What: `create`, `stock`, `pause`, `resume`, `end`, `replay`, `discard`.
    pub action: String,
    /// To what: `voucher 7`, `dead letter 0:1-1`.
    pub subject: String,
    /// With what value or result.
    pub detail: String,
}

/// The reconciler's reports, newest first, of one sale or of all. For viewers.
#[server(name = GetReports, prefix = "/api", endpoint = "admin/reports", input = GetUrl, output = Json)]
pub async fn reports(
    #[server(default)] voucher_id: Option<String>,
    #[server(default)] after: Option<String>,
    #[server(default)] limit: Option<String>,
) -> Result<Listed<Report>, ApiError> {
    let caller = crate::caller::Caller::from_context()?;
    caller.require_role(seckill::Role::Viewer).await?;
    let page = seckill::page::Page::parse(after.as_deref(), limit.as_deref())?;
    report_page(&caller.state, voucher_id.as_deref(), &page).await
}

/// What operators did, newest first. For viewers.
#[server(name = GetAudit, prefix = "/api", endpoint = "admin/audit", input = GetUrl, output = Json)]
pub async fn audit(
    #[server(default)] after: Option<String>,
    #[server(default)] limit: Option<String>,
) -> Result<Listed<AuditEntry>, ApiError> {
    let caller = crate::caller::Caller::from_context()?;
    caller.require_role(seckill::Role::Viewer).await?;
    let page = seckill::page::Page::parse(after.as_deref(), limit.as_deref())?;
    audit_page(&caller.state, &page).await
}

#[cfg(feature = "ssr")]
pub(crate) use ssr::{audit_page, report_page};

#[cfg(feature = "ssr")]
mod ssr {
    use seckill::page::Page;

    use super::{AuditEntry, Listed, Report};
    use crate::{AppState, api::ApiError, caller::parse_id};

    impl From<seckill::Report> for Report {
        fn from(report: seckill::Report) -> Self {
            Self {
                report_id: report.report_id.to_string(),
                at_ms: report.at_ms,
                voucher_id: report.voucher_id.to_string(),
                epoch: report.epoch,
                rows: report.rows,
                total: report.total,
                left: report.left,
                in_flight: report.in_flight,
                dead: report.dead,
                confirmed: report.acked,
                drift: report.drift,
                action: report.action,
            }
        }
    }

    impl From<seckill::AuditEntry> for AuditEntry {
        fn from(entry: seckill::AuditEntry) -> Self {
            Self {
                audit_id: entry.audit_id.to_string(),
                at_ms: entry.at_ms,
                user_id: entry.user_id.to_string(),
                username: entry.username,
                action: entry.action,
                subject: entry.subject,
                detail: entry.detail,
            }
        }
    }

    /// One page of reports; of one voucher when `voucher_id` names one.
    pub(crate) async fn report_page(
        state: &AppState,
        voucher_id: Option<&str>,
        page: &Page,
    ) -> Result<Listed<Report>, ApiError> {
        let voucher = voucher_id
            .filter(|text| !text.trim().is_empty())
            .map(|text| parse_id("voucher_id", text))
            .transpose()?;
        let reports = state.shop.reports(voucher, page).await?;
        Ok(Listed::from_paged(reports, Report::from))
    }

    /// One page of the audit log.
    pub(crate) async fn audit_page(
        state: &AppState,
        page: &Page,
    ) -> Result<Listed<AuditEntry>, ApiError> {
        Ok(Listed::from_paged(
            state.shop.audit_log(page).await?,
            AuditEntry::from,
        ))
    }
}
