//! Workers that are killed at each place between two steps.

use futures::future::join_all;

use crate::stand::{Stand, figures, is_over, kills_itself, scaled};

/// Every place on an order's way from the queue to its acknowledgement, and how many times it
/// may be passed before the kill.
const POINTS: [(&str, u32); 7] = [
    ("consumer-after-read", 0),
    ("consumer-after-claim", 0),
    ("consumer-before-alone", 0),
    ("confirm-in-transaction", 2),
    ("confirm-before-commit", 2),
    ("consumer-after-commit", 2),
    ("consumer-after-ack", 2),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_at_each_fail_point_loses_and_doubles_nothing() {
    let stands = 3;
    let rounds = scaled(15).div_ceil(stands);
    let told = join_all((0..stands).map(|_| tokio::spawn(killed_round_and_round(rounds)))).await;
    let acknowledged: usize = told.into_iter().map(Result::unwrap).sum();
    let kills = stands * rounds * u32::try_from(POINTS.len()).unwrap();
    assert!(kills >= 100);
    figures(
        "worker SIGKILL",
        &format!(
            "{kills} kills, {} at each of {} places: {acknowledged} acknowledged ids, 0 lost, 0 doubled, 0 dead",
            stands * rounds,
            POINTS.len()
        ),
    );
}

async fn killed_round_and_round(rounds: u32) -> usize {
    let stand = Stand::new().await;
    let web = stand.web().await;
    let crowd = stand.crowd(4_000).await;
    let sale = stand.sale(100_000).await;
    let mut next = 0;
    for _ in 0..rounds {
        for (point, most) in POINTS {
            let passed = rand::random_range(0..=most);
            let points = format!("{point}={passed}*off->return(kill)");
            let mut worker = stand.worker_with(&points, &[]);
            // The load goes on until the place was reached.
            while !is_over(worker.pid()) {
                assert!(next < crowd.len(), "{point} is not reached");
                let wave = &crowd[next..][..8];
                next += wave.len();
                stand.buy(&web, sale, wave, 4).await;
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
            kills_itself(&mut worker).await;
        }
        // An order may have been in four of the deaths, one less than it takes to be blamed.
        let worker = stand.worker(&[]).await;
        stand.drains().await;
        assert_eq!(worker.stops().await, 0);
    }
    assert_eq!(stand.dead().await, 0);
    let record = stand.audit().await;
    assert_eq!(record.acknowledged.len(), next);
    assert_eq!(stand.rows(sale).await, i64::try_from(next).unwrap());
    stand.closes().await;
    next
}
