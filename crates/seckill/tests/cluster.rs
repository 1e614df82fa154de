//! A Redis Cluster of three masters: lanes spread over the nodes, and a node that dies loses nothing.

use std::time::{Duration, Instant};

use futures::future::join_all;
use seckill::{Purchase, VoucherId};
use testkit::{Crowd, DEADLINE, PrivateCluster, Stage, Workers, is_unavailable, report, scale};

const LANES: u16 = 6;

#[tokio::test(flavor = "multi_thread")]
async fn lanes_are_spread_over_the_nodes_and_a_killed_node_loses_nothing() {
    let mut cluster = PrivateCluster::start().await;
    let url = cluster.url();
    let stage = Stage::with(|c| (c.redis_url, c.lanes) = (url, LANES)).await;
    let other = stage.another().await;
    let (kills, between) = (5 * scale() as usize, 400);
    let stock = i64::try_from(kills * between / usize::from(LANES)).expect("few");
    let mut vouchers: Vec<VoucherId> = Vec::new();
    for _ in 0..LANES {
        vouchers.push(stage.open_sale(stock).await.voucher_id);
    }
    let pattern = format!("{}:*:sale:*", stage.config.prefix);
    let share: Vec<usize> = cluster
        .nodes
        .iter()
        .map(|node| node.command(&["KEYS", &pattern]).lines().count())
        .collect();
    assert_eq!(share, [2, 2, 2], "six lanes over three nodes");

    let demand = u32::try_from(stock * i64::from(LANES) + 300).expect("few");
    let buyers = stage.buyers(demand).await;
    let ghosts = stage.buyers(200).await;
    let lanes = stage.shop.lanes().await.expect("known");
    let workers = Workers::start(&stage.shop, &lanes, 1).await;
    let second = Workers::start(&other, &lanes, 1).await;
    let crowd = Crowd::start(&[stage.shop.clone(), other.clone()], &vouchers, buyers, 24);
    let mut slowest_back = Duration::ZERO;
    for kill in 0..kills {
        crowd.more(between / 2).await;
        let node = kill % cluster.nodes.len();
        cluster.nodes[node].kill();
        // Refused or decided, each within its time; nothing is kept for the node's return.
        let began = Instant::now();
        let meanwhile = join_all(ghosts.iter().enumerate().map(|(n, ghost)| {
            stage
                .shop
                .buy(ghost.user_id, vouchers[n % vouchers.len()], "")
        }))
        .await;
        assert!(began.elapsed() < stage.config.buy_timeout + Duration::from_secs(1));
        for answer in &meanwhile {
            assert!(is_unavailable(answer) || answer.is_ok(), "{answer:?}");
        }
        cluster.nodes[node].start_again().await;
        let up = Instant::now();
        cluster.wait().await;
        for shop in [&stage.shop, &other] {
            shop.wait_until_selling(DEADLINE)
                .await
                .expect("back by itself");
        }
        slowest_back = slowest_back.max(up.elapsed());
    }
    let told = crowd.end().await;
    workers.drained(&stage.shop).await;
    workers.stop().await;
    second.stop().await;
    stage.reconcile().await;

    let (mut sold, mut lost) = (0, 0);
    for voucher in &vouchers {
        let rows = stage.rows(*voucher).await;
        assert_eq!(
            rows.len(),
            usize::try_from(stock).expect("few"),
            "sold out, not oversold"
        );
        lost += told
            .orders
            .iter()
            .filter(|((of, _), _)| *of == voucher.get())
            .filter(|((_, user), order)| !rows.contains(&(*user, **order)))
            .count();
        sold += rows.len();
        stage.assert_balanced(*voucher).await;
        let late = stage.shop.buy(ghosts[0].user_id, *voucher, "").await;
        assert!(matches!(
            late,
            Ok(Purchase::SoldOut | Purchase::AlreadyOrdered { .. })
        ));
    }
    assert_eq!(lost, 0, "of {} acknowledged ids", told.orders.len());
    assert_eq!(
        stage.shop.alarms() + other.alarms(),
        0,
        "nothing was behind"
    );
    report(
        "cluster node killed",
        &format!(
            "{kills} kills of 3 masters, {LANES} lanes spread {share:?}, {} acknowledged ids, {lost} lost, {sold} of {} sold, {} refusals, back within {slowest_back:?}",
            told.orders.len(),
            stock * i64::from(LANES),
            told.unavailable
        ),
    );
}
