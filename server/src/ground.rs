//! Whether Redis and PostgreSQL can keep the promise, and what happens if not.
//!
//! Nothing is sold on a ground that could lose an admission: findings end the
//! process, unless the operator has said that they are known. A service that is
//! away is no finding; it is waited for, and looked at as soon as it is there.

use std::{sync::Arc, time::Duration};

use app::Ground;
use seckill::{Error, Finding, Shop};
use tokio::sync::watch::Sender;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::backoff::Backoff;

/// How long a first connection to Redis may take before it counts as away.
pub const CONNECT: Duration = Duration::from_secs(2);

/// How often an unsafe ground that was accepted is looked at again: it may have been
/// mended, or become worse.
const AGAIN: Duration = Duration::from_secs(15);

/// The ground does not carry.
#[derive(Debug, thiserror::Error)]
#[error("{}", lines(.0).join("\n"))]
pub struct Unsafe(pub Vec<Finding>);

/// One line for each finding.
pub fn lines(findings: &[Finding]) -> Vec<String> {
    findings
        .iter()
        .map(|finding| finding.what.clone())
        .collect()
}

/// Which services answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// Redis answers.
    pub redis: bool,
    /// PostgreSQL answers.
    pub postgres: bool,
    /// In PostgreSQL's words why it answers but lets nobody in: a wrong password, no such database.
    pub refused: Option<String>,
}

impl Reach {
    /// Asks both, and gives a connection that is being made a moment to be there.
    pub async fn of(shop: &Shop) -> Self {
        let (redis, postgres) = tokio::join!(shop.wait_for_redis(CONNECT), shop.ping_postgres());
        Self {
            redis: redis.is_ok(),
            postgres: postgres.is_ok(),
            refused: match postgres {
                Err(Error::Internal(cause)) => Some(cause.to_string()),
                _ => None,
            },
        }
    }

    /// The one line that says what is away.
    pub fn sentence(&self) -> String {
        if let Some(why) = &self.refused {
            return format!("PostgreSQL refuses DATABASE_URL: {why}");
        }
        let sentence = match (self.redis, self.postgres) {
            (true, true) => "Redis and PostgreSQL answer",
            (false, true) => "Redis is away: nothing can be bought until it is back",
            (true, false) => "PostgreSQL is away: orders will wait in the queue until it is back",
            (false, false) => {
                "Redis and PostgreSQL are away: they are tried again until they answer"
            }
        };
        sentence.to_owned()
    }
}

/// Looks at the ground and tells the console what was accepted. False: not all of it,
/// a service is away.
///
/// # Errors
///
/// The findings, unless they are accepted.
pub async fn look(shop: &Shop, told: &Sender<Arc<Ground>>) -> Result<bool, Unsafe> {
    let accepted = told.borrow().accepted;
    let (all, findings) = match shop.ground().await {
        Ok(findings) => (true, findings),
        // Buying needs Redis alone, so Redis is judged although PostgreSQL is away.
        Err(_) => (false, shop.redis_ground().await.unwrap_or_default()),
    };
    if !findings.is_empty() && !accepted {
        return Err(Unsafe(findings));
    }
    let findings = lines(&findings);
    if all || !findings.is_empty() {
        tell(told, findings);
    }
    Ok(all)
}

/// Logs what is new and shows all of it.
fn tell(told: &Sender<Arc<Ground>>, findings: Vec<String>) {
    let before = Arc::clone(&told.borrow());
    for finding in findings.iter().filter(|new| !before.findings.contains(new)) {
        warn!(finding, "unsafe ground, accepted by SECKILL_UNSAFE");
    }
    told.send_replace(Arc::new(Ground {
        accepted: before.accepted,
        findings,
    }));
}

/// Looks again and again until both services were there, or until `stop`.
///
/// # Errors
///
/// The findings, unless they are accepted.
pub async fn watch(
    shop: &Shop,
    told: &Sender<Arc<Ground>>,
    stop: &CancellationToken,
) -> Result<(), Unsafe> {
    let mut backoff = Backoff::new();
    while !look(shop, told).await? {
        if backoff.wait(stop).await {
            return Ok(());
        }
    }
    info!("Redis and PostgreSQL answer");
    Ok(())
}

/// Looks now and then at an unsafe ground that was accepted, until `stop`, so that the
/// console shows what is unsafe now. Ends at once where none is accepted.
pub async fn keep_looking(shop: &Shop, told: &Sender<Arc<Ground>>, stop: &CancellationToken) {
    while told.borrow().accepted {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(AGAIN) => {}
        }
        // Nothing is refused here: the override is set. What is away keeps what it said.
        let _ = look(shop, told).await;
    }
}
