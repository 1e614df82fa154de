//! Whatever key is flushed while a crowd buys: the sale closes by itself or goes on, nothing is
//! oversold, nobody holds two orders, and in the end the books balance.

use std::collections::HashSet;

use futures::future::join_all;
use seckill::{Error, Lane, Page, SaleState, Settled, User};
use testkit::{Crowd, Stage, Workers, eventually, report, scale};

/// Figures of one kind of loss.
#[derive(Default)]
struct Sum {
    sold: usize,
    reloaded: usize,
    discarded: usize,
    lost: usize,
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_key_is_flushed_nothing_is_oversold_and_the_books_balance() {
    let kinds = [
        "sale",
        "buyers",
        "inflight",
        "orders",
        "group",
        "attempts",
        "dead",
        "everything",
    ];
    let rounds = 10 * scale() as usize;
    let sums = join_all(kinds.map(|kind| tokio::spawn(flush_rounds(kind, rounds)))).await;
    for (kind, sum) in kinds.into_iter().zip(sums) {
        let sum = sum.unwrap_or_else(|error| panic!("{kind}: {error}"));
        report(
            &format!("flush of {kind}"),
            &format!(
                "{rounds} times, {} sold, 0 oversold, 0 buyers with two orders, loaded anew {} times, {} dead letters discarded, {} acknowledged ids without a confirmed order",
                sum.sold, sum.reloaded, sum.discarded, sum.lost
            ),
        );
        if !matches!(kind, "inflight" | "everything") {
            assert_eq!((sum.lost, sum.discarded), (0, 0), "{kind}");
        }
        let closes = matches!(kind, "sale" | "buyers" | "inflight" | "everything");
        assert_eq!(sum.reloaded, if closes { rounds } else { 0 }, "{kind}");
    }
}

async fn flush_rounds(kind: &'static str, rounds: usize) -> Sum {
    let stage = Stage::new().await;
    let by = stage.admin().await.user_id;
    let mut sum = Sum::default();
    for round in 0..rounds {
        let sale = stage.open_sale(40).await;
        let id = sale.voucher_id;
        let workers = Workers::start(&stage.shop, &[Lane(0)], 1).await;
        let buyers: Vec<User> = stage.buyers(60).await;
        let crowd = Crowd::start(std::slice::from_ref(&stage.shop), &[id], buyers, 8);
        crowd.more(5 + round).await;
        let keys = match kind {
            "sale" => vec![stage.key(&format!("sale:{id}"))],
            "buyers" => vec![stage.key(&format!("buyers:{id}"))],
            "everything" => all_keys(&stage).await,
            "group" => vec![],
            key => vec![stage.key(key)],
        };
        if kind == "group" {
            // There is none before a consumer has met the stream; then there is none to lose.
            let command = ["XGROUP", "DESTROY", &stage.key("orders"), "orders"];
            stage.redis_command(&command).await;
        } else {
            let words: Vec<&str> = std::iter::once("DEL")
                .chain(keys.iter().map(String::as_str))
                .collect();
            stage.redis_command(&words).await;
        }
        // It goes on, or comes back closed, and an admin lets it go on.
        eventually("the crowd has its answers", || async {
            if crowd.is_done() {
                return Some(());
            }
            let sale = stage.shop.sale(id).await.ok()?;
            if sale.state == SaleState::Paused {
                // Refused when it is being loaded again this very moment.
                let _ = stage.shop.resume(by, id).await;
            }
            None
        })
        .await;
        let told = crowd.end().await;
        workers.stop().await;
        stage.reconcile().await;
        stage.drain().await;
        sum.discarded += settle(&stage).await;
        stage.drain().await;
        stage.reconcile().await;

        let rows = stage.rows(id).await;
        let users: HashSet<i64> = rows.iter().map(|(user, _)| *user).collect();
        assert!(rows.len() <= 40, "{kind}: oversold");
        assert_eq!(users.len(), rows.len(), "{kind}: a buyer with two orders");
        stage.assert_balanced(id).await;
        sum.sold += rows.len();
        let rows: HashSet<(i64, i64)> = rows.into_iter().collect();
        sum.lost += told
            .orders
            .iter()
            .filter(|((_, user), order)| !rows.contains(&(*user, **order)))
            .count();
        let epoch: i64 =
            sqlx::query_scalar("select loaded_epoch from voucher where voucher_id = $1")
                .bind(id.get())
                .fetch_one(&stage.pool)
                .await
                .expect("the row");
        sum.reloaded += usize::from(epoch > 1);
        stage.shop.end(by, id).await.expect("ended");
    }
    sum
}

async fn all_keys(stage: &Stage) -> Vec<String> {
    let found = stage
        .redis_command(&["KEYS", &format!("{}:{{0}}:*", stage.config.prefix)])
        .await;
    found.convert().expect("a list of keys")
}

/// Settles every dead letter: replayed where that is possible, else discarded; tells how many of these.
async fn settle(stage: &Stage) -> usize {
    let by = stage.admin().await.user_id;
    let mut discarded = 0;
    loop {
        let letters = stage.shop.dead_letters(None, &Page::first()).await;
        let letters = letters.expect("listed").items;
        if letters.is_empty() {
            return discarded;
        }
        for letter in letters {
            match stage.shop.replay(by, letter.entry_id).await {
                Ok(_) | Err(Error::NotFound) => {}
                Err(Error::Conflict(_)) => {
                    let settled = stage.shop.discard(by, letter.entry_id).await;
                    discarded += usize::from(matches!(settled, Ok(Settled::Discarded)));
                    settled.expect("settled");
                }
                Err(error) => panic!("replay: {error}"),
            }
        }
    }
}
