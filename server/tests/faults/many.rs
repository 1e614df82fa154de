//! Several processes of each kind on one Redis.

use std::time::Duration;

use crate::{
    stand::{Stand, count, figures, scaled},
    support::{Process, eventually},
};

#[tokio::test(flavor = "multi_thread")]
async fn two_web_and_three_worker_processes_keep_the_promise() {
    let stand = Stand::new().await;
    let crowd = stand.crowd(scaled(1_600)).await;
    let sale = stand.sale(scaled(1_200)).await;
    let (mut first, mut second) = (stand.web().await, stand.web().await);
    let mut workers: Vec<Process> = Vec::new();
    for _ in 0..3 {
        workers.push(stand.worker(&[]).await);
    }
    // Half of the crowd stands at each door, and some at both.
    let (half, more) = (crowd.len() / 2, crowd.len() / 10);
    let left = stand.buy_at(first.origin(), sale, &crowd[..half + more], 8);
    let right = stand.buy_at(second.origin(), sale, &crowd[half - more..], 8);
    let kills = async {
        let share = i64::from(scaled(1_200)) / 6;
        for worker in &mut workers {
            let rows = stand.rows(sale).await;
            eventually("orders are being persisted", || async {
                let now = stand.rows(sale).await;
                now >= rows + share / 4 || now >= 5 * share
            })
            .await;
            std::mem::replace(worker, stand.worker(&[]).await)
                .dies()
                .await;
        }
        let ports = (first.port, second.port);
        first.process.dies().await;
        let first = stand.web_at(ports.0, "").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        second.process.dies().await;
        let second = stand.web_at(ports.1, "").await;
        (first, second)
    };
    let (left, right, webs) = tokio::join!(left, right, kills);
    (first, second) = webs;
    stand.drains().await;
    stand.audit().await;
    assert_eq!(stand.rows(sale).await, i64::from(scaled(1_200)));
    let lost = |tally: &bench::load::Tally| tally.retried.get("lost").copied().unwrap_or(0);
    figures(
        "many processes",
        &format!(
            "2 web and 3 worker processes, each killed once under load: {} buyers, {} of {} units sold, 0 lost, 0 doubled; {} tries lost their connection",
            count(crowd.len()),
            stand.rows(sale).await,
            scaled(1_200),
            lost(&left) + lost(&right)
        ),
    );
    for worker in workers {
        assert_eq!(worker.stops().await, 0);
    }
    for web in [first, second] {
        assert_eq!(web.process.stops().await, 0);
    }
    stand.closes().await;
}
