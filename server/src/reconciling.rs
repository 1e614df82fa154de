//! The loop around the reconciler, which finishes what a crash left half done
//! and looks whether every sale still adds up.
//!
//! Every process runs this loop; the lock inside [`Reconciler::step`] lets one
//! of them work at a time, and the others wait for their turn in line.

use std::{sync::Arc, time::Duration};

use seckill::{Reconciled, Reconciler, Shop};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

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
                    drifting.clone_from(&round.drift);
                }
                if round.skipped {
                    wait_for_turn(&mut reconciler, every, &stop).await;
                } else if tokio::time::timeout(every, stop.cancelled()).await.is_ok() {
                    break;
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
    // Another process need not wait for the lease to end.
    reconciler.close().await;
}

/// Stands in line until the process that works now is gone, or `every` is over.
async fn wait_for_turn(reconciler: &mut Reconciler, every: Duration, stop: &CancellationToken) {
    let turn = tokio::select! {
        () = stop.cancelled() => return,
        turn = reconciler.turn(every) => turn,
    };
    if let Err(error) = turn {
        // The next step asks Redis as well, and says so.
        debug!(%error, "no turn can be waited for now");
        // A shop that is away is not asked without a pause.
        let _ = tokio::time::timeout(every, stop.cancelled()).await;
    }
}

/// Says what was put right; what is wrong, the domain says with its figures.
fn log(round: &Reconciled, drifting: &[seckill::ids::VoucherId]) {
    for voucher_id in &round.finished {
        info!(%voucher_id, "a load that was interrupted is finished");
    }
    if round.applied > 0 {
        info!(
            changes = round.applied,
            "changes of sales were applied that a crash had left"
        );
    }
    for voucher_id in drifting.iter().filter(|id| !round.drift.contains(id)) {
        info!(%voucher_id, "a sale adds up again");
    }
}
