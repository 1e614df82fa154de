//! Workers that stop beyond the claim time and go on as if nothing had happened.

use futures::future::join_all;

use crate::{
    stand::{Stand, figures, scaled, stops_itself},
    support::eventually,
};

/// Where a worker stops; the last two lie inside its transaction, which keeps the sale's row.
const POINTS: [&str; 5] = [
    "consumer-after-read",
    "consumer-after-claim",
    "consumer-after-commit",
    "confirm-in-transaction",
    "confirm-before-commit",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_late_worker_writes_nothing_twice() {
    let stands = 2;
    let rounds = scaled(4).div_ceil(stands);
    let told = join_all((0..stands).map(|_| tokio::spawn(late_round_and_round(rounds)))).await;
    let orders: usize = told.into_iter().map(Result::unwrap).sum();
    let times = stands * rounds * u32::try_from(POINTS.len()).unwrap();
    figures(
        "late worker",
        &format!(
            "{times} times SIGSTOP, claimed by another, SIGCONT: {orders} orders, one row each"
        ),
    );
}

async fn late_round_and_round(rounds: u32) -> usize {
    let stand = Stand::new().await;
    let web = stand.web().await;
    let each = 10;
    let crowd = stand
        .crowd(rounds * each * u32::try_from(POINTS.len()).unwrap())
        .await;
    let sale = stand.sale(100_000).await;
    let mut waves = crowd.chunks(each as usize);
    for _ in 0..rounds {
        for point in POINTS {
            let wave = waves.next().unwrap();
            if point == "consumer-after-claim" {
                // There has to be somebody to claim from.
                let mut first = stand.worker_with("consumer-after-read=return(kill)", &[]);
                stand.buy(&web, sale, wave, 5).await;
                crate::stand::kills_itself(&mut first).await;
            }
            let points = format!("{point}=1*return(stop)");
            let mut late = stand.worker_with(&points, &[]);
            if point != "consumer-after-claim" {
                stand.buy(&web, sale, wave, 5).await;
            }
            stops_itself(&mut late).await;
            let other = stand.worker(&[]).await;
            let holds = format!("-{}-", late.pid());
            eventually("another has taken over", || async {
                let overview = stand.shop.overview().await;
                overview
                    .workers
                    .iter()
                    .filter(|worker| worker.name.contains(&holds))
                    .all(|worker| worker.pending == 0)
            })
            .await;
            // Inside a transaction the late one still keeps the other from writing.
            if !point.starts_with("confirm") {
                stand.drains().await;
            }
            late.signals("CONT");
            // It ends what it had in hand, late, and leaves in order.
            assert_eq!(late.stops().await, 0);
            stand.drains().await;
            assert_eq!(other.stops().await, 0);
        }
    }
    assert_eq!(stand.dead().await, 0);
    let record = stand.audit().await;
    assert_eq!(record.acknowledged.len(), crowd.len());
    assert_eq!(stand.rows(sale).await, i64::try_from(crowd.len()).unwrap());
    stand.closes().await;
    crowd.len()
}
