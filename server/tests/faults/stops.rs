//! Processes that are told to stop in the middle of their work.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use crate::{
    stand::{Stand, figures, scaled},
    support::eventually,
};

#[tokio::test(flavor = "multi_thread")]
async fn an_orderly_stop_under_load_leaves_nothing_pending() {
    let stand = Stand::new().await;
    let times = scaled(20);
    let crowd = stand.crowd(times * 400).await;
    let sale = stand.sale(1_000_000).await;
    let mut web = stand.web().await;
    let port = web.port;
    let (mut bought, mut refused, mut closed) = (0, 0, 0);
    for _ in 0..times {
        let worker = stand.worker(&[]).await;
        let (before, over, origin) = (stand.rows(sale).await, AtomicBool::new(false), web.origin());
        let load = async {
            while !over.load(Ordering::Relaxed) {
                let wave = &crowd[bought..][..8];
                let tally = stand.buy_at(origin.clone(), sale, wave, 8).await;
                bought += wave.len();
                // "lost" is a door that is closed, or closing: no purchase is answered with a failure.
                let retried = |why: &str| tally.retried.get(why).copied().unwrap_or(0);
                (refused, closed) = (refused + retried("503"), closed + retried("lost"));
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let stops = async {
            eventually("orders are being persisted", || async {
                stand.rows(sale).await > before + 10
            })
            .await;
            // The worker goes while buyers come in, then the web process while they knock.
            assert_eq!(worker.stops().await, 0);
            assert_eq!(
                stand.pending().await,
                0,
                "what was delivered was finished and acknowledged"
            );
            assert_eq!(web.process.stops().await, 0);
            let next = stand.web_at(port, "").await;
            over.store(true, Ordering::Relaxed);
            next
        };
        ((), web) = tokio::join!(load, stops);
    }
    let worker = stand.worker(&[]).await;
    stand.drains().await;
    let record = stand.audit().await;
    assert_eq!(record.acknowledged.len(), bought);
    figures(
        "orderly stop",
        &format!(
            "{times} SIGTERMs of a worker and {times} of a web process under load: 0 entries left pending, {bought} orders, 0 lost; tries that met 503: {refused}, a closed door: {closed}"
        ),
    );
    assert_eq!(worker.stops().await, 0);
    assert_eq!(web.process.stops().await, 0);
    stand.closes().await;
}
