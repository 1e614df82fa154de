//! What operators watch: lanes, workers, sales, and entries under way.
//!
//! Answers come from one background snapshot, so that watching never costs the sale
//! anything; only a page deep in the list of pending entries asks Redis itself.

#![expect(
    missing_docs,
    reason = "`#[server]` makes a struct of the arguments that each function describes"
)]

use leptos::{
    prelude::server,
    server_fn::codec::{GetUrl, Json},
};
use serde::{Deserialize, Serialize};

use super::{ApiError, Listed, sale::SaleState};

/// Everything at one glance, as of `at_ms`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overview {
    /// Every lane.
    pub lanes: Vec<Lane>,
    /// Every sale that counts right now.
    pub sales: Vec<SaleFigures>,
    /// Whether Redis answers.
    pub redis: bool,
    /// Whether PostgreSQL answers.
    pub postgres: bool,
    /// Every consumer that a lane knows.
    pub workers: Vec<Worker>,
    /// When this was counted.
    pub at_ms: i64,
}

/// One lane's queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Its number.
    pub lane: u16,
    /// Entries in the stream, acknowledged ones not counted.
    pub stream_length: u64,
    /// Entries nobody has read yet; `null` when Redis cannot tell.
    pub lag: Option<u64>,
    /// Orders admitted and not yet confirmed.
    pub in_flight: u64,
    /// Entries delivered and not yet acknowledged.
    pub pending: u64,
    /// Dead letters.
    pub dead: u64,
    /// Age of the oldest pending entry.
    pub oldest_pending_ms: Option<u64>,
}

/// One sale's account: `total = left + in_flight + dead + confirmed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaleFigures {
    /// The voucher's id.
    pub voucher_id: String,
    /// Its name.
    pub title: String,
    /// How many there are in all.
    pub total: i64,
    /// Not taken.
    pub left: i64,
    /// Admitted, not yet confirmed.
    pub in_flight: i64,
    /// Given up on, waiting for an operator.
    pub dead: i64,
    /// In the database.
    pub confirmed: i64,
    /// Whether the sum holds.
    pub balanced: bool,
    /// What the sale is right now.
    pub state: SaleState,
}

/// One consumer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// The lane it serves.
    pub lane: u16,
    /// Its name.
    pub name: String,
    /// Entries it holds.
    pub pending: u64,
    /// Since when it has asked for nothing.
    pub idle_ms: u64,
    /// Whether its heartbeat is there.
    pub alive: bool,
}

/// An entry delivered to a consumer and not yet acknowledged. Ids are text as found: an
/// entry may be broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// `<lane>:<milliseconds>-<sequence>` of the stream.
    pub entry_id: String,
    /// The order it carries.
    pub order_id: String,
    /// Who ordered.
    pub user_id: String,
    /// What.
    pub voucher_id: String,
    /// Who holds it.
    pub consumer: String,
    /// For how long.
    pub idle_ms: u64,
    /// How often it was delivered.
    pub deliveries: u64,
}

/// Lanes, sales, workers and stores. For viewers.
#[server(name = GetOverview, prefix = "/api", endpoint = "admin/overview", input = GetUrl, output = Json)]
pub async fn overview() -> Result<Overview, ApiError> {
    let caller = crate::caller::Caller::from_context()?;
    caller.require_role(seckill::Role::Viewer).await?;
    let snapshot = caller.state.snapshot.borrow().clone();
    Ok(Overview::from(&snapshot.overview))
}

/// Entries under way. For viewers.
#[server(name = GetPending, prefix = "/api", endpoint = "admin/pending", input = GetUrl, output = Json)]
pub async fn pending(
    #[server(default)] lane: Option<String>,
    #[server(default)] after: Option<String>,
    #[server(default)] limit: Option<String>,
) -> Result<Listed<Pending>, ApiError> {
    let caller = crate::caller::Caller::from_context()?;
    caller.require_role(seckill::Role::Viewer).await?;
    pending_page(
        &caller.state,
        lane.as_deref(),
        after.as_deref(),
        limit.as_deref(),
    )
    .await
}

