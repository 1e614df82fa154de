//! Dead letters that are settled twice, at once, or against a worker that still holds the order.

use seckill::{DeadLetter, Page};

use crate::{
    stand::{Stand, figures, kills_itself, outcome, scaled, stops_itself},
    support::eventually,
};

#[tokio::test(flavor = "multi_thread")]
async fn discarding_while_a_stopped_worker_holds_the_order_ends_in_one_state() {
    let stand = Stand::new().await;
    let web = stand.web().await;
    let operator = stand.operator(&web).await;
    // One attempt: whoever claims it from the stopped worker gives it up.
    let flags = ["--max-attempts=1"];
    let times = scaled(10);
    let crowd = stand.crowd(times).await;
    let sale = stand.sale(times).await;
    let (mut failed, mut confirmed) = (0, 0);
    for (round, buyer) in crowd.iter().enumerate() {
        // Before its transaction the discard comes first; inside it, the worker's commit does.
        let inside = round % 2 == 0;
        let point = if inside {
            "confirm-before-commit"
        } else {
            "consumer-before-alone"
        };
        let mut first = stand.worker_with("consumer-after-read=return(kill)", &flags);
        stand.buy(&web, sale, std::slice::from_ref(buyer), 1).await;
        kills_itself(&mut first).await;
        let mut holder = stand.worker_with(&format!("{point}=1*return(stop)"), &flags);
        stops_itself(&mut holder).await;
        let other = stand.worker(&flags).await;
        let letter = letters(&stand, 1).await.remove(0);
        let (entry, order) = (
            letter.entry_id.to_string(),
            letter.order_id.parse().unwrap(),
        );
        let discard = tokio::spawn({
            let operator = operator.clone();
            async move {
                operator
                    .posts("/api/admin/discard", &[("entry_id", &entry)])
                    .await
            }
        });
        if inside {
            eventually("the discard waits for the worker's transaction", || async {
                let waiting: bool = sqlx::query_scalar(
                    "select exists (select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')",
                )
                .fetch_one(&stand.pool)
                .await
                .unwrap();
                waiting || discard.is_finished()
            })
            .await;
            if discard.is_finished() {
                panic!("it did not wait: {:?}", discard.await);
            }
        } else {
            eventually("the discard is done", || async { discard.is_finished() }).await;
        }
        holder.signals("CONT");
        let answer = discard.await.unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        // The holder comes to the end of what it had in hand before it leaves.
        assert_eq!(holder.stops().await, 0);
        stand.drains().await;
        assert_eq!(stand.dead().await, 0);
        let states = stand.order_states(order).await;
        let expected = if inside { "confirmed" } else { "failed" };
        assert_eq!(states, [expected]);
        *(if inside { &mut confirmed } else { &mut failed }) += 1;
        let tally = stand.buy(&web, sale, std::slice::from_ref(buyer), 1).await;
        let told = if inside {
            "already_ordered"
        } else {
            "admitted"
        };
        assert_eq!(outcome(&tally, told), 1, "{tally:?}");
        stand.drains().await;
        assert_eq!(other.stops().await, 0);
    }
    stand.audit().await;
    assert_eq!(stand.rows(sale).await, i64::from(times));
    figures(
        "discard against a stopped worker",
        &format!(
            "{times} times: {confirmed} confirmed, {failed} failed, one state each, {times} of {times} units sold"
        ),
    );
    stand.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replaying_twice_at_once_gives_one_order() {
    let stand = Stand::new().await;
    let (left, right) = (stand.web().await, stand.web().await);
    let worker = stand.worker(&["--max-attempts=1"]).await;
    let times = scaled(10);
    let crowd = stand.crowd(times).await;
    let sale = stand.sale(times).await;
    for buyer in &*crowd {
        stand.poison(buyer).await;
    }
    stand.buy(&left, sale, &crowd, 2).await;
    let dead = letters(&stand, times as usize).await;
    stand.heal().await;
    let consoles = (stand.operator(&left).await, stand.operator(&right).await);
    let mut refused = 0;
    for letter in &dead {
        let entry = letter.entry_id.to_string();
        let form = [("entry_id", &*entry)];
        let (one, other) = tokio::join!(
            consoles.0.posts("/api/admin/replay", &form),
            consoles.1.posts("/api/admin/replay", &form),
        );
        let mut statuses = [one.status, other.status];
        statuses.sort_unstable();
        assert!(
            [[200, 200], [200, 404], [200, 409]].contains(&statuses),
            "{one:?} {other:?}"
        );
        refused += u32::from(statuses[1] != 200);
    }
    stand.drains().await;
    assert_eq!(stand.dead().await, 0);
    for letter in &dead {
        assert_eq!(
            stand.order_states(letter.order_id.parse().unwrap()).await,
            ["confirmed"]
        );
    }
    stand.audit().await;
    assert_eq!(stand.rows(sale).await, i64::from(times));
    figures(
        "replay twice at once",
        &format!(
            "{times} letters from two consoles: {times} orders, {refused} second replays found nothing"
        ),
    );
    assert_eq!(worker.stops().await, 0);
    stand.closes().await;
}

/// Waits for so many dead letters, and returns them.
pub async fn letters(stand: &Stand, count: usize) -> Vec<DeadLetter> {
    let page = Page {
        after: None,
        limit: 200,
    };
    eventually("they are dead letters", || async {
        stand
            .shop
            .dead_letters(None, &page)
            .await
            .unwrap()
            .items
            .len()
            >= count
    })
    .await;
    stand.shop.dead_letters(None, &page).await.unwrap().items
}
