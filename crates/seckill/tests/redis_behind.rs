//! A Redis that comes back as another one: behind, a replica, or without persistence.

use std::collections::{HashMap, HashSet};

use futures::future::join_all;
use seckill::{Lane, Purchase, SaleState, User, VoucherId};
use testkit::{DEADLINE, PrivateRedis, Stage, Workers, eventually, is_unavailable, report, scale};

async fn buy_all(stage: &Stage, voucher: VoucherId, buyers: &[User]) -> Vec<Purchase> {
    let buys = buyers
        .iter()
        .map(|b| stage.shop.buy(b.user_id, voucher, ""));
    let answers = join_all(buys).await;
    answers
        .into_iter()
        .map(|answer| answer.expect("answered"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_behind_closes_the_lane() {
    let rounds = 5 * scale() as usize;
    let mut redis = PrivateRedis::start().await;
    let url = redis.url();
    let stage = Stage::with(|c| c.redis_url = url).await;
    let by = stage.admin().await.user_id;
    let (mut lost, mut kept) = (0, 0);
    for round in 0..rounds {
        let sale = stage.open_sale(60).await;
        let id = sale.voucher_id;
        let buyers = stage.buyers(120).await;
        // Rows, then entries that are queued while the copy is made.
        buy_all(&stage, id, &buyers[..10]).await;
        stage.drain().await;
        buy_all(&stage, id, &buyers[10..20]).await;
        let copy = redis.copy_data();
        // After the copy: ten that become rows with those before, and ten that do not.
        buy_all(&stage, id, &buyers[20..30]).await;
        stage.drain().await;
        let forgotten = buy_all(&stage, id, &buyers[30..40]).await;
        let epoch: i64 = epoch_of(&stage, id).await;

        redis.kill();
        redis.put_data(&copy);
        redis.start_again().await;
        let alarms = i64::try_from(round).expect("few");
        eventually("the process notices", || async {
            let closed = stage.shop.sale(id).await.ok()?.state == SaleState::Paused;
            (stage.shop.alarms() > alarms.unsigned_abs() && closed).then_some(())
        })
        .await;
        stage
            .shop
            .wait_until_selling(DEADLINE)
            .await
            .expect("looked");
        assert_eq!(
            buy_all(&stage, id, &buyers[40..41]).await,
            [Purchase::Paused]
        );
        assert!(epoch_of(&stage, id).await > epoch, "a new epoch");
        let rebuilt = stage.shop.sale(id).await.expect("the sale");
        assert_eq!(rebuilt.stock, 30, "from rows and marks: thirty of sixty");

        let workers = Workers::start(&stage.shop, &[Lane(0)], 1).await;
        stage
            .shop
            .resume(by, id)
            .await
            .expect("an admin resumes it");
        let rest = buy_all(&stage, id, &buyers[30..]).await;
        workers.stop().await;
        stage.reconcile().await;
        stage.drain().await;
        let rows = stage.rows(id).await;
        let users: HashSet<i64> = rows.iter().map(|(user, _)| *user).collect();
        assert_eq!((rows.len(), users.len()), (60, 60), "no oversell, one each");
        let admitted = rest.iter().filter(|p| p.order_id().is_some()).count();
        assert_eq!(admitted, 30);
        let rows: HashMap<i64, i64> = rows.into_iter().collect();
        for (buyer, purchase) in buyers[30..40].iter().zip(&forgotten) {
            let order = purchase.order_id().expect("admitted").get();
            if rows.get(&buyer.user_id.get()) == Some(&order) {
                kept += 1;
            } else {
                lost += 1;
            }
        }
        stage.assert_balanced(id).await;
        stage.shop.end(by, id).await.expect("ended");
    }
    assert_eq!(kept, 0, "what the disk lost before its row can't come back");
    report(
        "Redis behind what was seen",
        &format!(
            "{rounds} returns with older data, {} alarms, each closed under a new epoch; 0 oversold, {lost} admissions lost with the disk",
            stage.shop.alarms()
        ),
    );
}

async fn epoch_of(stage: &Stage, id: VoucherId) -> i64 {
    sqlx::query_scalar("select loaded_epoch from voucher where voucher_id = $1")
        .bind(id.get())
        .fetch_one(&stage.pool)
        .await
        .expect("the row")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_has_seen_nothing_notices_an_older_redis_before_it_sells() {
    let mut redis = PrivateRedis::start().await;
    let url = redis.url();
    let stage = Stage::with(|c| c.redis_url = url).await;
    let by = stage.admin().await.user_id;
    let buyers = stage.buyers(40).await;
    let fewer = stage.open_sale(20).await.voucher_id;
    let older = stage.open_sale(20).await.voucher_id;
    let untouched = stage.open_sale(20).await.voucher_id;
    for id in [fewer, older, untouched] {
        buy_all(&stage, id, &buyers[..5]).await;
    }
    stage.drain().await;
    let copy = redis.copy_data();
    // One sale gets rows that the copy knows nothing of, another one a later load.
    buy_all(&stage, fewer, &buyers[5..10]).await;
    stage.drain().await;
    let sentinel = ["HDEL", &stage.key("inflight"), &format!("@{}", older.get())];
    stage.redis_command(&sentinel).await;
    stage.reconcile().await;
    stage.shop.resume(by, older).await.expect("resumed");
    stage.shop.close().await;
    redis.kill();
    redis.put_data(&copy);
    redis.start_again().await;

    let fresh = stage.another().await;
    assert_eq!(fresh.alarms(), 2);
    for (id, left) in [(fewer, 10), (older, 15)] {
        let answer = fresh.buy(buyers[30].user_id, id, "").await;
        assert!(matches!(answer, Ok(Purchase::Paused)), "{answer:?}");
        let rebuilt = fresh.sale(id).await.expect("the sale");
        assert_eq!((rebuilt.stock, rebuilt.state), (left, SaleState::Paused));
        fresh.resume(by, id).await.expect("an admin resumes it");
    }
    let answers = join_all(buyers.iter().flat_map(|b| {
        let buy = |id| fresh.buy(b.user_id, id, "");
        [buy(fewer), buy(older), buy(untouched)]
    }))
    .await;
    let held = answers
        .iter()
        .filter(|a| a.as_ref().is_ok_and(|p| p.order_id().is_some()))
        .count();
    assert_eq!(held, 60, "each unit once");
    report(
        "a fresh process before an older Redis",
        "a load and five rows behind: both sales closed before the first purchase, 60 of 60 sold, 0 oversold",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_not_safe_keeps_the_gate_shut_until_it_is() {
    // A master that nobody reaches: the replica keeps its data and its role.
    let replica = ["--replicaof", "127.0.0.1", "1"];
    let forgetful = ["--appendonly", "no"];
    let lazy = ["--appendfsync", "everysec"];
    let evicting = ["--maxmemory-policy", "allkeys-lru"];
    let ways: [&[&str]; 4] = [&replica, &forgetful, &lazy, &evicting];
    for way in ways {
        let mut redis = PrivateRedis::start().await;
        let url = redis.url();
        let stage = Stage::with(|c| c.redis_url = url).await;
        let sale = stage.open_sale(10).await;
        let buyers = stage.buyers(12).await;
        buy_all(&stage, sale.voucher_id, &buyers[..4]).await;
        redis.kill();
        redis.start_as(way).await;
        stage
            .shop
            .wait_for_redis(DEADLINE)
            .await
            .expect("connected again");
        // It answers, and says what is wrong with it; nobody buys meanwhile.
        let findings = eventually("it can be asked", || async {
            stage.shop.redis_ground().await.ok()
        })
        .await;
        assert!(!findings.is_empty(), "{way:?}");
        for buyer in &buyers {
            let answer = stage.shop.buy(buyer.user_id, sale.voucher_id, "").await;
            assert!(is_unavailable(&answer), "{way:?}: {answer:?}");
        }
        assert!(!stage.shop.is_selling());
        redis.kill();
        redis.start_again().await;
        stage
            .shop
            .wait_until_selling(DEADLINE)
            .await
            .expect("right again");
        let answers = buy_all(&stage, sale.voucher_id, &buyers).await;
        let held = answers.iter().filter(|p| p.order_id().is_some()).count();
        assert_eq!((held, stage.shop.alarms()), (10, 0), "{way:?}");
        stage.drain().await;
        stage.assert_balanced(sale.voucher_id).await;
    }
    report(
        "Redis comes back unsafe",
        "replica, no AOF, fsync every second, evicting: each refused until it was right again",
    );
}
