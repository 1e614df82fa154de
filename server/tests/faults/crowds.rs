//! Too many people at once.

use crate::stand::{Stand, figures, outcome, scaled};

const BUYERS: u32 = 10_000;
const STOCK: u32 = 100;

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_requests_on_a_hundred_units_sell_exactly_a_hundred() {
    let stand = Stand::new().await;
    let (web, worker) = (stand.web().await, stand.worker(&[]).await);
    let crowd = stand.crowd(BUYERS).await;
    let (rounds, begun) = (scaled(10), std::time::Instant::now());
    for _ in 0..rounds {
        let sale = stand.sale(STOCK).await;
        let tally = stand.buy(&web, sale, &crowd, 200).await;
        assert_eq!(outcome(&tally, "admitted"), 100, "{:?}", tally.outcomes);
        assert_eq!(outcome(&tally, "sold_out"), 9_900, "{:?}", tally.outcomes);
        stand.drains().await;
        assert_eq!(stand.rows(sale).await, 100);
    }
    let many = begun.elapsed();
    // 200 requests of one user at a time, then 200 of the next.
    let order: Vec<u32> = (0..50).flat_map(|user| [user; 200]).collect();
    for _ in 0..rounds {
        let sale = stand.sale(STOCK).await;
        let tally = stand
            .load(web.origin(), sale, &crowd, order.clone(), 200)
            .await;
        assert_eq!(outcome(&tally, "admitted"), 50, "{:?}", tally.outcomes);
        assert_eq!(
            outcome(&tally, "already_ordered"),
            9_950,
            "{:?}",
            tally.outcomes
        );
        stand.drains().await;
        assert_eq!(stand.rows(sale).await, 50);
    }
    let record = stand.audit().await;
    figures(
        "crowd",
        &format!(
            "{rounds} rounds of 10,000 requests on {STOCK} units: {STOCK} sold in each ({many:.0?}); {rounds} rounds of 50 users × 200 parallel: 50 sold in each; {} requests, {} orders",
            record.attempts,
            record.admitted.len()
        ),
    );
    assert_eq!(worker.stops().await, 0);
    stand.closes().await;
}
