//! Redis killed, cut off, half open, or without its scripts: nothing acknowledged is lost,
//! nothing is sold twice, and the service comes back by itself.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use seckill::{Error, Lane, Purchase};
use testkit::{Crowd, DEADLINE, PrivateRedis, Proxy, Stage, Workers, eventually, report, scale};

/// What an answer may take beyond the time that a purchase waits for Redis.
const MARGIN: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn redis_killed_under_load_loses_no_acknowledged_id() {
    let mut redis = PrivateRedis::start().await;
    let url = redis.url();
    let stage = Stage::with(|c| c.redis_url = url).await;
    let other = stage.another().await;
    let (kills, between) = (20 * scale() as usize, 550);
    let stock = i64::try_from(kills * between).expect("few");
    let sale = stage.open_sale(stock).await;
    let id = sale.voucher_id;
    let buyers = stage.buyers(u32::try_from(stock + 500).expect("few")).await;
    let ghosts = stage.buyers(3_000).await;
    let workers = Workers::start(&stage.shop, &[Lane(0)], 2).await;
    let crowd = Crowd::start(&[stage.shop.clone(), other.clone()], &[id], buyers, 48);

    let mut back = Vec::new();
    for kill in 0..kills {
        crowd.more(between - 60).await;
        redis.kill();
        if kill == kills / 2 {
            // A long pause: every purchase is refused at once, and none waits for Redis' return.
            let before = Instant::now();
            let refused = join_all(ghosts.iter().map(|b| stage.shop.buy(b.user_id, id, ""))).await;
            assert!(refused.iter().all(testkit::is_unavailable));
            assert!(before.elapsed() < stage.config.buy_timeout + MARGIN);
        }
        redis.start_again().await;
        let up = Instant::now();
        crowd.more(1).await;
        back.push(up.elapsed());
    }
    let told = crowd.end().await;
    workers.stop().await;
    stage.reconcile().await;
    stage.drain().await;

    let rows: HashMap<i64, i64> = stage.rows(id).await.into_iter().collect();
    let lost = told
        .orders
        .iter()
        .filter(|((_, user), order)| rows.get(user) != Some(order))
        .count();
    let orders: HashSet<&i64> = rows.values().collect();
    assert_eq!(lost, 0, "of {} acknowledged ids", told.orders.len());
    assert_eq!(orders.len(), rows.len(), "an id stands for two orders");
    assert!(told.orders.len() >= 10_000 * scale() as usize);
    assert_eq!(rows.len(), usize::try_from(stock).expect("few"), "sold out");
    assert!(ghosts.iter().all(|b| !rows.contains_key(&b.user_id.get())));
    assert!(
        told.slowest < stage.config.buy_timeout + MARGIN,
        "{:?}",
        told.slowest
    );
    let slowest_back = back.iter().max().expect("kills");
    assert!(*slowest_back < Duration::from_secs(5), "{back:?}");
    assert_eq!(
        stage.shop.alarms() + other.alarms(),
        0,
        "nothing was behind"
    );
    stage.assert_balanced(id).await;
    report(
        "Redis SIGKILL under load",
        &format!(
            "{kills} kills, {} acknowledged ids, {lost} lost, 0 doubled, {} of {stock} sold, {} refusals, slowest answer {:?}, back within {slowest_back:?}",
            told.orders.len(),
            rows.len(),
            told.unavailable,
            told.slowest
        ),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_cut_after_admission_is_answered_with_the_same_id() {
    // Processes side by side, each behind a proxy of its own: a cut disturbs only its own.
    const PROCESSES: usize = 10;
    let redis = PrivateRedis::start().await;
    let url = redis.url();
    let stage = Stage::with(|c| c.redis_url = url).await;
    let cuts = 500 * scale() as usize;
    let sale = stage.open_sale(i64::try_from(cuts + 1).expect("few")).await;
    let id = sale.voucher_id;
    let buyers = stage.buyers(u32::try_from(cuts).expect("few")).await;
    // Redis knows the script from the first purchase on.
    let first = stage.buyers(1).await[0].user_id;
    stage.shop.buy(first, id, "").await.expect("answered");
    let workers = Workers::start(&stage.shop, &[Lane(0)], 1).await;
    let (redis, stage) = (&redis, &stage);
    let each = buyers
        .chunks(cuts.div_ceil(PROCESSES))
        .map(|buyers| async move {
            let proxy = Proxy::before(redis.port()).await;
            let mut config = stage.config.clone();
            (config.redis_url, config.redis_connections) = (proxy.url(), 1);
            let shop = seckill::Shop::open(config).await.expect("valid settings");
            let mut again = 0;
            for buyer in buyers {
                let before = proxy.cuts();
                proxy.cut_reply_to(&format!("\r\n{}\r\n", buyer.user_id));
                while proxy.cuts() == before {
                    // The gate may still be shut after the cut before this one.
                    shop.wait_until_selling(DEADLINE)
                        .await
                        .expect("back by itself");
                    let cut = shop.buy(buyer.user_id, id, "").await;
                    assert!(testkit::is_unavailable(&cut), "{cut:?}");
                }
                // What Redis decided, asked without the process that never heard of it.
                let held = redis.command(&[
                    "HGET",
                    &stage.key(&format!("buyers:{id}")),
                    &buyer.user_id.to_string(),
                ]);
                let retry = eventually("the retry is answered", || async {
                    shop.buy(buyer.user_id, id, "").await.ok()
                })
                .await;
                let Some(order) = retry.order_id() else {
                    panic!("the retry was answered {retry:?}")
                };
                assert_eq!(order.to_string(), held, "the same id");
                again += usize::from(matches!(retry, Purchase::AlreadyOrdered { .. }));
            }
            assert_eq!(shop.alarms(), 0);
            shop.close().await;
            again
        });
    let again: usize = join_all(each).await.into_iter().sum();
    assert_eq!(
        again, cuts,
        "each had been admitted by the call whose reply was cut"
    );
    workers.stop().await;
    stage.drain().await;
    assert_eq!(stage.rows(id).await.len(), cuts + 1);
    assert_eq!(stage.shop.sale(id).await.expect("the sale").stock, 0);
    stage.assert_balanced(id).await;
    report(
        "reply cut after admission",
        &format!("{cuts} cut, {again} retries told the same id, {cuts} units of stock taken"),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_open_connection_is_noticed() {
    let redis = PrivateRedis::start().await;
    let proxy = Proxy::before(redis.port()).await;
    let stage = {
        let url = redis.url();
        Stage::with(|c| c.redis_url = url).await
    };
    let mut config = stage.config.clone();
    config.redis_url = proxy.url();
    let shop = seckill::Shop::open(config).await.expect("valid settings");
    shop.wait_until_selling(DEADLINE)
        .await
        .expect("safe ground");
    let sale = stage.open_sale(1_000).await;
    let block = Duration::from_secs(1);
    let consumer_config = seckill::ConsumerConfig {
        block,
        ..seckill::ConsumerConfig::default()
    };
    let mut consumer = seckill::Consumer::open(&shop, Lane(0), "half-open", consumer_config)
        .await
        .expect("a consumer");
    let buyers = stage.buyers(30).await;
    let (mut slowest, rounds) = (Duration::ZERO, 3);
    for round in 0..rounds {
        let buy = |n: usize| {
            let (shop, buyer) = (stage.shop.clone(), buyers[round * 10 + n].user_id);
            async move {
                shop.buy(buyer, sale.voucher_id, "")
                    .await
                    .expect("answered")
            }
        };
        buy(0).await;
        stage
            .consume_until(&mut consumer, |done| done.persisted.len() == 1)
            .await;
        let wait = async {
            loop {
                if let Err(error) = consumer.step().await {
                    return (Instant::now(), error);
                }
            }
        };
        let disturb = async {
            eventually("the consumer waits", || async {
                let clients = redis.command(&["CLIENT", "LIST"]);
                clients
                    .lines()
                    .any(|line| line.contains("flags=b") && line.contains("cmd=xreadgroup"))
                    .then_some(())
            })
            .await;
            proxy.blackhole();
            let at = Instant::now();
            // It lies in the stream, and the half-open connection never hears of it.
            buy(1).await;
            at
        };
        let ((noticed, error), at) = tokio::join!(wait, disturb);
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
        let took = noticed - at;
        assert!(
            took < block + Duration::from_secs(5),
            "noticed after {took:?}"
        );
        slowest = slowest.max(took);
        proxy.heal();
        buy(2).await;
        stage
            .consume_until(&mut consumer, |done| done.persisted.len() == 2)
            .await;
    }
    consumer.close().await;
    shop.wait_until_selling(DEADLINE)
        .await
        .expect("back by itself");
    stage.drain().await;
    stage.assert_balanced(sale.voucher_id).await;
    report(
        "half-open connection",
        &format!("{rounds} blocking reads, noticed within {slowest:?} (block {block:?}), 0 lost"),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_flushed_every_20_ms_fail_no_purchase() {
    let redis = Arc::new(PrivateRedis::start().await);
    let url = redis.url();
    let stage = Stage::with(|c| c.redis_url = url).await;
    let count = 3_000 * scale();
    let sale = stage.open_sale(i64::from(count)).await;
    let buyers = stage.buyers(count).await;
    let workers = Workers::start(&stage.shop, &[Lane(0)], 1).await;
    let over = AtomicBool::new(false);
    let load = async {
        let mut answers = Vec::new();
        let began = Instant::now();
        for chunk in buyers.chunks(20) {
            let buys = chunk
                .iter()
                .map(|b| stage.shop.buy(b.user_id, sale.voucher_id, ""));
            answers.extend(join_all(buys).await);
        }
        over.store(true, Ordering::Release);
        (answers, began.elapsed())
    };
    let flush = async {
        let (mut times, mut every) = (0, tokio::time::interval(Duration::from_millis(20)));
        while !over.load(Ordering::Acquire) {
            every.tick().await;
            stage.redis_command(&["SCRIPT", "FLUSH"]).await;
            times += 1;
        }
        times
    };
    let ((answers, took), times) = tokio::join!(load, flush);
    let failed = answers
        .iter()
        .filter(|answer| !matches!(answer, Ok(Purchase::Admitted { .. })))
        .count();
    assert_eq!(failed, 0, "{:?}", answers.iter().find(|a| a.is_err()));
    workers.stop().await;
    stage.drain().await;
    stage.assert_balanced(sale.voucher_id).await;
    report(
        "SCRIPT FLUSH every 20 ms",
        &format!("{count} purchases in {took:?} beside {times} flushes, {failed} failed"),
    );
}
