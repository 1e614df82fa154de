//! A process that stops in the middle of loading a sale, and goes on when another has loaded it.

use crate::{
    halves::titled,
    stand::{Stand, figures, outcome, scaled, stops_itself},
};

/// Where it stops; two of these lie inside its transaction.
const POINTS: [&str; 4] = [
    "load-before-script",
    "load-after-epoch",
    "load-after-script",
    "load-after-commit",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_loader_changes_nothing_when_it_resumes() {
    let stand = Stand::new().await;
    let (web, worker) = (stand.web().await, stand.worker(&[]).await);
    let crowd = stand.crowd(24).await;
    let times = scaled(10);
    for (round, point) in (0..times).zip(POINTS.iter().cycle()) {
        let mut late = stand
            .web_at(
                crate::support::free_port(),
                &format!("{point}=1*return(stop)"),
            )
            .await;
        let (operator, title) = (stand.operator(&late).await, format!("{point} {round}"));
        let fields = stand.form(&title, 20).await;
        let created = tokio::spawn(async move {
            let fields: Vec<(&str, &str)> = fields
                .iter()
                .map(|(name, value)| (*name, &**value))
                .collect();
            operator.posts("/api/admin/create_voucher", &fields).await
        });
        stops_itself(&mut late.process).await;
        // What its time limit would do in half a minute: the transaction of a stopped process
        // keeps the sale's row.
        sqlx::query(
            "select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and state = 'idle in transaction' and pid <> pg_backend_pid()",
        )
        .execute(&stand.pool)
        .await
        .unwrap();
        let sale = titled(&stand, &title).await;
        stand.opens(sale).await;
        let first = stand.buy(&web, sale, &crowd[..8], 4).await;
        assert_eq!(outcome(&first, "admitted"), 8);
        stand.drains().await;
        let before = stand.shop.sale(sale).await.unwrap();

        late.process.signals("CONT");
        let answer = created.await.unwrap();
        assert!([200, 503].contains(&answer.status), "{answer:?}");
        assert_eq!(late.process.stops().await, 0);
        let after = stand.shop.sale(sale).await.unwrap();
        assert_eq!(
            (after.stock, after.total, after.state),
            (before.stock, before.total, before.state)
        );
        let rest = stand.buy(&web, sale, &crowd, 4).await;
        let told = ["admitted", "already_ordered", "sold_out"].map(|name| outcome(&rest, name));
        assert_eq!(told, [12, 8, 4]);
        stand.drains().await;
        assert_eq!(stand.rows(sale).await, 20);
    }
    let record = stand.audit().await;
    figures(
        "stale loader",
        &format!(
            "{times} loaders stopped, overtaken and resumed: nothing changed, {} orders on {} units",
            record.admitted.len(),
            times * 20
        ),
    );
    assert_eq!(worker.stops().await, 0);
    stand.closes().await;
}
