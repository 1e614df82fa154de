//! What viewers are shown, and how little of Redis it costs.

use std::time::{Duration, Instant};

use futures::future::join_all;
use seckill::{Purchase, SaleState, Shop, ShopConfig};
use testkit::{DEADLINE, PrivateRedis, Stage, eventually, report};

const VIEWERS: u64 = 10_000;
const SHOWN_FOR: Duration = Duration::from_millis(250);
const NEVER_AGAIN: Duration = Duration::from_secs(3_600);

/// Scripts that Redis ran since its counters were reset: every read of a sale or a clock is one.
async fn scripts_run(stage: &Stage) -> u64 {
    let reply = stage.redis_command(&["INFO", "commandstats"]).await;
    let told = reply.as_string().expect("a text");
    let calls = |command: &str| {
        let line = told
            .lines()
            .find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
        line.and_then(|rest| rest.split(',').next())
            .map_or(0, |calls| calls.parse().expect("a number"))
    };
    calls("evalsha") + calls("eval")
}

/// Every viewer asks for the sale and the clock at once; the scripts that ran, and the time it took.
async fn watched(stage: &Stage, shop: &Shop, sale: &seckill::Sale) -> (u64, Duration) {
    stage.redis_command(&["CONFIG", "RESETSTAT"]).await;
    let began = Instant::now();
    let id = sale.voucher_id;
    let views = (0..VIEWERS).map(|_| async move {
        let shown = shop.sale_shown(id).await.expect("Redis answers");
        let now_ms = shop.clock_shown(Some(id)).await.expect("Redis answers");
        assert_eq!((shown.stock, shown.state), (50, SaleState::Open));
        now_ms
    });
    join_all(views).await;
    (scripts_run(stage).await, began.elapsed())
}

async fn another(stage: &Stage, change: impl FnOnce(&mut ShopConfig)) -> Shop {
    let mut config = stage.config.clone();
    change(&mut config);
    let shop = Shop::open(config).await.expect("valid settings");
    shop.wait_until_selling(DEADLINE)
        .await
        .expect("the ground is safe");
    shop
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_viewers_cost_redis_a_bounded_number_of_reads() {
    // Its own Redis: the counters are those of the whole server.
    let redis = PrivateRedis::start().await;
    let url = redis.url();
    let stage = Stage::with(|c| {
        c.redis_url = url;
        c.show_for = SHOWN_FOR;
    })
    .await;
    let sale = stage.open_sale(50).await;
    for round in 0..3 {
        let (reads, took) = watched(&stage, &stage.shop, &sale).await;
        // One of the sale and one of the clock, again after each while.
        let bound = 2 * (1 + took.as_millis() / SHOWN_FOR.as_millis());
        assert!(
            u128::from(reads) <= bound,
            "{reads} reads in {took:?}, round {round}"
        );
        report(
            "viewers",
            &format!("{VIEWERS} looked in {took:?}: {reads} reads of Redis"),
        );
    }
    let each = another(&stage, |c| c.show_for = Duration::ZERO).await;
    let (reads, took) = watched(&stage, &each, &sale).await;
    report(
        "viewers",
        &format!("each for himself, in {took:?}: {reads} reads of Redis"),
    );
    assert!(reads >= 2 * VIEWERS);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_process_does_itself_is_shown_at_once() {
    let stage = Stage::with(|c| c.show_for = NEVER_AGAIN).await;
    let by = stage.admin().await.user_id;
    let sale = stage.open_sale(3).await;
    let id = sale.voucher_id;
    let shown = async || {
        let sale = stage.shop.sale_shown(id).await.expect("Redis answers");
        (sale.stock, sale.state)
    };
    assert_eq!(shown().await, (3, SaleState::Open));
    for (buyer, left) in stage.buyers(3).await.iter().zip([2, 1, 0]) {
        let bought = stage
            .shop
            .buy(buyer.user_id, id, "")
            .await
            .expect("decided");
        assert!(matches!(bought, Purchase::Admitted { .. }));
        let state = if left > 0 {
            SaleState::Open
        } else {
            SaleState::SoldOut
        };
        assert_eq!(shown().await, (left, state));
    }
    stage.shop.add_stock(by, id, 5, None).await.expect("added");
    assert_eq!(shown().await, (5, SaleState::Open));
    stage.shop.pause(by, id).await.expect("paused");
    assert_eq!(shown().await, (5, SaleState::Paused));
    stage.shop.resume(by, id).await.expect("resumed");
    assert_eq!(shown().await, (5, SaleState::Open));
    stage.shop.end(by, id).await.expect("ended");
    assert_eq!(shown().await, (5, SaleState::Ended));

    let page = seckill::Page::first();
    let listed = stage.shop.sales_shown(&page).await.expect("listed");
    assert_eq!(listed.items.len(), 1);
    let newer = stage.open_sale(7).await;
    let listed = stage.shop.sales_shown(&page).await.expect("listed");
    let stocks: Vec<_> = listed
        .items
        .iter()
        .map(|s| (s.voucher_id, s.stock))
        .collect();
    assert_eq!(stocks, [(newer.voucher_id, 7), (id, 5)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_process_does_is_shown_soon_and_the_opening_on_time() {
    let stage = Stage::with(|c| c.show_for = SHOWN_FOR).await;
    let by = stage.admin().await.user_id;
    let sale = stage.open_sale(3).await;
    let id = sale.voucher_id;
    let other = stage.another().await;
    assert_eq!(
        other.sale_shown(id).await.expect("shown").state,
        SaleState::Open
    );
    stage.shop.pause(by, id).await.expect("paused");
    eventually("the other process shows it", || async {
        let shown = other.sale_shown(id).await.expect("shown");
        (shown.state == SaleState::Paused).then_some(())
    })
    .await;

    let patient = another(&stage, |c| c.show_for = NEVER_AGAIN).await;
    let soon = stage.sale_between(3, 1_500, 3_600_000).await;
    let first = patient.sale_shown(soon.voucher_id).await.expect("shown");
    assert_eq!(first.state, SaleState::Scheduled);
    eventually("it opens by the clock alone", || async {
        let shown = patient.sale_shown(soon.voucher_id).await.expect("shown");
        assert_eq!(
            shown.state == SaleState::Open,
            shown.now_ms >= soon.begin_ms
        );
        (shown.state == SaleState::Open).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_that_is_shown_is_redis_own_although_it_was_read_long_ago() {
    let stage = Stage::with(|c| c.show_for = NEVER_AGAIN).await;
    let sent = Instant::now();
    stage.shop.clock_shown(None).await.expect("Redis answers");
    // What the one read may be wrong by, and the milliseconds that are cut off.
    let wrong = i64::try_from(sent.elapsed().as_millis()).expect("a short while") + 2;
    for _ in 0..50 {
        let before = stage.shop.clock(None).await.expect("Redis answers");
        let shown = stage.shop.clock_shown(None).await.expect("known");
        let after = stage.shop.clock(None).await.expect("Redis answers");
        assert!(
            (before - wrong..=after + wrong).contains(&shown),
            "{shown} is not within {before}..{after} by {wrong}"
        );
    }
}
