//! Loading: a sale that was never loaded opens by itself, one that was lost comes back closed,
//! and loading again never resets live stock.

use futures::future::join_all;
use seckill::{Purchase, Reconciler, SaleState, VoucherId};
use testkit::Stage;

async fn buy(stage: &Stage, voucher: VoucherId, count: u32) -> Vec<Purchase> {
    let buyers = stage.buyers(count).await;
    let answers = join_all(
        buyers
            .iter()
            .map(|b| stage.shop.buy(b.user_id, voucher, "")),
    )
    .await;
    answers
        .into_iter()
        .map(|answer| answer.expect("answered"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_between_the_row_and_redis_is_repaired_and_the_sale_opens() {
    let stage = Stage::new().await;
    // The row as a process left it that died before the preload.
    let id: i64 = sqlx::query_scalar(
        "insert into voucher (lane, title, subtitle, rules, pay_cents, value_cents, total, stock, begin_ms, end_ms)
         values (0, 'Lunch', '', '', 1, 2, 3, 3, 0, 4000000000000) returning voucher_id",
    )
    .fetch_one(&stage.pool)
    .await
    .expect("inserted");
    let id = VoucherId::new(id).expect("positive");
    assert_eq!(
        stage.shop.sale(id).await.expect("the sale").state,
        SaleState::NotLoaded
    );
    assert_eq!(buy(&stage, id, 1).await, [Purchase::NotLoaded]);
    stage.reconcile().await;
    let sale = stage.shop.sale(id).await.expect("the sale");
    assert_eq!((sale.state, sale.stock), (SaleState::Open, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_before_loading_was_cleared_is_finished() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(3).await;
    stage
        .redis_command(&[
            "HSET",
            &stage.key(&format!("sale:{}", sale.voucher_id)),
            "loading",
            "1",
        ])
        .await;
    assert_eq!(buy(&stage, sale.voucher_id, 1).await, [Purchase::NotLoaded]);
    let done = Reconciler::new(&stage.shop).step().await.expect("a round");
    assert_eq!(done.finished, [sale.voucher_id]);
    assert!(matches!(
        buy(&stage, sale.voucher_id, 1).await[0],
        Purchase::Admitted { .. }
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_key_is_lost_the_sale_closes_comes_back_exact_and_waits_for_an_admin() {
    for lost in ["sale", "buyers", "inflight", "everything"] {
        let stage = Stage::new().await;
        let sale = stage.open_sale(10).await;
        let id = sale.voucher_id;
        let by = stage.admin().await.user_id;
        assert_eq!(buy(&stage, id, 3).await.len(), 3);
        stage.drain().await;
        let queued = buy(&stage, id, 2).await;
        let (sale_key, buyers_key) = (
            stage.key(&format!("sale:{id}")),
            stage.key(&format!("buyers:{id}")),
        );
        let (inflight, orders) = (stage.key("inflight"), stage.key("orders"));
        match lost {
            "sale" => stage.redis_command(&["DEL", &sale_key]).await,
            "buyers" => stage.redis_command(&["DEL", &buyers_key]).await,
            "inflight" => stage.redis_command(&["DEL", &inflight]).await,
            _ => {
                stage
                    .redis_command(&["DEL", &sale_key, &buyers_key, &inflight, &orders])
                    .await
            }
        };
        assert_eq!(
            buy(&stage, id, 1).await,
            [Purchase::NotLoaded],
            "{lost} gone: closed at once"
        );
        stage.reconcile().await;
        assert_eq!(
            buy(&stage, id, 1).await,
            [Purchase::Paused],
            "{lost} gone: back, but closed"
        );
        stage.drain().await;
        // Marks are the memory of what was in flight: with them gone the entries are dead letters.
        let dead = stage
            .shop
            .dead_letters(None, &seckill::Page::first())
            .await
            .expect("listed")
            .items;
        let expected = if lost == "inflight" { queued.len() } else { 0 };
        assert_eq!(dead.len(), expected, "{lost}");
        for letter in dead {
            stage
                .shop
                .replay(by, letter.entry_id)
                .await
                .expect("replayed");
        }
        stage.shop.resume(by, id).await.expect("resumed");
        stage.drain().await;
        let rows = if lost == "everything" { 3 } else { 5 };
        assert_eq!(stage.rows(id).await.len(), rows, "{lost}");
        let left = stage.shop.sale(id).await.expect("the sale").stock;
        assert_eq!(left, 10 - i64::try_from(rows).expect("few"), "{lost}");
        stage.assert_balanced(id).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reconciling_a_healthy_sale_changes_nothing() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(10).await;
    buy(&stage, sale.voucher_id, 4).await;
    let before = stage
        .redis_command(&["HGETALL", &stage.key(&format!("sale:{}", sale.voucher_id))])
        .await;
    for _ in 0..3 {
        let done = Reconciler::new(&stage.shop).step().await;
        // Another round may hold the lock for a moment longer.
        assert!(done.is_ok_and(|done| done.skipped || (done.loaded.is_empty() && done.drift.is_empty())));
    }
    let after = stage
        .redis_command(&["HGETALL", &stage.key(&format!("sale:{}", sale.voucher_id))])
        .await;
    assert_eq!(before, after);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_a_crash_left_unapplied_is_applied_once_and_in_order() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(1).await;
    let id = sale.voucher_id;
    for (rev, kind, value) in [(1, "stock", 4), (2, "pause", 0), (3, "resume", 0)] {
        sqlx::query(
            "insert into voucher_change (voucher_id, rev, kind, value) values ($1, $2, $3, $4)",
        )
        .bind(id.get())
        .bind(i64::from(rev))
        .bind(kind)
        .bind(i64::from(value))
        .execute(&stage.pool)
        .await
        .expect("inserted");
    }
    sqlx::query("update voucher set rev = 3, total = 5, stock = 5 where voucher_id = $1")
        .bind(id.get())
        .execute(&stage.pool)
        .await
        .expect("updated");
    stage.reconcile().await;
    stage.reconcile().await;
    let sale = stage.shop.sale(id).await.expect("the sale");
    assert_eq!(
        (sale.total, sale.stock, sale.state),
        (5, 5, SaleState::Open)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_loads_at_once_leave_one_whole_sale() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(50).await;
    buy(&stage, sale.voucher_id, 5).await;
    stage
        .redis_command(&["DEL", &stage.key(&format!("sale:{}", sale.voucher_id))])
        .await;
    let shops = [
        stage.another().await,
        stage.another().await,
        stage.another().await,
    ];
    join_all(shops.iter().map(|shop| async move {
        let mut reconciler = Reconciler::new(shop);
        reconciler.step().await.expect("a round");
        reconciler.close().await;
    }))
    .await;
    stage.reconcile().await;
    let back = stage.shop.sale(sale.voucher_id).await.expect("the sale");
    assert_eq!((back.state, back.stock), (SaleState::Paused, 45));
    stage.drain().await;
    stage.assert_balanced(sale.voucher_id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_no_counter_knows_is_drift() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(10).await;
    let buyer = &stage.buyers(1).await[0];
    sqlx::query(
        "insert into voucher_order (order_id, user_id, voucher_id, state, admitted_ms, settled_ms)
         values (7, $1, $2, 'confirmed', 1, 1)",
    )
    .bind(buyer.user_id.get())
    .bind(sale.voucher_id.get())
    .execute(&stage.pool)
    .await
    .expect("inserted");
    let done = Reconciler::new(&stage.shop).step().await.expect("a round");
    assert_eq!(done.drift, [sale.voucher_id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_created_while_the_reconciler_runs_is_never_closed_by_it() {
    let stage = Stage::new().await;
    let reconcile = async {
        for _ in 0..60 {
            let mut reconciler = Reconciler::new(&stage.shop);
            reconciler.step().await.expect("a round");
            reconciler.close().await;
        }
    };
    let create = async {
        let mut made = Vec::new();
        for _ in 0..20 {
            made.push(stage.open_sale(1).await.voucher_id);
        }
        made
    };
    let ((), made) = tokio::join!(reconcile, create);
    stage.reconcile().await;
    for id in made {
        assert_eq!(
            stage.shop.sale(id).await.expect("the sale").state,
            SaleState::Open
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_that_drifts_is_closed_reported_and_resumed_by_an_admin() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(10).await;
    let id = sale.voucher_id;
    buy(&stage, id, 3).await;
    stage.drain().await;
    // A unit that vanished without an order.
    stage
        .redis_command(&["HINCRBY", &stage.key(&format!("sale:{id}")), "stock", "-1"])
        .await;
    let mut reconciler = Reconciler::new(&stage.shop);
    assert_eq!(reconciler.step().await.expect("a round").drift, [id]);
    assert_eq!(buy(&stage, id, 1).await, [Purchase::Paused]);
    assert_eq!(
        reconciler.step().await.expect("a round").drift,
        [],
        "loaded anew it is in balance"
    );
    let by = stage.admin().await.user_id;
    stage.shop.resume(by, id).await.expect("resumed");
    assert!(matches!(
        buy(&stage, id, 1).await[0],
        Purchase::Admitted { .. }
    ));
    let reports = stage
        .shop
        .reports(Some(id), &seckill::Page::first())
        .await
        .expect("listed")
        .items;
    assert!(
        reports
            .iter()
            .any(|report| report.drift && report.action == "closed"),
        "{reports:?}"
    );
    let audit = stage
        .shop
        .audit_log(&seckill::Page::first())
        .await
        .expect("listed")
        .items;
    assert_eq!(
        audit
            .iter()
            .map(|entry| entry.action.as_str())
            .collect::<Vec<_>>(),
        ["resume", "create"]
    );
    stage.drain().await;
    stage.assert_balanced(id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_sale_frees_its_memory_only_when_nothing_is_in_flight() {
    let stage =
        Stage::with(|config| config.hold_after_end = std::time::Duration::from_millis(1)).await;
    let sale = stage.sale_between(5, -1_000, 1_000).await;
    let id = sale.voucher_id;
    buy(&stage, id, 1).await;
    testkit::eventually("the end", || async {
        (stage.shop.sale(id).await.expect("the sale").state == SaleState::Ended).then_some(())
    })
    .await;
    let mut reconciler = Reconciler::new(&stage.shop);
    assert_eq!(reconciler.step().await.expect("a round").released, []);
    stage.drain().await;
    assert_eq!(reconciler.step().await.expect("a round").released, [id]);
    assert_eq!(reconciler.step().await.expect("a round").released, []);
    let left = stage
        .redis_command(&[
            "EXISTS",
            &stage.key(&format!("sale:{id}")),
            &stage.key(&format!("buyers:{id}")),
        ])
        .await;
    assert_eq!(left.as_i64(), Some(0));
    assert_eq!(buy(&stage, id, 1).await, [Purchase::Ended]);
    assert_eq!(
        stage.shop.sale(id).await.expect("the sale").state,
        SaleState::Ended
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_that_a_dead_attempt_took_does_not_stop_confirmations_for_ever() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(10).await;
    let id = sale.voucher_id;
    buy(&stage, id, 3).await;
    // As a process left it that died between taking an epoch and loading.
    sqlx::query("update voucher set epoch = epoch + 1 where voucher_id = $1")
        .bind(id.get())
        .execute(&stage.pool)
        .await
        .expect("updated");
    stage.reconcile().await;
    assert_eq!(buy(&stage, id, 1).await, [Purchase::Paused]);
    stage.drain().await;
    assert_eq!(stage.rows(id).await.len(), 3);
    stage.assert_balanced(id).await;
}
