//! The consumers of this process: one for each lane that PostgreSQL knows.
//!
//! [`seckill::Consumer::step`] does a round and returns what happened; the loop
//! here decides when the next one is. A fault is logged when it begins and when
//! it ends, not each time it is met again. A stop is looked at only between two
//! rounds, so a batch that was read is always finished and acknowledged.

use std::{collections::HashMap, sync::Arc, time::Duration};

use seckill::{Consumer, ConsumerConfig, Shop, Step, ids::Lane};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::{backoff::Backoff, metrics::Metrics};

/// Time between two looks for lanes that are new.
const LOOK_FOR_LANES: Duration = Duration::from_secs(3);

/// Runs a consumer for each lane until `stop`; returns when all have let go.
pub async fn run(
    shop: Shop,
    config: ConsumerConfig,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) {
    let process = process_name();
    let mut running: HashMap<Lane, tokio::task::AbortHandle> = HashMap::new();
    let mut tasks = JoinSet::new();
    loop {
        // PostgreSQL being away keeps the lanes that are known already.
        for lane in shop.lanes().await.unwrap_or_default() {
            // A consumer that is no longer there ended by a panic; its lane gets another.
            if running
                .get(&lane)
                .is_none_or(tokio::task::AbortHandle::is_finished)
            {
                let name = format!("{process}-{lane}");
                let consumer = serve(
                    shop.clone(),
                    lane,
                    name,
                    config.clone(),
                    metrics.clone(),
                    stop.clone(),
                );
                running.insert(lane, tasks.spawn(consumer));
            }
        }
        while let Some(ended) = tasks.try_join_next() {
            report(ended);
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(LOOK_FOR_LANES) => {}
        }
    }
    while let Some(ended) = tasks.join_next().await {
        report(ended);
    }
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(panic) = ended {
        error!(error = %panic, "a consumer ended by a panic");
    }
}

/// Serves one lane: opens a consumer, and does rounds until the stop.
async fn serve(
    shop: Shop,
    lane: Lane,
    name: String,
    config: ConsumerConfig,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) {
    let mut backoff = Backoff::new();
    let mut consumer = loop {
        match Consumer::open(&shop, lane, &name, config.clone()).await {
            Ok(consumer) => break consumer,
            Err(error) => {
                if backoff.failed() {
                    warn!(%lane, %error, "a consumer cannot start; it keeps trying");
                }
            }
        }
        if backoff.wait(&stop).await {
            return;
        }
    };
    info!(%lane, consumer = %name, "a consumer is reading");
    while !stop.is_cancelled() {
        let paused = match consumer.step().await {
            Ok(step) => {
                log(lane, &step);
                metrics.consumed(&step);
                if step.waited && backoff.failed() {
                    warn!(%lane, consumer = %name, "orders cannot be persisted now; they wait in the queue");
                }
                step.waited
            }
            Err(error) => {
                if backoff.failed() {
                    warn!(%lane, consumer = %name, %error, "the queue cannot be read now; it is tried again");
                }
                true
            }
        };
        if paused {
            backoff.wait(&stop).await;
        } else if backoff.succeeded() {
            info!(%lane, consumer = %name, "the queue is being served again");
        }
    }
    consumer.close().await;
    info!(%lane, consumer = %name, "a consumer has let go");
}

/// Says which request each order came from; what went wrong, the domain says itself.
fn log(lane: Lane, step: &Step) {
    for order in &step.persisted {
        debug!(%lane, order_id = %order.order_id, request_id = request_id(&order.trace), "an order was persisted");
    }
}

/// The trace id inside a `traceparent`: the id of the request that bought.
fn request_id(trace: &str) -> &str {
    trace.split('-').nth(1).unwrap_or_default()
}

/// `<host>-<pid>-<random>`: names a process, also after its pid was used again.
fn process_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host
        .trim()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(32)
        .collect();
    let host = if host.is_empty() { "host" } else { &host };
    format!(
        "{host}-{}-{:08x}",
        std::process::id(),
        rand::random::<u32>()
    )
}
