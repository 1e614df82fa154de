//! "Sold out" from a process' own memory: quick, never to a buyer, and never for long.

use std::time::{Duration, Instant};

use futures::future::join_all;
use seckill::{Error, Page, Purchase, Settled, Shop, User, VoucherId};
use testkit::{PrivateRedis, Stage, eventually, is_unavailable};

/// What a process may answer by itself after Redis' last word, and what a busy machine adds.
const TRUSTED: Duration = Duration::from_millis(250);
const MARGIN: Duration = Duration::from_secs(2);

async fn on_a_redis_of_its_own() -> (PrivateRedis, Stage) {
    let redis = PrivateRedis::start().await;
    let url = redis.url();
    let stage = Stage::with(|c| c.redis_url = url).await;
    (redis, stage)
}

/// Scripts that this Redis has run.
fn scripts_run(redis: &PrivateRedis) -> u64 {
    let stats = redis.command(&["INFO", "commandstats"]);
    let calls = |line: &str| -> Option<u64> {
        let rest = line
            .strip_prefix("cmdstat_evalsha:calls=")
            .or_else(|| line.strip_prefix("cmdstat_eval:calls="))?;
        rest.split(',').next()?.parse().ok()
    };
    stats.lines().filter_map(calls).sum()
}

/// Presses until the process answers by itself: until Redis hears nothing of a whole crowd.
async fn answers_by_itself(redis: &PrivateRedis, shop: &Shop, crowd: &[User], id: VoucherId) {
    eventually("the process answers by itself", || async {
        // Word is renewed right before: a crowd takes less than it is trusted for.
        assert_eq!(buy(shop, &crowd[0], id).await, Purchase::SoldOut);
        let before = scripts_run(redis);
        let answers = join_all(crowd.iter().map(|b| shop.buy(b.user_id, id, ""))).await;
        let sold_out = |a: &Result<Purchase, Error>| matches!(a, Ok(Purchase::SoldOut));
        assert!(answers.iter().all(sold_out), "{answers:?}");
        (scripts_run(redis) == before).then_some(())
    })
    .await;
}

async fn buy(shop: &Shop, who: &User, id: VoucherId) -> Purchase {
    shop.buy(who.user_id, id, "").await.expect("answered")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_before_an_empty_shelf_reaches_no_redis_and_buyers_keep_their_ids() {
    let (redis, stage) = on_a_redis_of_its_own().await;
    let other = stage.another().await;
    let id = stage.open_sale(20).await.voucher_id;
    let (buyers, crowd) = (stage.buyers(20).await, stage.buyers(200).await);
    let mut orders = Vec::new();
    for buyer in &buyers {
        // Half of them bought on another process.
        let shop = if orders.len() % 2 == 0 {
            &stage.shop
        } else {
            &other
        };
        orders.push(buy(shop, buyer, id).await.order_id().expect("admitted"));
    }
    answers_by_itself(&redis, &stage.shop, &crowd, id).await;
    for (buyer, order_id) in buyers.iter().zip(orders) {
        let again = buy(&stage.shop, buyer, id).await;
        assert_eq!(again, Purchase::AlreadyOrdered { order_id });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stock_that_is_added_sells_at_once_here_and_soon_everywhere() {
    let (redis, stage) = on_a_redis_of_its_own().await;
    let other = stage.another().await;
    let by = stage.admin().await.user_id;
    let id = stage.open_sale(1).await.voucher_id;
    let (buyers, crowd) = (stage.buyers(30).await, stage.buyers(50).await);
    assert!(buy(&stage.shop, &buyers[0], id).await.order_id().is_some());
    for pair in buyers[1..].chunks_exact(2) {
        answers_by_itself(&redis, &stage.shop, &crowd, id).await;
        answers_by_itself(&redis, &other, &crowd, id).await;
        stage.shop.add_stock(by, id, 2, None).await.expect("added");
        let added = Instant::now();
        assert!(
            matches!(
                buy(&stage.shop, &pair[0], id).await,
                Purchase::Admitted { .. }
            ),
            "on the process that was told, at once"
        );
        eventually("the other sells too", || async {
            let answer = buy(&other, &pair[1], id).await;
            answer.order_id().map(drop)
        })
        .await;
        let took = added.elapsed();
        assert!(took < TRUSTED + MARGIN, "{took:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_that_is_resumed_sells_soon_on_every_process() {
    let (redis, stage) = on_a_redis_of_its_own().await;
    let other = stage.another().await;
    let by = stage.admin().await.user_id;
    let id = stage.open_sale(1).await.voucher_id;
    let (buyers, crowd) = (stage.buyers(3).await, stage.buyers(50).await);
    assert!(buy(&stage.shop, &buyers[0], id).await.order_id().is_some());
    answers_by_itself(&redis, &other, &crowd, id).await;
    stage.shop.pause(by, id).await.expect("paused");
    stage.shop.add_stock(by, id, 2, None).await.expect("added");
    assert_eq!(buy(&stage.shop, &buyers[1], id).await, Purchase::Paused);
    stage.shop.resume(by, id).await.expect("resumed");
    let resumed = Instant::now();
    assert!(buy(&stage.shop, &buyers[1], id).await.order_id().is_some());
    eventually("the other sells too", || async {
        buy(&other, &buyers[2], id).await.order_id()
    })
    .await;
    assert!(resumed.elapsed() < TRUSTED + MARGIN);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_a_discard_gave_back_is_sold_again() {
    let (redis, stage) = on_a_redis_of_its_own().await;
    let by = stage.admin().await.user_id;
    let id = stage.open_sale(1).await.voucher_id;
    let (buyers, crowd) = (stage.buyers(2).await, stage.buyers(50).await);
    assert!(buy(&stage.shop, &buyers[0], id).await.order_id().is_some());
    // Its account is gone, so that its row can't be written.
    sqlx::query("delete from user_account where user_id = $1")
        .bind(buyers[0].user_id.get())
        .execute(&stage.pool)
        .await
        .expect("deleted");
    let mut consumer = stage.consumer_with(|c| c.max_attempts = 1).await;
    let done = stage
        .consume_until(&mut consumer, |done| done.dead.len() == 1)
        .await;
    answers_by_itself(&redis, &stage.shop, &crowd, id).await;
    let settled = stage.shop.discard(by, done.dead[0].0).await;
    assert!(matches!(settled, Ok(Settled::Discarded)), "{settled:?}");
    assert!(buy(&stage.shop, &buyers[1], id).await.order_id().is_some());
    let left = stage.shop.dead_letters(None, &Page::first()).await;
    assert!(left.expect("listed").items.is_empty());
    consumer.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_disconnect_nothing_is_answered_from_memory() {
    let (mut redis, stage) = on_a_redis_of_its_own().await;
    let id = stage.open_sale(1).await.voucher_id;
    let (buyers, crowd) = (stage.buyers(1).await, stage.buyers(50).await);
    assert!(buy(&stage.shop, &buyers[0], id).await.order_id().is_some());
    answers_by_itself(&redis, &stage.shop, &crowd, id).await;
    redis.kill();
    // Until the loss is noticed the word still holds; then nobody is told anything.
    eventually("the loss is noticed", || async {
        is_unavailable(&stage.shop.buy(crowd[0].user_id, id, "").await).then_some(())
    })
    .await;
    redis.start_again().await;
    let before = scripts_run(&redis);
    eventually("it answers again", || async {
        stage.shop.buy(crowd[0].user_id, id, "").await.ok()
    })
    .await;
    assert!(scripts_run(&redis) > before, "Redis was asked first");
}
