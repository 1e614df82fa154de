//! The decision: who gets a voucher, and what everybody else is told.

use std::collections::HashSet;
use std::net::IpAddr;

use futures::future::join_all;
use seckill::{Error, Login, Page, Purchase, SaleState, VoucherId};
use testkit::{Stage, is_unavailable};

#[tokio::test(flavor = "multi_thread")]
async fn the_last_voucher_goes_to_exactly_one_buyer() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(1).await;
    let buyers = stage.buyers(50).await;
    let answers = join_all(
        buyers
            .iter()
            .map(|b| stage.shop.buy(b.user_id, sale.voucher_id, "")),
    )
    .await;
    let admitted = answers
        .iter()
        .filter(|a| matches!(a, Ok(Purchase::Admitted { .. })))
        .count();
    let sold_out = answers
        .iter()
        .filter(|a| matches!(a, Ok(Purchase::SoldOut)))
        .count();
    assert_eq!((admitted, sold_out), (1, 49));
    stage.drain().await;
    stage.assert_balanced(sale.voucher_id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_presses_often_has_one_order() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(10).await;
    let buyer = &stage.buyers(1).await[0];
    let answers =
        join_all((0..200).map(|_| stage.shop.buy(buyer.user_id, sale.voucher_id, ""))).await;
    let ids: HashSet<_> = answers
        .iter()
        .map(|a| a.as_ref().expect("answered").order_id().expect("an id"))
        .collect();
    let admitted = answers
        .iter()
        .filter(|a| matches!(a, Ok(Purchase::Admitted { .. })))
        .count();
    assert_eq!((ids.len(), admitted), (1, 1));
    assert_eq!(
        stage
            .shop
            .sale(sale.voucher_id)
            .await
            .expect("the sale")
            .stock,
        9
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_begin_and_after_the_end_nothing_is_sold() {
    let stage = Stage::new().await;
    let early = stage.sale_between(5, 3_600_000, 7_200_000).await;
    let buyer = &stage.buyers(1).await[0];
    let answer = stage
        .shop
        .buy(buyer.user_id, early.voucher_id, "")
        .await
        .expect("answered");
    assert_eq!(
        answer,
        Purchase::NotStarted {
            begin_ms: early.begin_ms
        }
    );
    let late = stage.sale_between(5, -10_000, 600).await;
    testkit::eventually("the end", || async {
        let sale = stage.shop.sale(late.voucher_id).await.expect("the sale");
        (sale.state == SaleState::Ended).then_some(())
    })
    .await;
    assert_eq!(
        stage
            .shop
            .buy(buyer.user_id, late.voucher_id, "")
            .await
            .expect("answered"),
        Purchase::Ended
    );
    for id in [early.voucher_id, late.voucher_id] {
        assert_eq!(stage.shop.sale(id).await.expect("the sale").stock, 5);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_after_the_end_or_the_pause_still_gets_its_id() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(1).await;
    let (admin, buyer) = (stage.admin().await, stage.buyers(2).await);
    let bought = stage
        .shop
        .buy(buyer[0].user_id, sale.voucher_id, "")
        .await
        .expect("answered");
    let again = Purchase::AlreadyOrdered {
        order_id: bought.order_id().expect("admitted"),
    };
    assert_eq!(
        stage
            .shop
            .buy(buyer[0].user_id, sale.voucher_id, "")
            .await
            .expect("sold out"),
        again
    );
    stage
        .shop
        .pause(admin.user_id, sale.voucher_id)
        .await
        .expect("paused");
    assert_eq!(
        stage
            .shop
            .buy(buyer[0].user_id, sale.voucher_id, "")
            .await
            .expect("paused"),
        again
    );
    assert_eq!(
        stage
            .shop
            .buy(buyer[1].user_id, sale.voucher_id, "")
            .await
            .expect("paused"),
        Purchase::Paused
    );
    stage
        .shop
        .end(admin.user_id, sale.voucher_id)
        .await
        .expect("ended");
    assert_eq!(
        stage
            .shop
            .buy(buyer[0].user_id, sale.voucher_id, "")
            .await
            .expect("ended"),
        again
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voucher_that_does_not_exist_is_not_found() {
    let stage = Stage::new().await;
    let buyer = &stage.buyers(1).await[0];
    let unknown = VoucherId::new(987_654_321).expect("positive");
    for _ in 0..2 {
        assert!(matches!(
            stage.shop.buy(buyer.user_id, unknown, "").await,
            Err(Error::NotFound)
        ));
    }
    assert!(matches!(
        stage.shop.sale(unknown).await,
        Err(Error::NotFound)
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_changes_holds_at_once() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(1).await;
    let (id, by) = (sale.voucher_id, stage.admin().await.user_id);
    let buyers = stage.buyers(4).await;
    stage
        .shop
        .buy(buyers[0].user_id, id, "")
        .await
        .expect("answered");
    assert_eq!(
        stage
            .shop
            .buy(buyers[1].user_id, id, "")
            .await
            .expect("answered"),
        Purchase::SoldOut
    );
    let more = stage
        .shop
        .add_stock(by, id, 2, Some("r1"))
        .await
        .expect("added");
    assert_eq!(
        (more.total, more.stock, more.state),
        (3, 2, SaleState::Open)
    );
    let same = stage
        .shop
        .add_stock(by, id, 2, Some("r1"))
        .await
        .expect("a repeat");
    assert_eq!(same.total, 3, "a repeated request changes nothing");
    assert!(matches!(
        stage.shop.add_stock(by, id, 3, Some("r1")).await,
        Err(Error::Conflict(_))
    ));
    assert!(matches!(
        stage.shop.add_stock(by, id, 0, None).await,
        Err(Error::Invalid(_))
    ));
    assert!(matches!(
        stage.shop.add_stock(by, id, 10_000_000, None).await,
        Err(Error::Invalid(_))
    ));
    assert!(matches!(
        stage.shop.buy(buyers[1].user_id, id, "").await,
        Ok(Purchase::Admitted { .. })
    ));
    assert_eq!(
        stage.shop.pause(by, id).await.expect("paused").state,
        SaleState::Paused
    );
    assert_eq!(
        stage.shop.pause(by, id).await.expect("a repeat").state,
        SaleState::Paused
    );
    assert_eq!(
        stage.shop.resume(by, id).await.expect("resumed").state,
        SaleState::Open
    );
    assert!(matches!(
        stage.shop.buy(buyers[2].user_id, id, "").await,
        Ok(Purchase::Admitted { .. })
    ));
    assert_eq!(
        stage.shop.end(by, id).await.expect("ended").state,
        SaleState::Ended
    );
    assert!(matches!(
        stage.shop.add_stock(by, id, 1, None).await,
        Err(Error::Conflict(_))
    ));
    assert!(matches!(
        stage.shop.resume(by, id).await,
        Err(Error::Conflict(_))
    ));
    stage.drain().await;
    stage.assert_balanced(id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_ended_before_its_begin_never_opens() {
    let stage = Stage::new().await;
    let sale = stage.sale_between(5, 3_600_000, 7_200_000).await;
    let (by, buyer) = (stage.admin().await.user_id, stage.buyers(1).await);
    assert_eq!(
        stage
            .shop
            .end(by, sale.voucher_id)
            .await
            .expect("ended")
            .state,
        SaleState::Ended
    );
    let answer = stage
        .shop
        .buy(buyer[0].user_id, sale.voucher_id, "")
        .await
        .expect("answered");
    assert_eq!(answer, Purchase::Ended);
}

#[tokio::test(flavor = "multi_thread")]
async fn buying_goes_on_while_scripts_are_flushed() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(1_000).await;
    let buyers = stage.buyers(300).await;
    let flush = async {
        for _ in 0..100 {
            stage.redis_command(&["SCRIPT", "FLUSH"]).await;
        }
    };
    let buy = async {
        for chunk in buyers.chunks(20) {
            let answers = join_all(
                chunk
                    .iter()
                    .map(|b| stage.shop.buy(b.user_id, sale.voucher_id, "")),
            )
            .await;
            for answer in answers {
                assert!(
                    matches!(answer, Ok(Purchase::Admitted { .. })),
                    "{answer:?}"
                );
            }
        }
    };
    tokio::join!(flush, buy);
    stage.drain().await;
    assert_eq!(stage.rows(sale.voucher_id).await.len(), 300);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_never_met_the_voucher_sells_while_postgresql_is_away() {
    let stage = Stage::new().await;
    let sale = stage.open_sale(5).await;
    let buyer = &stage.buyers(1).await[0];
    let mut config = stage.config.clone();
    config.database_url = "postgres://nobody@127.0.0.1:1/nowhere".into();
    let other = seckill::Shop::open(config).await.expect("valid settings");
    other
        .wait_until_selling(testkit::DEADLINE)
        .await
        .expect("Redis answers");
    let answer = other.buy(buyer.user_id, sale.voucher_id, "").await;
    let order_id = answer.expect("answered").order_id().expect("admitted");
    let order = other
        .order(buyer.user_id, order_id)
        .await
        .expect("the mark is found");
    assert_eq!(order.state, seckill::OrderState::Queued);
    let unknown = seckill::OrderId::new(5).expect("positive");
    assert!(
        is_unavailable(&other.order(buyer.user_id, unknown).await),
        "not found in Redis is not yet not found"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_away_is_said_at_once() {
    let mut config = seckill::ShopConfig::new(
        "postgres://nobody@127.0.0.1:1/nowhere",
        "redis://127.0.0.1:1",
    );
    config.prefix = testkit::unique("test");
    let shop = seckill::Shop::open(config).await.expect("valid settings");
    let (user, voucher) = (
        seckill::UserId::new(1).expect("positive"),
        VoucherId::new(1).expect("positive"),
    );
    assert!(is_unavailable(&shop.buy(user, voucher, "").await));
    assert!(is_unavailable(&shop.clock(None).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn sales_are_listed_page_by_page_newest_first() {
    let stage = Stage::new().await;
    let mut made = Vec::new();
    for _ in 0..3 {
        made.push(stage.open_sale(1).await.voucher_id);
    }
    made.reverse();
    let first = stage
        .shop
        .sales(&Page::parse(None, Some("2")).expect("a page"))
        .await
        .expect("listed");
    let second = stage
        .shop
        .sales(&Page::parse(first.next.as_deref(), Some("2")).expect("a page"))
        .await
        .expect("listed");
    let ids: Vec<_> = first
        .items
        .iter()
        .chain(&second.items)
        .map(|sale| sale.voucher_id)
        .collect();
    assert_eq!((ids, second.next), (made, None));
    let wrong = Page {
        after: Some("x".into()),
        limit: 2,
    };
    assert!(matches!(
        stage.shop.sales(&wrong).await,
        Err(Error::Invalid(_))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_of_many_processes_never_repeat_and_rise_within_each() {
    let stage = Stage::with(|config| config.id_block = 7).await;
    let sale = stage.open_sale(4_000).await;
    let buyers = stage.buyers(400).await;
    let shops = [
        stage.shop.clone(),
        stage.another().await,
        stage.another().await,
        stage.another().await,
    ];
    let runs = shops
        .iter()
        .zip(buyers.chunks(100))
        .map(|(shop, mine)| async move {
            let mut ids = Vec::new();
            for buyer in mine {
                let answer = shop
                    .buy(buyer.user_id, sale.voucher_id, "")
                    .await
                    .expect("answered");
                ids.push(answer.order_id().expect("admitted"));
            }
            ids
        });
    let runs = join_all(runs).await;
    assert!(
        runs.iter()
            .all(|ids| ids.windows(2).all(|pair| pair[0] < pair[1])),
        "rising within a process"
    );
    let all: HashSet<_> = runs.iter().flatten().collect();
    assert_eq!(all.len(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_passwords_is_slowed_and_locks_nobody_else_out() {
    let stage = Stage::new().await;
    let shop = &stage.shop;
    let (guesser, herself) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
    let right = "correct horse";
    let made = shop
        .register_from(herself, "Anna", right)
        .await
        .expect("registered");
    let Login::Welcome(anna) = made else {
        panic!("{made:?}")
    };
    assert!(matches!(
        shop.register_from(herself, "anna", right).await,
        Err(Error::Conflict(_))
    ));
    assert!(matches!(
        shop.register_from(herself, "a b", right).await,
        Err(Error::Invalid(_))
    ));
    assert!(matches!(
        shop.register_from(herself, "bob", "short").await,
        Err(Error::Invalid(_))
    ));
    let nobody = shop.login(herself, "nobody", right).await.expect("checked");
    assert_eq!(nobody, Login::Wrong);
    // However many at once: exactly so many guesses are looked at.
    let guesses = join_all((0..30).map(|_| shop.login(guesser, "anna", "wrong horse"))).await;
    let looked_at = guesses
        .iter()
        .filter(|g| matches!(g, Ok(Login::Wrong)))
        .count();
    assert_eq!(looked_at, 10, "{guesses:?}");
    assert!(matches!(shop.login(guesser, "anna", right).await, Ok(Login::Wait { ms }) if ms > 0));
    let hers = join_all((0..30).map(|_| shop.login(herself, "ANNA", right))).await;
    assert!(
        hers.iter()
            .all(|answer| matches!(answer, Ok(Login::Welcome(user)) if *user == anna)),
        "{hers:?}"
    );
}
