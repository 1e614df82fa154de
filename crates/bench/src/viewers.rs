//! Many people watch one sale's page, and nobody buys: how often Redis is read for them, asked
//! for each one alone and with what viewers are shown shared (`SECKILL_SHOW_MS`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fred::prelude::{Builder, Client, ClientLike, Config};
use tokio::task::JoinSet;

use crate::admin::sent;
use crate::args::Viewers;
use crate::audit::Check;
use crate::client::{Call, Connection, Origin};
use crate::report::{Progress, Report, row, say};
use crate::scenario::ScenarioError;
use crate::site::{Site, SiteError};

/// How often an open page asks, in milliseconds (`app/src/browser/sale.rs`).
const EVERY_MS: u64 = 2_000;
/// A sale that outlasts the run.
const AN_HOUR_MS: i64 = 3_600_000;

/// What one period cost.
#[derive(Debug, Clone, Copy)]
struct Watched {
    /// `SECKILL_SHOW_MS`.
    show_ms: u64,
    /// Answers to viewers a second.
    answers: f64,
    /// Scripts that Redis ran a second: each read of a sale or of a clock is one.
    reads: f64,
    /// Answers that were none.
    failures: u64,
}

/// Watches the same sale with each period; prints a line for each.
///
/// # Errors
/// When a server can't be started, or Redis not be asked.
pub async fn watch(site: &mut Site, args: &Viewers) -> Result<Report, ScenarioError> {
    let redis = redis(site).await?;
    let title = format!(
        "{} viewers of one sale, each asking every {EVERY_MS} ms for {} s",
        args.viewers, args.seconds
    );
    say(&title);
    let mut report = Report {
        scenario: "viewers",
        title,
        ..Report::default()
    };
    for show_ms in [0, args.show_ms] {
        site.restart(&[("SECKILL_SHOW_MS", &show_ms.to_string())])
            .await?;
        let mut admin = site.admin(args.place.admin.as_deref()).await?;
        let now_ms = admin.now_ms().await?;
        let sale = admin
            .create_sale(1_000, now_ms, now_ms + AN_HOUR_MS)
            .await?;
        admin.wait_until_open(sale.voucher_id).await?;
        // What the process does by itself, each second, is not the viewers'.
        let (begun, before) = (Instant::now(), scripts_run(&redis).await?);
        tokio::time::sleep(Duration::from_secs(2)).await;
        let idle = rate(scripts_run(&redis).await? - before, begun.elapsed());

        let before = scripts_run(&redis).await?;
        let begun = Instant::now();
        let path = format!("/api/sale?voucher_id={}", sale.voucher_id);
        let (answers, failures) = look(&site.origin, &path, args).await;
        let took = begun.elapsed();
        let reads = rate(scripts_run(&redis).await? - before, took) - idle;
        let watched = Watched {
            show_ms,
            answers: rate(answers, took),
            reads: reads.max(0.0),
            failures,
        };
        say(&row(&format!("{show_ms} ms"), &watched.figures()));
        report.checks.push(watched.judged());
    }
    redis.quit().await.map_err(SiteError::Redis)?;
    Ok(report)
}

impl Watched {
    fn figures(&self) -> String {
        format!(
            "{:.0} answers/s, {:.1} reads of Redis/s, {} failures",
            self.answers, self.reads, self.failures
        )
    }

    /// Everybody is answered; and where what is shown is shared, one read serves a whole period.
    fn judged(&self) -> Check {
        let (name, most) = match self.show_ms {
            0 => ("each for himself", f64::INFINITY),
            // Half more: a period may begin before the measured time and end after it.
            ms => ("one read serves everybody", 1_500.0 / ms_of(ms) + 2.0),
        };
        let mut breaches = Vec::new();
        if self.failures > 0 {
            breaches.push(format!("{} not answered", self.failures));
        }
        if self.reads > most {
            breaches.push(format!("more than {most:.1} reads/s"));
        }
        Check::of(name, self.figures(), &breaches)
    }
}

#[expect(clippy::cast_precision_loss, reason = "at most ten seconds")]
fn ms_of(ms: u64) -> f64 {
    ms as f64
}

fn rate(count: u64, took: Duration) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a run fit into 53 bits"
    )]
    let count = count as f64;
    count / took.as_secs_f64()
}

/// Every viewer asks when it is its turn; a slow server makes them late, never more.
async fn look(origin: &Origin, path: &str, args: &Viewers) -> (u64, u64) {
    let polls = args.seconds * 1_000 / EVERY_MS;
    let total = usize::try_from(args.viewers * polls).unwrap_or(usize::MAX);
    let progress = Progress::of(total);
    let _shown = progress.shown();
    let (next, failures) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
    let (begun, mut asking) = (Instant::now(), JoinSet::new());
    for _ in 0..args.connections {
        let (next, failures, progress) =
            (Arc::clone(&next), Arc::clone(&failures), progress.clone());
        let (mut connection, call, viewers) =
            (Connection::to(origin), Call::get(path), args.viewers);
        asking.spawn(async move {
            loop {
                let turn = next.fetch_add(1, Ordering::Relaxed);
                if turn >= total {
                    return;
                }
                let due_us = turn as u64 * EVERY_MS * 1_000 / viewers;
                tokio::time::sleep_until((begun + Duration::from_micros(due_us)).into()).await;
                if sent(&mut connection, "/api/sale", &call).await.is_err() {
                    failures.fetch_add(1, Ordering::Relaxed);
                }
                progress.step();
            }
        });
    }
    while asking.join_next().await.is_some() {}
    let failures = failures.load(Ordering::Relaxed);
    (total as u64 - failures, failures)
}

async fn redis(site: &Site) -> Result<Client, SiteError> {
    let config = Config::from_url(&site.stores.redis_url).map_err(SiteError::Redis)?;
    let client = Builder::from_config(config)
        .build()
        .map_err(SiteError::Redis)?;
    client.init().await.map_err(SiteError::Redis)?;
    Ok(client)
}

async fn scripts_run(redis: &Client) -> Result<u64, SiteError> {
    let told: String = redis
        .info(Some(fred::types::InfoKind::CommandStats))
        .await
        .map_err(SiteError::Redis)?;
    let calls = |line: &str| -> Option<u64> {
        let rest = line
            .strip_prefix("cmdstat_evalsha:calls=")
            .or_else(|| line.strip_prefix("cmdstat_eval:calls="))?;
        rest.split(',').next()?.parse().ok()
    };
    Ok(told.lines().filter_map(calls).sum())
}
