//! Processes that are killed between the two halves of what is done to PostgreSQL and to Redis.

use http::Method;
use seckill::{DeadLetter, SaleState, VoucherId};

use crate::{
    letters::letters,
    stand::{Stand, figures, kills_itself, outcome, scaled},
    support::{Visitor, eventually},
};

/// On the way of a new sale into Redis.
const LOADING: [&str; 5] = [
    "create-after-row",
    "load-after-epoch",
    "load-before-script",
    "load-after-script",
    "load-after-commit",
];
/// On the way of a change.
const CHANGING: [&str; 2] = ["change-after-row", "change-before-script"];

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_between_database_and_redis_leaves_a_sale_that_goes_on() {
    let stand = Stand::new().await;
    let worker = stand.worker(&[]).await;
    let crowd = stand.crowd(12).await;
    let mut web = stand.web().await;
    let port = web.port;
    let (mut loads, mut changes) = (0, 0);
    for round in 0..scaled(2) {
        for point in LOADING {
            assert_eq!(web.process.stops().await, 0);
            web = stand.web_at(port, &format!("{point}=return(kill)")).await;
            let (operator, title) = (stand.operator(&web).await, format!("{point} {round}"));
            let fields = stand.form(&title, 10).await;
            let fields: Vec<(&str, &str)> = fields
                .iter()
                .map(|(name, value)| (*name, &**value))
                .collect();
            unanswered(&operator, "/api/admin/create_voucher", &fields).await;
            kills_itself(&mut web.process).await;
            web = stand.web_at(port, "").await;
            // Its row was committed; what is missing, the reconciler does.
            let sale = titled(&stand, &title).await;
            stand.opens(sale).await;
            let tally = stand.buy(&web, sale, &crowd, 4).await;
            assert_eq!(
                (outcome(&tally, "admitted"), outcome(&tally, "sold_out")),
                (10, 2)
            );
            loads += 1;
        }
        for point in CHANGING {
            let sale = stand.sale(5).await;
            let id = sale.to_string();
            let more = [
                ("voucher_id", &*id),
                ("amount", "5"),
                ("request_id", "once"),
            ];
            for (path, fields) in [
                ("/api/admin/add_stock", &more[..]),
                ("/api/admin/pause_sale", &more[..1]),
                ("/api/admin/resume_sale", &more[..1]),
            ] {
                assert_eq!(web.process.stops().await, 0);
                web = stand.web_at(port, &format!("{point}=return(kill)")).await;
                let operator = stand.operator(&web).await;
                unanswered(&operator, path, fields).await;
                kills_itself(&mut web.process).await;
                web = stand.web_at(port, "").await;
                let operator = stand.operator(&web).await;
                let paused = path.ends_with("pause_sale");
                eventually("the change is applied", || async {
                    let found = stand.shop.sale(sale).await.unwrap();
                    found.total == 10 && (found.state == SaleState::Paused) == paused
                })
                .await;
                // The operator, who had no answer, asks again: once is all that counts.
                let again = operator.posts(path, fields).await;
                assert_eq!(again.status, 200, "{again:?}");
                changes += 1;
            }
            stand.opens(sale).await;
            let tally = stand.buy(&web, sale, &crowd, 4).await;
            assert_eq!(
                (outcome(&tally, "admitted"), outcome(&tally, "sold_out")),
                (10, 2)
            );
        }
    }
    stand.drains().await;
    let record = stand.audit().await;
    figures(
        "killed between database and Redis",
        &format!(
            "{loads} kills while a sale was created and loaded, {changes} while stock was added, a sale paused or resumed: {} sales open with every unit, {} orders, 0 lost",
            record.vouchers.len(),
            record.acknowledged.len()
        ),
    );
    assert_eq!(web.process.stops().await, 0);
    assert_eq!(worker.stops().await, 0);
    stand.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_while_it_settles_a_dead_letter_settles_it_once() {
    let stand = Stand::new().await;
    let worker = stand.worker(&["--max-attempts=1"]).await;
    let mut web = stand.web().await;
    let port = web.port;
    let points = [
        ("discard-after-row", "/api/admin/discard"),
        ("discard-after-script", "/api/admin/discard"),
        ("replay-after-script", "/api/admin/replay"),
        ("settle-after-ack", "/api/admin/replay"),
    ];
    let times = scaled(3) as usize * points.len();
    let crowd = stand.crowd(u32::try_from(times).unwrap()).await;
    let sale = stand.sale(u32::try_from(times).unwrap()).await;
    for (buyer, (point, path)) in crowd.iter().zip(points.iter().cycle()) {
        stand.poison(buyer).await;
        stand.buy(&web, sale, std::slice::from_ref(buyer), 1).await;
        let letter = letters(&stand, 1).await.remove(0);
        stand.heal().await;
        if *point == "settle-after-ack" {
            stand.confirm_by_hand(&letter).await;
        }
        assert_eq!(web.process.stops().await, 0);
        web = stand.web_at(port, &format!("{point}=return(kill)")).await;
        let (operator, entry) = (stand.operator(&web).await, letter.entry_id.to_string());
        unanswered(&operator, path, &[("entry_id", &entry)]).await;
        kills_itself(&mut web.process).await;
        web = stand.web_at(port, "").await;
        // The operator asks again: it is done, or has been.
        let again = stand
            .operator(&web)
            .await
            .posts(path, &[("entry_id", &entry)])
            .await;
        assert!([200, 404].contains(&again.status), "{again:?}");
        stand.drains().await;
        let state = if path.ends_with("discard") {
            "failed"
        } else {
            "confirmed"
        };
        let order = letter.order_id.parse().unwrap();
        eventually("one state", || async {
            stand.order_states(order).await == [state]
        })
        .await;
        assert_eq!(stand.dead().await, 0);
        // Who was told "failed" may try again, and gets the unit that was given back.
        let tally = stand.buy(&web, sale, std::slice::from_ref(buyer), 1).await;
        let expected = if state == "failed" {
            "admitted"
        } else {
            "already_ordered"
        };
        assert_eq!(outcome(&tally, expected), 1, "{tally:?}");
        stand.drains().await;
    }
    stand.audit().await;
    assert_eq!(stand.rows(sale).await, i64::try_from(times).unwrap());
    figures(
        "killed while settling",
        &format!(
            "{times} kills within discard and replay: one state each, every unit back once, {times} of {times} units sold"
        ),
    );
    assert_eq!(web.process.stops().await, 0);
    assert_eq!(worker.stops().await, 0);
    stand.closes().await;
}

impl Stand {
    /// Writes a dead letter's order, as a worker does that was stopped before it was given up.
    async fn confirm_by_hand(&self, letter: &DeadLetter) {
        let [order, user, voucher] = [&letter.order_id, &letter.user_id, &letter.voucher_id]
            .map(|id| id.parse::<i64>().unwrap());
        sqlx::query(
            "with taken as (update voucher set stock = stock - 1 where voucher_id = $3)
             insert into voucher_order (order_id, user_id, voucher_id, state, admitted_ms, settled_ms)
             values ($1, $2, $3, 'confirmed', $4, $4)",
        )
        .bind(order)
        .bind(user)
        .bind(voucher)
        .bind(letter.at_ms)
        .execute(&self.pool)
        .await
        .unwrap();
    }
}

/// Posts a form to a process that dies of it.
async fn unanswered(visitor: &Visitor, path: &str, fields: &[(&str, &str)]) {
    let (visitor, path) = (visitor.clone(), path.to_owned());
    let body = fields
        .iter()
        .map(|(name, value)| format!("{name}={}", app::routes::escape(value)))
        .collect::<Vec<_>>()
        .join("&");
    let asked = visitor.tries(
        Method::POST,
        &path,
        body.into(),
        &[("accept", "application/json")],
    );
    let answer = asked.await;
    assert!(answer.is_none(), "the process was to die: {answer:?}");
}

pub async fn titled(stand: &Stand, title: &str) -> VoucherId {
    let id: i64 = sqlx::query_scalar("select voucher_id from voucher where title = $1")
        .bind(title)
        .fetch_one(&stand.pool)
        .await
        .unwrap();
    VoucherId::new(id).unwrap()
}
