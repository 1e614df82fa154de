//! Whether Redis and PostgreSQL can keep the promise, and what happens if not.
//!
//! Nothing is sold on a ground that could lose an admission: findings end the
//! process, unless the operator has said that they are known. A service that is
//! away is no finding; it is waited for, and looked at as soon as it is there.

use seckill::{Finding, Shop};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::backoff::Backoff;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// Redis answers.
    pub redis: bool,
    /// PostgreSQL answers.
    pub postgres: bool,
}

impl Reach {
    /// Asks both.
    pub async fn of(shop: &Shop) -> Self {
        let (redis, postgres) = tokio::join!(shop.ping_redis(), shop.ping_postgres());
        Self {
            redis: redis.is_ok(),
            postgres: postgres.is_ok(),
        }
    }

    /// Whether both answer.
    pub fn both(self) -> bool {
        self.redis && self.postgres
    }

    /// The one line that says what is away.
    pub fn sentence(self) -> &'static str {
        match (self.redis, self.postgres) {
            (true, true) => "Redis and PostgreSQL answer",
            (false, true) => "Redis is away: nothing can be bought until it is back",
            (true, false) => "PostgreSQL is away: orders will wait in the queue until it is back",
            (false, false) => {
                "Redis and PostgreSQL are away: they are tried again until they answer"
            }
        }
    }
}

/// Looks at the ground if both services answer. False: not yet, one is away.
///
/// # Errors
///
/// The findings, unless they are accepted.
pub async fn look(shop: &Shop, accepted: bool) -> Result<bool, Unsafe> {
    if !Reach::of(shop).await.both() {
        return Ok(false);
    }
    let findings = shop.ground().await;
    if findings.is_empty() {
        return Ok(true);
    }
    if !accepted {
        return Err(Unsafe(findings));
    }
    for finding in lines(&findings) {
        warn!(finding, "unsafe ground, accepted by SECKILL_UNSAFE");
    }
    Ok(true)
}

/// Waits for both services and looks, until `stop`.
///
/// # Errors
///
/// The findings, unless they are accepted.
pub async fn watch(shop: Shop, accepted: bool, stop: CancellationToken) -> Result<(), Unsafe> {
    let mut backoff = Backoff::new();
    while !look(&shop, accepted).await? {
        if backoff.wait(&stop).await {
            return Ok(());
        }
    }
    info!("Redis and PostgreSQL answer");
    Ok(())
}
