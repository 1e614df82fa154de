//! Who gets a voucher, and what everybody else is told.

use std::collections::{BTreeMap, BTreeSet};

use fred::prelude::*;

use crate::support::{Site, all_at_once, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_queued_and_then_confirmed() {
    let site = Site::open().await;
    let sale = site.open_sale(1).await;
    let buyer = site.buyer().await;
    let order = buyer.gets(&sale).await;
    eventually("the order is confirmed", || async {
        buyer.order_state(&order).await == "confirmed"
    })
    .await;
    let answer = buyer.asks(&format!("/api/order?order_id={order}")).await;
    assert_eq!(
        (answer.text("order_id"), answer.text("voucher_id")),
        (order.clone(), sale.clone())
    );
    assert!(answer.json()["confirmed_ms"].as_i64() >= answer.json()["admitted_ms"].as_i64());
    let again = buyer.buys(&sale).await;
    assert_eq!(
        (again.text("outcome"), again.text("order_id")),
        ("already_ordered".into(), order.clone())
    );
    let mine = buyer.asks("/api/orders").await.json();
    assert_eq!(mine["items"][0]["order_id"], order);
    site.persists(&sale, 1).await;
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_elses_order_does_not_exist() {
    let site = Site::open().await;
    let sale = site.open_sale(1).await;
    let order = site.buyer().await.gets(&sale).await;
    let stranger = site.buyer().await;
    let theirs = stranger.asks(&format!("/api/order?order_id={order}")).await;
    let nobodys = stranger.asks("/api/order?order_id=12345").await;
    assert_eq!((theirs.status, &theirs.body), (404, &nobodys.body));
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_begin_and_after_the_end_nothing_is_sold() {
    let site = Site::open().await;
    let buyer = site.buyer().await;
    let early = site.sale(5, 60_000, 120_000).await;
    let answer = buyer.buys(&early).await;
    assert_eq!(
        (answer.status, &*answer.text("outcome")),
        (200, "not_started")
    );
    assert!(answer.json()["begin_ms"].as_i64().unwrap() > 0);
    let short = site.sale(5, -1_000, 1_500).await;
    eventually("the sale has ended", || async {
        site.state(&short).await == "ended"
    })
    .await;
    assert_eq!(buyer.buys(&short).await.text("outcome"), "ended");
    assert_eq!((site.stock(&early).await, site.stock(&short).await), (5, 5));
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_user_gets_one_order_however_often_the_button_is_pressed() {
    let site = Site::open().await;
    let sale = site.open_sale(10).await;
    let buyer = site.buyer().await;
    let presses: Vec<_> = (0..200).map(|_| (buyer.clone(), sale.clone())).collect();
    let answers = all_at_once(
        200,
        presses
            .into_iter()
            .map(|(buyer, sale)| async move { buyer.buys(&sale).await }),
    )
    .await;
    let ids: BTreeSet<_> = answers
        .iter()
        .map(|answer| answer.text("order_id"))
        .collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    assert_eq!(
        answers
            .iter()
            .filter(|answer| answer.text("outcome") == "admitted")
            .count(),
        1
    );
    assert_eq!(site.stock(&sale).await, 9);
    site.persists(&sale, 1).await;
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_vouchers_go_to_a_hundred_of_two_thousand_buyers() {
    let site = Site::open().await;
    let sale = site.open_sale(100).await;
    let buyers = site.buyers(2_000).await;
    let presses = (0..5).flat_map(|_| buyers.iter().cloned().enumerate());
    let work: Vec<_> = presses
        .map(|(who, buyer)| {
            let sale = sale.clone();
            async move { (who, buyer.buys(&sale).await) }
        })
        .collect();
    let mut outcomes = BTreeMap::new();
    let mut admitted = BTreeMap::new();
    for (who, answer) in all_at_once(200, work).await {
        assert_eq!(answer.status, 200, "{answer:?}");
        let outcome = answer.text("outcome");
        *outcomes.entry(outcome.clone()).or_insert(0) += 1;
        if outcome == "admitted" {
            assert!(
                admitted.insert(who, answer.text("order_id")).is_none(),
                "one order per buyer"
            );
        }
    }
    let said: Vec<_> = outcomes.keys().map(String::as_str).collect();
    assert_eq!(said, ["admitted", "already_ordered", "sold_out"]);
    assert_eq!((outcomes["admitted"], admitted.len()), (100, 100));
    site.persists(&sale, 100).await;
    assert_eq!(site.database.distinct_buyers(&sale).await, 100);
    assert_eq!(admitted.values().collect::<BTreeSet<_>>().len(), 100);
    for (who, order) in &admitted {
        assert_eq!(buyers[*who].order_state(order).await, "confirmed");
    }
    assert_eq!(site.state(&sale).await, "sold_out");
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_stream_loses_no_order() {
    let site = Site::open().await;
    let sale = site.open_sale(60).await;
    let redis = site.redis().await;
    for (number, buyer) in site.buyers(60).await.iter().enumerate() {
        buyer.gets(&sale).await;
        if number % 20 == 10 {
            let _: u64 = redis.del(site.key("orders")).await.unwrap();
        }
    }
    site.persists(&sale, 60).await;
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forgotten_scripts_stop_no_purchase() {
    let site = Site::open().await;
    let sale = site.open_sale(200).await;
    let redis = site.redis().await;
    let buyers = site.buyers(200).await;
    let load = tokio::spawn({
        let sale = sale.clone();
        async move {
            let work = buyers.into_iter().map(|buyer| {
                let sale = sale.clone();
                async move { buyer.gets(&sale).await }
            });
            all_at_once(20, work.collect::<Vec<_>>()).await
        }
    });
    while !load.is_finished() {
        let _: () = redis.script_flush(false).await.unwrap();
    }
    assert_eq!(load.await.unwrap().len(), 200);
    site.persists(&sale, 200).await;
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_sale_opens_by_itself_although_the_reconciler_looks_at_it() {
    let site = Site::open_with(server::Role::Both, &["--reconcile-ms=1"]).await;
    let mut states = BTreeMap::new();
    for _ in 0..40 {
        let sale = site.open_sale(1).await;
        *states.entry(site.state(&sale).await).or_insert(0) += 1;
    }
    assert_eq!(states, BTreeMap::from([("open".to_owned(), 40)]));
    site.closes().await;
}
