//! Dead letters: settled once, whoever asks how often.

use seckill::{Error, LaneEntry, OrderState, Page, Purchase, Settled, User, VoucherId};
use testkit::Stage;

/// An order that became a dead letter because its buyer's account was missing; it is there again.
async fn dead_letter(stage: &Stage, voucher: VoucherId) -> (User, Purchase, LaneEntry) {
    let buyer = stage.buyers(1).await.remove(0);
    let purchase = stage
        .shop
        .buy(buyer.user_id, voucher, "")
        .await
        .expect("answered");
    sqlx::query("delete from user_account where user_id = $1")
        .bind(buyer.user_id.get())
        .execute(&stage.pool)
        .await
        .expect("deleted");
    let mut consumer = stage.consumer_with(|c| c.max_attempts = 2).await;
    let done = stage
        .consume_until(&mut consumer, |done| !done.dead.is_empty())
        .await;
    consumer.close().await;
    sqlx::query(
        "insert into user_account (user_id, username, username_key) overriding system value values ($1, $2, $2)",
    )
    .bind(buyer.user_id.get())
    .bind(&buyer.username)
    .execute(&stage.pool)
    .await
    .expect("there again");
    (buyer, purchase, done.dead[0].0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_after_the_cause_is_gone_gives_the_order_once() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(5).await;
    let (buyer, purchase, letter) = dead_letter(&stage, sale.voucher_id).await;
    let by = stage.admin().await.user_id;
    let other = stage.another().await;
    let (one, two) = tokio::join!(stage.shop.replay(by, letter), other.replay(by, letter));
    let replayed = [&one, &two]
        .iter()
        .filter(|r| matches!(r, Ok(Settled::Replayed)))
        .count();
    assert_eq!(replayed, 1, "{one:?} {two:?}");
    stage.drain().await;
    assert!(matches!(
        stage.shop.replay(by, letter).await,
        Err(Error::NotFound)
    ));
    let id = purchase.order_id().expect("admitted");
    let order = stage
        .shop
        .order(buyer.user_id, id)
        .await
        .expect("the order");
    assert_eq!(order.state, OrderState::Confirmed);
    assert_eq!(stage.rows(sale.voucher_id).await.len(), 1);
    stage.assert_balanced(sale.voucher_id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_discard_gives_the_unit_back_once_and_lets_the_buyer_try_again() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(5).await;
    let (buyer, purchase, letter) = dead_letter(&stage, sale.voucher_id).await;
    let by = stage.admin().await.user_id;
    let other = stage.another().await;
    let (one, two) = tokio::join!(stage.shop.discard(by, letter), other.discard(by, letter));
    assert!(one.is_ok() || two.is_ok(), "{one:?} {two:?}");
    assert_eq!(
        stage
            .shop
            .sale(sale.voucher_id)
            .await
            .expect("the sale")
            .stock,
        5
    );
    let id = purchase.order_id().expect("admitted");
    let order = stage
        .shop
        .order(buyer.user_id, id)
        .await
        .expect("the order");
    assert_eq!(order.state, OrderState::Failed);
    assert!(order.reason.is_some());
    let again = stage
        .shop
        .buy(buyer.user_id, sale.voucher_id, "")
        .await
        .expect("answered");
    assert!(matches!(again, Purchase::Admitted { .. }) && again.order_id() != Some(id));
    stage.drain().await;
    stage.assert_balanced(sale.voucher_id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_of_a_confirmed_order_is_settled_as_confirmed() {
    for replay in [true, false] {
        let stage = Stage::new().await;
        let sale = stage.open_sale(5).await;
        let (buyer, purchase, letter) = dead_letter(&stage, sale.voucher_id).await;
        // A stopped worker's late commit.
        sqlx::query(
            "insert into voucher_order (order_id, user_id, voucher_id, state, admitted_ms, settled_ms)
             values ($1, $2, $3, 'confirmed', 1, 1)",
        )
        .bind(purchase.order_id().expect("admitted").get())
        .bind(buyer.user_id.get())
        .bind(sale.voucher_id.get())
        .execute(&stage.pool)
        .await
        .expect("inserted");
        sqlx::query("update voucher set stock = stock - 1")
            .execute(&stage.pool)
            .await
            .expect("taken");
        let by = stage.admin().await.user_id;
        let settled = if replay {
            stage.shop.replay(by, letter).await
        } else {
            stage.shop.discard(by, letter).await
        };
        assert_eq!(settled.expect("settled"), Settled::Confirmed);
        assert_eq!(
            stage
                .shop
                .sale(sale.voucher_id)
                .await
                .expect("the sale")
                .stock,
            4
        );
        assert!(
            stage
                .shop
                .dead_letters(None, &Page::first())
                .await
                .expect("listed")
                .items
                .is_empty()
        );
        stage.assert_balanced(sale.voucher_id).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_dead_letters_come_back_from_their_marks() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(5).await;
    let (_, _, letter) = dead_letter(&stage, sale.voucher_id).await;
    stage.redis_command(&["DEL", &stage.key("dead")]).await;
    stage.reconcile().await;
    let letters = stage
        .shop
        .dead_letters(None, &Page::first())
        .await
        .expect("listed")
        .items;
    assert_eq!(letters.len(), 1);
    let by = stage.admin().await.user_id;
    assert_ne!(letters[0].entry_id, letter);
    stage
        .shop
        .replay(by, letters[0].entry_id)
        .await
        .expect("replayed");
    stage.drain().await;
    stage.assert_balanced(sale.voucher_id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_was_discarded_while_a_worker_held_it_ends_as_failed() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(5).await;
    let (buyer, purchase, letter) = dead_letter(&stage, sale.voucher_id).await;
    let by = stage.admin().await.user_id;
    stage.shop.replay(by, letter).await.expect("replayed");
    // The row `failed` is written while the entry is queued again, as by a console that was slow.
    sqlx::query(
        "insert into voucher_order (order_id, user_id, voucher_id, state, reason, admitted_ms, settled_ms)
         values ($1, $2, $3, 'failed', 'discarded', 1, 1)",
    )
    .bind(purchase.order_id().expect("admitted").get())
    .bind(buyer.user_id.get())
    .bind(sale.voucher_id.get())
    .execute(&stage.pool)
    .await
    .expect("inserted");
    let mut consumer = stage.consumer_with(|c| c.max_attempts = 2).await;
    let done = stage
        .consume_until(&mut consumer, |done| !done.dead.is_empty())
        .await;
    consumer.close().await;
    assert_eq!(
        stage
            .shop
            .discard(by, done.dead[0].0)
            .await
            .expect("discarded"),
        Settled::Discarded
    );
    assert_eq!(
        stage
            .shop
            .sale(sale.voucher_id)
            .await
            .expect("the sale")
            .stock,
        5
    );
    stage.assert_balanced(sale.voucher_id).await;
}
