//! PostgreSQL away, killed, restarted, and its connections cut in the middle of a commit.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use bench::load::Buyer;
use seckill::VoucherId;
use tokio::process::Command;

use crate::{
    stand::{Stand, Web, figures, outcome, scaled},
    support::unique,
};

/// Orders are bought at this pace while PostgreSQL is away.
const PACE: (usize, Duration) = (5, Duration::from_millis(200));
const AWAY: Duration = Duration::from_secs(60);
const RESTARTS: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_away_for_a_minute_and_ten_restarts_delay_orders_and_lose_none() {
    let services = Services::start().await;
    let stand = Stand::on(services.urls().await).await;
    let (web, worker) = (stand.web().await, stand.worker(&[]).await);
    let (away, restarts) = (AWAY * scaled(1), RESTARTS * scaled(1) as usize);
    let waves = restarts * 3 + usize::try_from(away.as_millis() / PACE.1.as_millis()).unwrap() + 60;
    let crowd = stand.crowd(u32::try_from(waves * PACE.0).unwrap()).await;
    let sale = stand.sale(1_000_000).await;
    let mut crowd = crowd.chunks(PACE.0);

    services.run(&["stop", "postgres"]).await;
    let begun = Instant::now();
    let mut queued = 0;
    while begun.elapsed() < away {
        queued += wave(&stand, &web, sale, crowd.next().unwrap()).await;
    }
    // The process had not met the sale before: it waits for PostgreSQL once, not at each purchase.
    let paced = u64::try_from(away.as_millis() / PACE.1.as_millis()).unwrap() * PACE.0 as u64;
    assert!(
        queued > paced / 2,
        "{queued} orders taken, {paced} buyers came"
    );
    services.run(&["start"]).await;
    let drained = stand.drains().await;

    let mut restarted = 0;
    for round in 0..restarts {
        wave(&stand, &web, sale, crowd.next().unwrap()).await;
        // In immediate mode, and now and then as a power cut would.
        let name = if round % 3 == 2 { "KILL" } else { "QUIT" };
        let pid = postmaster(&stand).await.to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &pid])
            .status()
            .await;
        assert!(sent.unwrap().success());
        wave(&stand, &web, sale, crowd.next().unwrap()).await;
        services.run(&["start"]).await;
        restarted += 1;
        wave(&stand, &web, sale, crowd.next().unwrap()).await;
    }
    stand.drains().await;

    // Each commit takes a while, so that connections are cut inside it as well as before it.
    for statement in [
        "alter system set commit_delay = 20000",
        "alter system set commit_siblings = 0",
        "select pg_reload_conf()",
    ] {
        sqlx::query(statement).execute(&stand.pool).await.unwrap();
    }
    let (begun, mut cut) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(6) {
        let (told, _) = tokio::join!(
            terminated(&stand),
            wave(&stand, &web, sale, crowd.next().unwrap())
        );
        cut += told;
    }
    stand.drains().await;
    assert_eq!(
        stand.dead().await,
        0,
        "nothing that passes makes a dead letter"
    );
    let record = stand.audit().await;
    assert_eq!(
        stand.rows(sale).await,
        i64::try_from(record.acknowledged.len()).unwrap()
    );
    figures(
        "PostgreSQL away",
        &format!(
            "{} s away with {queued} orders taken meanwhile, drained {drained:.1?} after its return; {restarted} restarts (immediate, SIGKILL); {cut} connections cut during commits: {} orders, 0 lost, 0 dead",
            away.as_secs(),
            record.acknowledged.len()
        ),
    );
    assert_eq!(web.process.stops().await, 0);
    assert_eq!(worker.stops().await, 0);
    stand.closes().await;
    services.remove().await;
}

/// A few buyers, and a pause; none of them is refused.
async fn wave(stand: &Stand, web: &Web, sale: VoucherId, buyers: &[Buyer]) -> u64 {
    let begun = Instant::now();
    let tally = stand.buy(web, sale, buyers, 2).await;
    assert!(
        tally.retried.is_empty(),
        "buying needs Redis alone: {tally:?}"
    );
    assert_eq!(outcome(&tally, "admitted"), buyers.len() as u64);
    tokio::time::sleep(PACE.1.saturating_sub(begun.elapsed())).await;
    outcome(&tally, "admitted")
}

/// Cuts connections of the shop's processes for a fifth of a second; tells how many.
async fn terminated(stand: &Stand) -> i64 {
    let mut cut = 0;
    for _ in 0..20 {
        let now: i64 = sqlx::query_scalar(
            "select count(*) from (
               select pg_terminate_backend(pid) from pg_stat_activity
               where datname = current_database() and pid <> pg_backend_pid()
                 and (state = 'idle in transaction' or (state = 'active' and query ilike 'commit%'))) cut",
        )
        .fetch_one(&stand.pool)
        .await
        .unwrap();
        cut += now;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    cut
}

/// The number of PostgreSQL's first process: the parent of whoever serves a connection.
async fn postmaster(stand: &Stand) -> u32 {
    let mut tries = 0;
    let backend: i32 = loop {
        // Connections from before a restart are found dead here.
        match sqlx::query_scalar("select pg_backend_pid()")
            .fetch_one(&stand.pool)
            .await
        {
            Ok(pid) => break pid,
            Err(error) => assert!(tries < 50, "{error}"),
        }
        tries += 1;
    };
    let status = std::fs::read_to_string(format!("/proc/{backend}/status")).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    parent.unwrap().trim().parse().unwrap()
}

/// A Redis and a PostgreSQL of this test's own, which nobody else misses.
struct Services(PathBuf);

impl Services {
    async fn start() -> Self {
        let services = Self(std::env::temp_dir().join(format!("seckill-services-{}", unique())));
        services.run(&["start"]).await;
        services
    }

    async fn run(&self, words: &[&str]) -> String {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../script/services");
        let done = Command::new(script)
            .args(words)
            .env("SECKILL_DATA", &self.0)
            .env_remove("DATABASE_URL")
            .env_remove("REDIS_URL")
            .env_remove("SECKILL_REDIS_PORT")
            .env_remove("SECKILL_PG_PORT")
            .output()
            .await
            .unwrap();
        assert!(done.status.success(), "script/services {words:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    async fn urls(&self) -> (String, String) {
        let urls = self.run(&["env"]).await;
        let value = |name: &str| {
            urls.lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap()
                .to_owned()
        };
        (value("DATABASE_URL="), value("REDIS_URL="))
    }

    async fn remove(self) {
        self.run(&["remove"]).await;
    }
}

impl Drop for Services {
    /// A test that failed leaves nothing running; `remove` has left nothing to stop.
    fn drop(&mut self) {
        if self.0.exists() {
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../script/services");
            let _ = std::process::Command::new(script)
                .arg("stop")
                .env("SECKILL_DATA", &self.0)
                .status();
        }
    }
}
