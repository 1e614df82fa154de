//! Reconcilers that are killed between the two halves of what they do to a sale.

use fred::prelude::*;
use seckill::SaleState;

use crate::{
    stand::{Stand, figures, kills_itself, outcome, scaled},
    support::eventually,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_reconciler_killed_between_its_halves_is_finished_by_the_next() {
    let stand = Stand::new().await;
    let mut web = stand.web().await;
    let port = web.port;
    let crowd = stand.crowd(12).await;
    let redis = stand.redis().await;
    let rounds = scaled(2);
    let mut sales = Vec::new();
    for _ in 0..rounds {
        let sale = stand.sale(10).await;
        let worker = stand.worker(&[]).await;
        let tally = stand.buy(&web, sale, &crowd[..5], 5).await;
        assert_eq!(outcome(&tally, "admitted"), 5);
        stand.drains().await;
        assert_eq!(worker.stops().await, 0);

        // Units that nobody put on sale: it drifts, and is closed to be loaded anew.
        let mut worker = stand.worker_with("distrust-after-close=return(kill)", &[]);
        let key = stand.key(&format!("sale:{sale}"));
        let _: i64 = redis.hincrby(&key, "stock", 5).await.unwrap();
        kills_itself(&mut worker).await;
        let tally = stand.buy(&web, sale, &crowd[5..6], 1).await;
        let sold = outcome(&tally, "admitted") + outcome(&tally, "already_ordered");
        assert_eq!(sold, 0, "it was closed first: {tally:?}");

        let worker = stand.worker(&[]).await;
        eventually("it is loaded anew, and waits for an operator", || async {
            let found = stand.shop.sale(sale).await;
            found.is_ok_and(|found| found.state == SaleState::Paused && found.stock == 5)
        })
        .await;
        let (operator, id) = (stand.operator(&web).await, sale.to_string());
        let resumed = operator
            .posts("/api/admin/resume_sale", &[("voucher_id", &id)])
            .await;
        assert_eq!(resumed.status, 200, "{resumed:?}");
        stand.opens(sale).await;
        let tally = stand.buy(&web, sale, &crowd, 4).await;
        let told = ["admitted", "already_ordered", "sold_out"].map(|name| outcome(&tally, name));
        assert_eq!(told, [5, 5, 2]);
        stand.drains().await;
        let ended = operator
            .posts("/api/admin/end_sale", &[("voucher_id", &id)])
            .await;
        assert_eq!(ended.status, 200, "{ended:?}");
        assert_eq!(worker.stops().await, 0);
        sales.push(sale);
    }
    // Before Redis forgets them.
    stand.audit().await;
    for sale in &sales {
        // Each dies over the first sale, whose keys are gone and whose row does not say so yet.
        let at_once = ["--hold-hours=0"];
        let mut worker = stand.worker_with("release-after-script=return(kill)", &at_once);
        kills_itself(&mut worker).await;
        assert_eq!(stand.rows(*sale).await, 10);
    }
    let worker = stand.worker(&["--hold-hours=0"]).await;
    eventually("every ended sale is freed", || async {
        let left: i64 = sqlx::query_scalar("select count(*) from voucher where not released")
            .fetch_one(&stand.pool)
            .await
            .unwrap();
        left == 0
    })
    .await;
    for sale in &sales {
        let keys = [format!("sale:{sale}"), format!("buyers:{sale}")].map(|key| stand.key(&key));
        let left: i64 = redis.exists(keys.to_vec()).await.unwrap();
        assert_eq!((left, stand.rows(*sale).await), (0, 10));
    }
    assert_eq!(web.process.stops().await, 0);
    web = stand.web_as(port, "", &["--hold-hours=0"]).await;
    let tally = stand.buy(&web, sales[0], &crowd, 4).await;
    assert_eq!(outcome(&tally, "ended"), 12, "{tally:?}");
    figures(
        "killed while reconciling",
        &format!(
            "{rounds} kills between closing a sale that drifts and loading it anew, {rounds} between freeing Redis and noting it: every sale whole, 10 of 10 units each"
        ),
    );
    assert_eq!(web.process.stops().await, 0);
    assert_eq!(worker.stops().await, 0);
    redis.quit().await.unwrap();
    stand.closes().await;
}
