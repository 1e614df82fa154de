//! The one background look at the whole shop that every console page shows.
//!
//! However many operators watch, Redis and PostgreSQL are asked once a second,
//! here, and never by a page. [`step`] looks; [`run`] waits and publishes.

use std::{sync::Arc, time::Duration};

use app::Snapshot;
use seckill::{Shop, page::Page};
use tokio::{sync::watch, time::MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// Pending entries and dead letters kept in a snapshot: beyond this the pages
/// ask for more themselves.
const KEPT: usize = 1000;

const EVERY: Duration = Duration::from_secs(1);

/// Takes a snapshot each second until `stop`.
pub async fn run(
    shop: Shop,
    metrics: Arc<Metrics>,
    publish: watch::Sender<Arc<Snapshot>>,
    stop: CancellationToken,
) {
    let mut tick = tokio::time::interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = tick.tick() => {}
        }
        let last = Arc::clone(&publish.borrow());
        let snapshot = step(&shop, &last).await;
        metrics.observed(&snapshot.overview);
        // A worker has nobody who reads it, and wants the metrics all the same.
        publish.send_replace(Arc::new(snapshot));
    }
}

/// Looks once. A list that cannot be read keeps what `last` showed: the
/// overview says beside it that Redis is away.
pub async fn step(shop: &Shop, last: &Snapshot) -> Snapshot {
    let overview = shop.overview().await;
    let (pending, dead) = if overview.redis {
        (
            first(|page| async move { shop.pending(None, &page).await }).await,
            first(|page| async move { shop.dead_letters(None, &page).await }).await,
        )
    } else {
        (None, None)
    };
    Snapshot {
        overview,
        pending: pending.unwrap_or_else(|| last.pending.clone()),
        dead: dead.unwrap_or_else(|| last.dead.clone()),
    }
}

/// The first [`KEPT`] items of a paged list, or nothing if it cannot be read.
async fn first<T, F, R>(mut read: F) -> Option<Vec<T>>
where
    F: FnMut(Page) -> R,
    R: Future<Output = Result<seckill::page::Paged<T>, seckill::Error>>,
{
    let mut items = Vec::new();
    let mut after = None;
    while items.len() < KEPT {
        let page = read(Page { after, limit: 200 }).await.ok()?;
        items.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Some(items)
}
