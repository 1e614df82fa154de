//! Entries that can't be written, and entries that kill whoever touches them.

use std::time::{Duration, Instant};

use bench::load::Buyer;
use fred::prelude::*;
use seckill::VoucherId;

use crate::{
    letters::letters,
    stand::{Stand, Web, figures, is_over, kills_itself, outcome},
    support::{DEADLINE, eventually},
};

#[tokio::test(flavor = "multi_thread")]
async fn one_broken_entry_in_a_thousand_delays_nobody() {
    let stand = Stand::new().await;
    let (web, worker) = (stand.web().await, stand.worker(&[]).await);
    let crowd = stand.crowd(1_000).await;
    let sound = stand.sale(1_000).await;
    let usual = settled(&stand, &web, sound, &crowd, 1_000).await;

    // One buyer's order is refused by the database, and one entry is no order at all.
    let sale = stand.sale(1_000).await;
    stand.poison(&crowd[500]).await;
    stand.forge().await;
    let poisoned = settled(&stand, &web, sale, &crowd, 999).await;
    let dead = letters(&stand, 2).await;
    assert_eq!(dead.len(), 2, "{dead:?}");
    let (forged, refused): (Vec<_>, Vec<_>) =
        dead.iter().partition(|letter| letter.user_id.is_empty());
    assert!(forged[0].reason.contains("broken entry"), "{forged:?}");
    assert!(
        refused[0].reason.contains("database refused"),
        "{refused:?}"
    );
    assert_eq!(refused[0].user_id, crowd[500].user.to_string());
    // Its attempts were made among the others' orders, not in front of them.
    let others: i64 =
        sqlx::query_scalar("select max(settled_ms) from voucher_order where voucher_id = $1")
            .bind(sale.get())
            .fetch_one(&stand.pool)
            .await
            .unwrap();
    let behind = others - refused[0].at_ms;
    assert!(
        behind < 5_000,
        "the others were done {behind} ms after it was given up"
    );

    stand.heal().await;
    let operator = stand.operator(&web).await;
    let entry = refused[0].entry_id.to_string();
    let replayed = operator
        .posts("/api/admin/replay", &[("entry_id", &entry)])
        .await;
    assert_eq!(replayed.status, 200, "{replayed:?}");
    let entry = forged[0].entry_id.to_string();
    let discarded = operator
        .posts("/api/admin/discard", &[("entry_id", &entry)])
        .await;
    assert_eq!(discarded.status, 200, "{discarded:?}");
    stand.drains().await;
    stand.audit().await;
    assert_eq!((stand.rows(sale).await, stand.dead().await), (1_000, 0));
    figures(
        "poison",
        &format!(
            "1 order in 1,000 and 1 forged entry: both dead letters with their reasons, the other 999 written within {poisoned:.0?} of the last click ({usual:.0?} without poison), the order confirmed by its replay"
        ),
    );
    assert_eq!(worker.stops().await, 0);
    stand.closes().await;
}

/// Lets a crowd buy; tells how long after the last answer this many orders were in the database.
async fn settled(
    stand: &Stand,
    web: &Web,
    sale: VoucherId,
    crowd: &[Buyer],
    rows: i64,
) -> Duration {
    let tally = stand.buy(web, sale, crowd, 16).await;
    assert_eq!(outcome(&tally, "admitted"), 1_000);
    let begun = Instant::now();
    eventually("the orders are persisted", || async {
        stand.rows(sale).await >= rows
    })
    .await;
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_kills_its_worker_is_dead_lettered() {
    let stand = Stand::new().await;
    let web = stand.web().await;
    let crowd = stand.crowd(21).await;
    let sale = stand.sale(21).await;
    let flags = ["--max-attempts=3"];
    // Whoever touches this one dies of it, in whatever way it is touched.
    let deadly = "consumer-after-read=return(kill);consumer-before-alone=return(kill)";
    let mut worker = stand.worker_with(deadly, &flags);
    stand.buy(&web, sale, &crowd[..1], 1).await;
    kills_itself(&mut worker).await;
    let mut died = 1;
    let begun = Instant::now();
    while stand.dead().await == 0 {
        let mut worker = stand.worker_with(deadly, &flags);
        while !is_over(worker.pid()) && stand.dead().await == 0 {
            assert!(
                begun.elapsed() < DEADLINE,
                "it neither dies nor gives the entry up"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if is_over(worker.pid()) {
            kills_itself(&mut worker).await;
            died += 1;
        } else {
            worker.dies().await;
        }
    }
    let took = begun.elapsed();
    assert_eq!(died, 4, "one read and three attempts");
    let letter = letters(&stand, 1).await.remove(0);
    assert!(letter.reason.contains("its worker died"), "{letter:?}");
    // Everybody else is served, and so is this one when the cause is gone.
    let worker = stand.worker(&flags).await;
    stand.buy(&web, sale, &crowd[1..], 4).await;
    stand.drains().await;
    assert_eq!(stand.rows(sale).await, 20);
    let entry = letter.entry_id.to_string();
    let operator = stand.operator(&web).await;
    let answer = operator
        .posts("/api/admin/replay", &[("entry_id", &entry)])
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    stand.drains().await;
    assert_eq!(
        stand.order_states(letter.order_id.parse().unwrap()).await,
        ["confirmed"]
    );
    stand.audit().await;
    figures(
        "deadly entry",
        &format!(
            "killed {died} workers in {took:.1?}, then a dead letter; 20 others served; confirmed by its replay"
        ),
    );
    assert_eq!(worker.stops().await, 0);
    stand.closes().await;
}

impl Stand {
    /// Puts an entry into the queue that Redis never admitted and nobody can read.
    async fn forge(&self) {
        let redis = self.redis().await;
        let key = self.key("orders");
        let _: String = redis
            .xadd(
                key,
                false,
                None,
                "*",
                vec![("v", "1"), ("order_id", "hello")],
            )
            .await
            .unwrap();
        redis.quit().await.unwrap();
    }
}
