//! What happens at start: services that are away, an unsafe ground, wrong settings.

use std::net::SocketAddr;

use tokio::process::Command;

use crate::support::{
    Database, Process, Proxy, Visitor, eventually, flags_for, free_port, redis_that_forgets,
    services, unique,
};

/// The URL with another port, and where it led before.
fn moved(url: &str, port: u16) -> (String, SocketAddr) {
    let authority = url.split("://").nth(1).unwrap().split('/').next().unwrap();
    let host_port = authority.rsplit('@').next().unwrap();
    let target = host_port
        .replace("localhost", "127.0.0.1")
        .parse()
        .expect("the test's services have a host and a port");
    (url.replace(host_port, &format!("127.0.0.1:{port}")), target)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_site_comes_up_without_redis_and_postgres_and_finds_them_later() {
    let database = Database::create().await;
    let (redis_port, postgres_port) = (free_port(), free_port());
    let (redis_url, redis) = moved(&services().1, redis_port);
    let (database_url, postgres) = moved(&database.url, postgres_port);
    let mut flags = flags_for(&database_url, &redis_url, &unique());
    flags.push("--log=info".into());
    flags.retain(|flag| flag != "--log=warn");
    let mut site = Process::starts("serve", &flags);
    let visitor = Visitor::new(site.address().await);
    assert_eq!(visitor.asks("/livez").await.status, 200);
    let answer = visitor.asks("/readyz").await;
    assert_eq!(
        (answer.status, answer.json()["redis"].as_bool()),
        (503, Some(false))
    );
    assert_eq!(visitor.asks("/api/clock").await.status, 503);

    let _redis = Proxy::plugged(redis_port, redis).await;
    eventually("Redis is found", || async {
        visitor.asks("/readyz").await.status == 200
    })
    .await;
    assert_eq!(
        visitor.asks("/readyz").await.json()["postgres"],
        false,
        "ready without PostgreSQL"
    );

    let _postgres = Proxy::plugged(postgres_port, postgres).await;
    eventually("PostgreSQL is found", || async {
        visitor.asks("/readyz").await.json()["postgres"] == true
    })
    .await;
    site.says("PostgreSQL lacks migrations").await;
    assert_eq!(site.stops().await, 0);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_forgets_is_refused_unless_that_is_accepted() {
    let database = Database::create().await;
    let port = free_port();
    let mut redis = redis_that_forgets(port).await;
    let flags = flags_for(
        &database.url,
        &format!("redis://127.0.0.1:{port}/0"),
        &unique(),
    );

    let check = Command::new(env!("CARGO_BIN_EXE_seckill-server"))
        .arg("check")
        .args(&flags)
        .output()
        .await
        .unwrap();
    assert_eq!(check.status.code(), Some(1));
    let findings = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(findings.contains("appendonly"), "{findings}");
    assert_eq!(Process::starts("serve", &flags).exit_code().await, 1);

    let mut accepted = flags;
    accepted.push("--unsafe".into());
    let mut site = Process::starts("serve", &accepted);
    site.says("unsafe ground").await;
    assert_eq!(site.stops().await, 0);
    redis.kill().await.unwrap();
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_contradict_each_other_are_named() {
    let mut flags = flags_for("postgres://127.0.0.1/x", "redis://127.0.0.1:1/0", "x");
    flags.retain(|flag| !flag.contains("claim-after"));
    flags.push("--claim-after-ms=100".into());
    let mut process = Process::starts("serve", &flags);
    process
        .says("SECKILL_CLAIM_AFTER_MS (100) is not above SECKILL_BLOCK_MS (200)")
        .await;
    assert_eq!(process.exit_code().await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_of_a_safe_ground_finds_nothing() {
    let database = Database::create().await;
    let flags = flags_for(&database.url, &services().1, &unique());
    let check = Command::new(env!("CARGO_BIN_EXE_seckill-server"))
        .arg("check")
        .args(&flags)
        .output()
        .await
        .unwrap();
    assert_eq!(
        (
            check.status.code(),
            &*String::from_utf8_lossy(&check.stdout)
        ),
        (Some(0), "")
    );
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn buyers_are_made_with_one_cookie_a_line() {
    let site = crate::support::Site::open().await;
    let made = Command::new(env!("CARGO_BIN_EXE_seckill-server"))
        .args(["create-buyers", "--count", "25"])
        .args(site.flags())
        .output()
        .await
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let lines = String::from_utf8(made.stdout).unwrap();
    assert_eq!(lines.lines().count(), 25);
    for cookie in lines.lines() {
        let me = site.visitor().with_cookie(cookie).asks("/api/me").await;
        assert_eq!(me.text("role"), "buyer");
    }
    site.closes().await;
}
