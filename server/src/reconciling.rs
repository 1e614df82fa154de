//! The loop around the reconciler, which finishes what a crash left half done
//! and looks whether every sale still adds up.
//!
//! Every process runs this loop; the lease inside [`Reconciler::step`] lets one
//! of them work at a time.

use std::{sync::Arc, time::Duration};

use seckill::{Reconciled, Reconciler, Shop};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::{backoff::Backoff, metrics::Metrics};

/// Does a round each `every` until `stop`.
pub async fn run(shop: Shop, every: Duration, metrics: Arc<Metrics>, stop: CancellationToken) {
    let mut reconciler = Reconciler::new(&shop);
    let mut backoff = Backoff::new();
    let mut drifting = Vec::new();
    while !stop.is_cancelled() {
        match reconciler.step().await {
            Ok(round) => {
                if backoff.succeeded() {
                    info!("the reconciler works again");
                }
                if !round.skipped {
                    metrics.reconciled(&round);
                    log(&round, &drifting);
                    drifting = round.drift;
                }
                if tokio::time::timeout(every, stop.cancelled()).await.is_ok() {
                    return;
                }
            }
            Err(error) => {
                if backoff.failed() {
                    warn!(%error, "the reconciler cannot work now; it keeps trying");
                }
                backoff.wait(&stop).await;
            }
        }
    }
}

/// Says what changed; a drift that lasts is said once.
fn log(round: &Reconciled, drifting: &[seckill::ids::VoucherId]) {
    for voucher_id in &round.loaded {
        info!(%voucher_id, "a sale was loaded into Redis");
    }
    for voucher_id in &round.finished {
        info!(%voucher_id, "a load that was interrupted is finished");
    }
    if round.applied > 0 {
        info!(
            changes = round.applied,
            "changes of sales were applied that a crash had left"
        );
    }
    if round.restored > 0 {
        warn!(
            entries = round.restored,
            "entries lost from the stream were written again from their marks"
        );
    }
    for voucher_id in round.drift.iter().filter(|id| !drifting.contains(id)) {
        error!(%voucher_id, "a sale does not add up: total is not left + in flight + dead + confirmed");
    }
    for voucher_id in drifting.iter().filter(|id| !round.drift.contains(id)) {
        info!(%voucher_id, "a sale adds up again");
    }
}
