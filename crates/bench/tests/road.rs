//! A short way along the road: every contender with few orders, real processes, real SIGKILL.
//!
//! Without RabbitMQ, which no test installs: `script/bench road` runs that one.

use std::path::PathBuf;

use bench::road::{Outcome, Road, Row, Size, lines, rows};

const SMALL: Size = Size {
    users: 240,
    stock: 120,
    concurrency: 32,
    crash_users: 450,
    lease_ms: 2_000,
};

/// Walks the contenders of some groups, each of which must be as its row says.
async fn walked(chosen: impl Fn(&Row) -> bool) -> Vec<Outcome> {
    let setting = |name: &str| {
        std::env::var(name)
            .unwrap_or_else(|_| panic!("{name} is not set: run the tests with script/test"))
    };
    let (database, redis) = (
        setting("SECKILL_TEST_DATABASE_URL"),
        setting("SECKILL_TEST_REDIS_URL"),
    );
    let program = PathBuf::from(env!("CARGO_BIN_EXE_seckill-bench"));
    let road = Road::open(program, &database, &redis, None, SMALL)
        .await
        .expect("the stores answer");
    let mut outcomes = Vec::new();
    for row in rows().iter().filter(|row| chosen(row)) {
        assert_eq!(road.has(row), !row.rabbit);
        if road.has(row) {
            outcomes.push(
                road.walk(row)
                    .await
                    .unwrap_or_else(|error| panic!("{}: {error}", row.name)),
            );
        }
    }
    road.close().await.expect("what was made is removed");
    let surprised: Vec<&Outcome> = outcomes
        .iter()
        .filter(|outcome| !outcome.surprises.is_empty())
        .collect();
    assert!(surprised.is_empty(), "{}", lines(&outcomes).join("\n"));
    outcomes
}

#[tokio::test(flavor = "multi_thread")]
async fn counting_in_the_database_oversells_or_refuses_or_doubles() {
    assert_eq!(walked(|row| row.group < 3).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_per_user_needs_more_than_a_mutex() {
    assert_eq!(
        walked(|row| row.group == 3 && !row.name.starts_with("lease"))
            .await
            .len(),
        3
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_form_of_a_lease_fails_at_its_own_fault_until_it_renews() {
    assert_eq!(walked(|row| row.name.starts_with("lease")).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_all_queues_only_the_product_neither_loses_nor_repeats() {
    let outcomes = walked(|row| row.group == 4).await;
    let passed: Vec<&str> = outcomes
        .iter()
        .filter(|outcome| outcome.audit_passed)
        .map(|outcome| outcome.name)
        .collect();
    assert_eq!(passed, ["product"]);
}
