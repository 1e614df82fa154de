//! From the stream to the row: nothing lost, nothing twice, whatever happens to the queue.

use std::time::Duration;

use futures::future::join_all;
use seckill::{Error, Lane, OrderState, Page, Purchase, UserId, VoucherId};
use testkit::{Stage, eventually};

/// Lets `count` new buyers buy; their orders as (user, order).
async fn bought(stage: &Stage, voucher: VoucherId, count: u32) -> Vec<(i64, i64)> {
    let buyers = stage.buyers(count).await;
    let answers = join_all(
        buyers
            .iter()
            .map(|b| stage.shop.buy(b.user_id, voucher, "")),
    )
    .await;
    let order = |a: &Result<Purchase, _>| {
        a.as_ref()
            .expect("answered")
            .order_id()
            .expect("admitted")
            .get()
    };
    let mut orders: Vec<_> = buyers
        .iter()
        .zip(&answers)
        .map(|(b, a)| (b.user_id.get(), order(a)))
        .collect();
    orders.sort_by_key(|(_, order)| *order);
    orders
}

#[tokio::test(flavor = "multi_thread")]
async fn every_admitted_order_becomes_a_row_and_its_buyer_sees_it_happen() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(30).await;
    let orders = bought(&stage, sale.voucher_id, 30).await;
    let (user, id) = (
        UserId::new(orders[0].0).expect("positive"),
        orders[0].1.to_string().parse().expect("an id"),
    );
    let queued = stage.shop.order(user, id).await.expect("found by its mark");
    assert_eq!(
        (queued.state, queued.title.as_str()),
        (OrderState::Queued, "Lunch for two")
    );
    assert_eq!(
        stage
            .shop
            .orders(user, &Page::first())
            .await
            .expect("listed")
            .items,
        [queued]
    );
    stage.drain().await;
    assert_eq!(stage.rows(sale.voucher_id).await, orders);
    stage.assert_balanced(sale.voucher_id).await;
    let confirmed = stage.shop.order(user, id).await.expect("found by its row");
    assert_eq!(confirmed.state, OrderState::Confirmed);
    assert!(confirmed.confirmed_ms.is_some());
    assert_eq!(
        stage
            .shop
            .orders(user, &Page::first())
            .await
            .expect("listed")
            .items,
        [confirmed]
    );
    let stranger = UserId::new(orders[1].0).expect("positive");
    assert!(matches!(
        stage.shop.order(stranger, id).await,
        Err(Error::NotFound)
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_stream_loses_no_order() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(100).await;
    let before = bought(&stage, sale.voucher_id, 20).await;
    stage.redis_command(&["DEL", &stage.key("orders")]).await;
    let after = bought(&stage, sale.voucher_id, 20).await;
    stage.reconcile().await;
    stage.drain().await;
    let rows = stage.rows(sale.voucher_id).await;
    assert!(
        before
            .iter()
            .chain(&after)
            .all(|order| rows.contains(order))
    );
    stage.assert_balanced(sale.voucher_id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_waits_in_a_deleted_stream_goes_on() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(100).await;
    let mut consumer = stage
        .consumer_with(|c| c.block = Duration::from_secs(20))
        .await;
    bought(&stage, sale.voucher_id, 1).await;
    stage
        .consume_until(&mut consumer, |done| done.persisted.len() == 1)
        .await;
    let wait = async {
        stage
            .consume_until(&mut consumer, |done| done.persisted.len() == 5)
            .await;
    };
    let disturb = async {
        eventually("the consumer waits", || async {
            let clients = stage
                .redis_command(&["CLIENT", "LIST"])
                .await
                .as_string()
                .unwrap_or_default();
            clients
                .lines()
                .any(|line| line.contains("flags=b") && line.contains("cmd=xreadgroup"))
                .then_some(())
        })
        .await;
        stage.redis_command(&["DEL", &stage.key("orders")]).await;
        bought(&stage, sale.voucher_id, 5).await;
    };
    tokio::join!(wait, disturb);
    assert_eq!(stage.rows(sale.voucher_id).await.len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destroyed_group_loses_no_order_and_doubles_none() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(100).await;
    let first = bought(&stage, sale.voucher_id, 10).await;
    stage.drain().await;
    let second = bought(&stage, sale.voucher_id, 10).await;
    stage
        .redis_command(&["XGROUP", "DESTROY", &stage.key("orders"), "orders"])
        .await;
    stage.drain().await;
    let rows = stage.rows(sale.voucher_id).await;
    assert_eq!(rows, [first, second].concat());
    stage.assert_balanced(sale.voucher_id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_consumer_holds_is_claimed_and_written_once() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(100).await;
    let orders = bought(&stage, sale.voucher_id, 15).await;
    stage.drain().await;
    // A consumer that read and died: its entries are pending, its heartbeat is gone.
    let more = bought(&stage, sale.voucher_id, 5).await;
    stage
        .redis_command(&[
            "XREADGROUP",
            "GROUP",
            "orders",
            "dead",
            "COUNT",
            "20",
            "STREAMS",
            &stage.key("orders"),
            ">",
        ])
        .await;
    let mut consumer = stage.consumer().await;
    let done = stage
        .consume_until(&mut consumer, |done| done.persisted.len() == 5)
        .await;
    assert_eq!(done.claimed, 5);
    assert_eq!(stage.rows(sale.voucher_id).await, [orders, more].concat());
    let forgotten = async {
        while stage
            .shop
            .overview()
            .await
            .workers
            .iter()
            .any(|worker| worker.name == "dead")
        {
            consumer.step().await.expect("a step");
        }
    };
    tokio::time::timeout(testkit::DEADLINE, forgotten)
        .await
        .expect("the dead consumer is forgotten");
    consumer.close().await;
    stage.assert_balanced(sale.voucher_id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_entry_is_a_dead_letter_with_its_reason_and_delays_nobody() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(2_000).await;
    let orders = bought(&stage, sale.voucher_id, 499).await;
    let stream = stage.key("orders");
    let voucher = sale.voucher_id.to_string();
    stage
        .redis_command(&[
            "XADD",
            &stream,
            "*",
            "v",
            "1",
            "order_id",
            "five",
            "user_id",
            "1",
            "voucher_id",
            &voucher,
        ])
        .await;
    stage
        .redis_command(&["XADD", &stream, "*", "nothing", "at all"])
        .await;
    stage
        .redis_command(&[
            "XADD",
            &stream,
            "*",
            "v",
            "1",
            "order_id",
            "77",
            "user_id",
            "1",
            "voucher_id",
            &voucher,
            "admitted_ms",
            "5",
        ])
        .await;
    let more = bought(&stage, sale.voucher_id, 500).await;
    let mut consumer = stage.consumer().await;
    let done = stage
        .consume_until(&mut consumer, |done| {
            done.persisted.len() == 999 && done.dead.len() == 3
        })
        .await;
    assert!(
        done.dead
            .iter()
            .any(|(_, reason)| reason.contains("order_id is missing or malformed"))
    );
    assert!(
        done.dead
            .iter()
            .any(|(_, reason)| reason.starts_with("no mark"))
    );
    assert_eq!(stage.rows(sale.voucher_id).await, [orders, more].concat());
    let letters = stage
        .shop
        .dead_letters(None, &Page::first())
        .await
        .expect("listed")
        .items;
    assert_eq!(letters.len(), 3);
    let forged = letters
        .iter()
        .find(|letter| letter.order_id == "77")
        .expect("the forged one");
    // A forged entry never gives stock back.
    let left = stage
        .shop
        .sale(sale.voucher_id)
        .await
        .expect("the sale")
        .stock;
    let by = stage.admin().await.user_id;
    for letter in &letters {
        stage
            .shop
            .discard(by, letter.entry_id)
            .await
            .expect("discarded");
    }
    assert_eq!(
        stage
            .shop
            .sale(sale.voucher_id)
            .await
            .expect("the sale")
            .stock,
        left,
        "{forged:?}"
    );
    consumer.close().await;
    stage.assert_balanced(sale.voucher_id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_the_database_refuses_is_dead_lettered_after_its_attempts() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(10).await;
    let ghost = UserId::new(999_999_999).expect("positive");
    let answer = stage
        .shop
        .buy(ghost, sale.voucher_id, "")
        .await
        .expect("Redis does not know accounts");
    let orders = bought(&stage, sale.voucher_id, 3).await;
    let mut consumer = stage.consumer_with(|c| c.max_attempts = 3).await;
    let done = stage
        .consume_until(&mut consumer, |done| done.dead.len() == 1)
        .await;
    assert_eq!(done.persisted.len(), 3);
    assert_eq!(stage.rows(sale.voucher_id).await, orders);
    let order = stage
        .shop
        .order(ghost, answer.order_id().expect("admitted"))
        .await
        .expect("its mark is there");
    assert_eq!(
        order.state,
        OrderState::Queued,
        "a dead letter is queued to its buyer"
    );
    let by = stage.admin().await.user_id;
    stage
        .shop
        .discard(by, done.dead[0].0)
        .await
        .expect("discarded");
    assert_eq!(
        stage
            .shop
            .sale(sale.voucher_id)
            .await
            .expect("the sale")
            .stock,
        7
    );
    consumer.close().await;
    stage.assert_balanced(sale.voucher_id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_kills_its_workers_is_given_up() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(10).await;
    bought(&stage, sale.voucher_id, 1).await;
    let mut consumer = stage.consumer_with(|c| c.max_attempts = 4).await;
    let stream = stage.key("orders");
    let entry = stage.redis_command(&["XRANGE", &stream, "-", "+"]).await;
    let entry = match &entry {
        fred::types::Value::Array(rows) => match &rows[0] {
            fred::types::Value::Array(parts) => parts[0].as_string().expect("an id"),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    // Four workers have raised the count, and died before they could say how it went.
    stage
        .redis_command(&["HSET", &stage.key("attempts"), &entry, "4"])
        .await;
    let done = stage
        .consume_until(&mut consumer, |done| done.read > 0)
        .await;
    assert_eq!(done.persisted.len(), 1, "a first batch is not counted");
    bought(&stage, sale.voucher_id, 1).await;
    stage
        .redis_command(&[
            "XREADGROUP",
            "GROUP",
            "orders",
            "killed",
            "STREAMS",
            &stream,
            ">",
        ])
        .await;
    let pending = stage
        .shop
        .pending(Some(Lane(0)), &Page::first())
        .await
        .expect("listed")
        .items;
    let entry = pending[0].entry_id.entry.to_string();
    stage
        .redis_command(&["HSET", &stage.key("attempts"), &entry, "4"])
        .await;
    let done = stage
        .consume_until(&mut consumer, |done| !done.dead.is_empty())
        .await;
    assert!(
        done.dead[0].1.contains("its worker died"),
        "{:?}",
        done.dead
    );
    let by = stage.admin().await.user_id;
    stage
        .shop
        .replay(by, done.dead[0].0)
        .await
        .expect("replayed");
    stage
        .consume_until(&mut consumer, |done| done.persisted.len() == 1)
        .await;
    consumer.close().await;
    stage.assert_balanced(sale.voucher_id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_entry_of_an_order_is_only_removed() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(10).await;
    let orders = bought(&stage, sale.voucher_id, 1).await;
    let (user, order) = (orders[0].0.to_string(), orders[0].1.to_string());
    let voucher = sale.voucher_id.to_string();
    stage
        .redis_command(&[
            "XADD",
            &stage.key("orders"),
            "*",
            "v",
            "1",
            "order_id",
            &order,
            "user_id",
            &user,
            "voucher_id",
            &voucher,
            "admitted_ms",
            "5",
        ])
        .await;
    let mut consumer = stage.consumer().await;
    let done = stage
        .consume_until(&mut consumer, |done| {
            done.duplicates + done.persisted.len() >= 2
        })
        .await;
    assert_eq!(
        (done.persisted.len(), done.duplicates, done.dead.len()),
        (1, 1, 0)
    );
    consumer.close().await;
    stage.assert_balanced(sale.voucher_id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_postgresql_is_away_orders_wait_and_none_is_counted_against() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(100).await;
    let name = stage
        .config
        .database_url
        .rsplit('/')
        .next()
        .and_then(|n| n.split('?').next())
        .expect("a name")
        .to_owned();
    let server = sqlx::PgPool::connect(&testkit::database_server())
        .await
        .expect("the server answers");
    let orders = bought(&stage, sale.voucher_id, 20).await;
    let mut consumer = stage.consumer_with(|c| c.max_attempts = 1).await;
    sqlx::query(&format!("alter database {name} allow_connections false"))
        .execute(&server)
        .await
        .expect("closed");
    sqlx::query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1")
        .bind(&name)
        .execute(&server)
        .await
        .expect("cut");
    let mut waited = 0;
    while waited < 5 {
        match consumer.step().await {
            Ok(step) => waited += usize::from(step.waited),
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    }
    sqlx::query(&format!("alter database {name} allow_connections true"))
        .execute(&server)
        .await
        .expect("opened");
    let done = stage
        .consume_until(&mut consumer, |done| done.persisted.len() == 20)
        .await;
    assert_eq!(done.dead, []);
    assert_eq!(stage.rows(sale.voucher_id).await, orders);
    consumer.close().await;
    stage.assert_balanced(sale.voucher_id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_entries_are_listed_page_by_page() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(10).await;
    let orders = bought(&stage, sale.voucher_id, 5).await;
    stage
        .redis_command(&["XGROUP", "CREATE", &stage.key("orders"), "orders", "0"])
        .await;
    stage
        .redis_command(&[
            "XREADGROUP",
            "GROUP",
            "orders",
            "w1",
            "STREAMS",
            &stage.key("orders"),
            ">",
        ])
        .await;
    let first = stage
        .shop
        .pending(None, &Page::parse(None, Some("3")).expect("a page"))
        .await
        .expect("listed");
    let second = Page::parse(first.next.as_deref(), Some("3")).expect("a page");
    let second = stage.shop.pending(None, &second).await.expect("listed");
    let listed: Vec<String> = first
        .items
        .iter()
        .chain(&second.items)
        .map(|entry| entry.order_id.clone())
        .collect();
    let mut expected: Vec<String> = orders.iter().map(|(_, order)| order.to_string()).collect();
    let mut sorted = listed.clone();
    sorted.sort();
    expected.sort();
    assert_eq!((sorted, second.next), (expected, None));
    assert!(
        first
            .items
            .iter()
            .all(|entry| entry.consumer == "w1" && entry.deliveries == 1)
    );
    let lane = &stage.shop.overview().await.lanes[0];
    assert_eq!(
        (lane.pending, lane.stream_length, lane.in_flight, lane.lag),
        (5, 5, 5, Some(0))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_order_is_listed_on_whatever_page_its_id_falls() {
    let stage = Stage::new().await;
    let buyer = stage.buyers(1).await.remove(0);
    let mut ids = Vec::new();
    for written in [false, true, true] {
        let sale = stage.open_sale(5).await;
        let order = stage
            .shop
            .buy(buyer.user_id, sale.voucher_id, "")
            .await
            .expect("answered");
        let order = order.order_id().expect("admitted");
        ids.push(order);
        if written {
            sqlx::query(
                "insert into voucher_order (order_id, user_id, voucher_id, state, admitted_ms, settled_ms)
                 values ($1, $2, $3, 'confirmed', 1, 1)",
            )
            .bind(order.get())
            .bind(buyer.user_id.get())
            .bind(sale.voucher_id.get())
            .execute(&stage.pool)
            .await
            .expect("inserted");
        }
    }
    ids.reverse();
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = Page::parse(after.as_deref(), Some("1")).expect("a page");
        let page = stage
            .shop
            .orders(buyer.user_id, &page)
            .await
            .expect("listed");
        listed.extend(page.items.iter().map(|order| order.order_id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed, ids);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_can_read_stops_no_other_sale() {
    let stage = Stage::new().await;
    let (broken, sound) = (
        stage.open_sale(5).await.voucher_id,
        stage.open_sale(10).await.voucher_id,
    );
    let orders = bought(&stage, sound, 4).await;
    let torn = orders[1].1.to_string();
    stage
        .redis_command(&["HSET", &stage.key("inflight"), &torn, "1|q|no mark"])
        .await;
    stage
        .redis_command(&[
            "HSET",
            &stage.key(&format!("sale:{broken}")),
            "stock",
            "many",
        ])
        .await;

    // The others are written, and the one whose mark is torn waits for an operator.
    let mut consumer = stage.consumer().await;
    let done = stage
        .consume_until(&mut consumer, |done| {
            done.persisted.len() == 3 && done.dead.len() == 1
        })
        .await;
    assert!(done.dead[0].1.contains("no mark"), "{:?}", done.dead);
    let mut reconciler = seckill::Reconciler::new(&stage.shop);
    let round = reconciler.step().await.expect("a round");
    assert_eq!((round.failed, round.skipped), (vec![broken], false));
    reconciler.close().await;
    consumer.close().await;

    // A process that starts now sells the one and not the other.
    let fresh = stage.another().await;
    let buyer = stage.buyers(1).await.remove(0);
    let bought = fresh.buy(buyer.user_id, sound, "").await;
    assert!(
        matches!(bought, Ok(Purchase::Admitted { .. })),
        "{bought:?}"
    );
    let refused = fresh.buy(buyer.user_id, broken, "").await;
    assert!(matches!(refused, Err(Error::Internal(_))), "{refused:?}");
}