#[cfg(feature = "ssr")]
pub(crate) use ssr::{parse_lane, pending_page};

#[cfg(feature = "ssr")]
mod ssr {
    use seckill::{ids, page::Page};

    use super::{Lane, Listed, Overview, Pending, SaleFigures, Worker};
    use crate::{
        AppState,
        api::{ApiError, Code},
    };

    impl From<&seckill::Overview> for Overview {
        fn from(overview: &seckill::Overview) -> Self {
            Self {
                lanes: overview.lanes.iter().map(Lane::from).collect(),
                sales: overview.sales.iter().map(SaleFigures::from).collect(),
                redis: overview.redis,
                postgres: overview.postgres,
                workers: overview.workers.iter().map(Worker::from).collect(),
                at_ms: overview.at_ms,
            }
        }
    }

    impl From<&seckill::LaneOverview> for Lane {
        fn from(lane: &seckill::LaneOverview) -> Self {
            Self {
                lane: lane.lane.0,
                stream_length: lane.stream_length,
                lag: lane.lag,
                in_flight: lane.in_flight,
                pending: lane.pending,
                dead: lane.dead,
                oldest_pending_ms: lane.oldest_pending_ms,
            }
        }
    }

    impl From<&seckill::SaleOverview> for SaleFigures {
        fn from(sale: &seckill::SaleOverview) -> Self {
            Self {
                voucher_id: sale.voucher_id.to_string(),
                title: sale.title.clone(),
                total: sale.total,
                left: sale.left,
                in_flight: sale.in_flight,
                dead: sale.dead,
                confirmed: sale.confirmed,
                balanced: sale.balanced,
                state: sale.state.into(),
            }
        }
    }

    impl From<&seckill::Worker> for Worker {
        fn from(worker: &seckill::Worker) -> Self {
            Self {
                lane: worker.lane.0,
                name: worker.name.clone(),
                pending: worker.pending,
                idle_ms: worker.idle_ms,
                alive: worker.alive,
            }
        }
    }

    impl From<seckill::PendingEntry> for Pending {
        fn from(entry: seckill::PendingEntry) -> Self {
            Self {
                entry_id: entry.entry_id.to_string(),
                order_id: entry.order_id,
                user_id: entry.user_id,
                voucher_id: entry.voucher_id,
                consumer: entry.consumer,
                idle_ms: entry.idle_ms,
                deliveries: entry.deliveries,
            }
        }
    }

    /// One page of pending entries: from the snapshot when it holds the whole answer.
    pub(crate) async fn pending_page(
        state: &AppState,
        lane: Option<&str>,
        after: Option<&str>,
        limit: Option<&str>,
    ) -> Result<Listed<Pending>, ApiError> {
        let lane = parse_lane(lane)?;
        let page = Page::parse(after, limit)?;
        let snapshot = state.snapshot.borrow().clone();
        let all = &snapshot.pending;
        let fits = all.len() <= page.limit.try_into().unwrap_or(usize::MAX);
        if lane.is_none() && page.after.is_none() && fits {
            let items = all.iter().cloned().map(Pending::from).collect();
            return Ok(Listed { items, next: None });
        }
        Ok(Listed::from_paged(
            state.shop.pending(lane, &page).await?,
            Pending::from,
        ))
    }

    /// The lane called `text`; none when nothing was asked for.
    pub(crate) fn parse_lane(text: Option<&str>) -> Result<Option<ids::Lane>, ApiError> {
        match text.map(str::trim).filter(|text| !text.is_empty()) {
            Some(text) => text
                .parse()
                .map(Some)
                .map_err(|_| ApiError::new(Code::Invalid, "lane is not a lane's number.")),
            None => Ok(None),
        }
    }
}
