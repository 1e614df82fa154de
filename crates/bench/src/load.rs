//! The load: workers that take requests off one list, each on a connection of its own.
//!
//! A buyer behaves as a browser does: what was refused with 503 or 429, or lost on the way, is
//! sent again after the time that the server names, a bounded number of times. Whatever else
//! the server answers is final.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, header};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use seckill::{OrderId, UserId, VoucherId};
use serde::Deserialize;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::client::{Answer, Call, Connection, Origin};
use crate::ledger::{Ledger, LedgerError, Pen};
use crate::report::Progress;

/// The longest that a buyer waits before the next try, whatever the server names.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// What a buyer waits before the next try when the server names nothing.
const WAIT: Duration = Duration::from_millis(200);

/// Somebody who is signed in.
#[derive(Debug, Clone)]
pub struct Buyer {
    /// Who.
    pub user: UserId,
    /// The session's cookie.
    pub cookie: HeaderValue,
}

/// What is sent, by whom, in which order.
pub struct Load {
    /// Where to.
    pub origin: Origin,
    /// By whom.
    pub buyers: Arc<[Buyer]>,
    /// The requests: for each the index of its buyer.
    pub order: Vec<u32>,
    /// For what.
    pub voucher: VoucherId,
    /// Connections.
    pub concurrency: u32,
    /// Tries after the first.
    pub retries: u32,
}

/// How it went.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Decided requests, by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Requests that were answered with an error, by status and code.
    pub failures: BTreeMap<String, u64>,
    /// Tries that were sent again, by why.
    pub retried: BTreeMap<String, u64>,
    /// Requests that no try brought an answer to.
    pub given_up: u64,
    /// Microseconds from sending to the whole answer, of decided requests.
    pub micros: Vec<u32>,
    /// From the first request to the last answer.
    pub took: Duration,
}

impl Tally {
    /// Requests that were decided.
    pub fn decided(&self) -> u64 {
        self.outcomes.values().sum()
    }

    fn add(&mut self, other: Self) {
        for (sum, part) in [
            (&mut self.outcomes, other.outcomes),
            (&mut self.failures, other.failures),
            (&mut self.retried, other.retried),
        ] {
            for (name, count) in part {
                *sum.entry(name).or_default() += count;
            }
        }
        self.given_up += other.given_up;
        self.micros.extend(other.micros);
    }
}

/// Each buyer's index `times` times, in an order drawn from the seed, so that a buyer's
/// requests lie among everybody's.
pub fn shuffled(buyers: u32, times: u32, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..times).flat_map(|_| 0..buyers).collect();
    order.shuffle(&mut StdRng::seed_from_u64(seed));
    order
}

/// Sends everything. Connections are made before the first request leaves.
///
/// # Errors
/// When the ledger can't be written: then nothing more is sent.
pub async fn run(load: Load, ledger: &Ledger, progress: &Progress) -> Result<Tally, LedgerError> {
    let count = load.order.len().min(load.concurrency as usize);
    let load = Arc::new(load);
    let (next, start) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(Barrier::new(count + 1)),
    );
    let mut workers = JoinSet::new();
    for _ in 0..count {
        let worker = Worker {
            connection: Connection::to(&load.origin),
            pen: ledger.pen(load.voucher),
            call: Call::post("/api/buy", &[("voucher_id", &load.voucher.to_string())]),
            tally: Tally::default(),
            progress: progress.clone(),
            load: Arc::clone(&load),
        };
        workers.spawn(worker.work(Arc::clone(&next), Arc::clone(&start)));
    }
    start.wait().await;
    let begun = Instant::now();
    let mut tally = Tally::default();
    while let Some(ended) = workers.join_next().await {
        tally.add(ended.expect("a worker does not panic")?);
    }
    tally.took = begun.elapsed();
    tally.micros.sort_unstable();
    Ok(tally)
}

struct Worker {
    load: Arc<Load>,
    connection: Connection,
    pen: Pen,
    call: Call,
    tally: Tally,
    progress: Progress,
}

impl Worker {
    async fn work(
        mut self,
        next: Arc<AtomicUsize>,
        start: Arc<Barrier>,
    ) -> Result<Tally, LedgerError> {
        // A connection that can't be made now is tried again, and counted, with the first request.
        let _ = self.connection.connect().await;
        start.wait().await;
        let load = Arc::clone(&self.load);
        while let Some(&buyer) = load.order.get(next.fetch_add(1, Ordering::Relaxed)) {
            self.request(&load.buyers[buyer as usize]).await?;
            self.progress.step();
        }
        self.pen.flush()?;
        Ok(self.tally)
    }

    /// One request of a buyer, with its tries.
    async fn request(&mut self, buyer: &Buyer) -> Result<(), LedgerError> {
        let call = self.call.by(&buyer.cookie);
        for _ in 0..=self.load.retries {
            let wait = match self.attempt(buyer, &call).await? {
                Fate::Final => return Ok(()),
                Fate::Again { why, wait } => {
                    *self.tally.retried.entry(why).or_default() += 1;
                    wait
                }
            };
            self.pen.flush()?;
            tokio::time::sleep(wait).await;
        }
        self.tally.given_up += 1;
        Ok(())
    }

    async fn attempt(&mut self, buyer: &Buyer, call: &Call) -> Result<Fate, LedgerError> {
        let attempt = self.pen.sent(buyer.user)?;
        let begun = Instant::now();
        let answer = match self.connection.send(call).await {
            Ok(answer) => answer,
            Err(error) => {
                self.pen.lost(attempt, buyer.user, &error.to_string());
                return Ok(Fate::Again {
                    why: "lost".into(),
                    wait: WAIT,
                });
            }
        };
        let took = begun.elapsed();
        let said = Said::of(&answer);
        self.pen.answered(
            attempt,
            buyer.user,
            answer.status.as_u16(),
            said.outcome.as_deref(),
            said.order_id,
        );
        match (answer.status.as_u16(), said.outcome) {
            (200, Some(outcome)) => {
                *self.tally.outcomes.entry(outcome).or_default() += 1;
                self.tally
                    .micros
                    .push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
                Ok(Fate::Final)
            }
            (status @ (429 | 503), _) => Ok(Fate::Again {
                why: status.to_string(),
                wait: wait(&answer.headers),
            }),
            (status, _) => {
                let code = said.code.as_deref().unwrap_or("no error form");
                *self
                    .tally
                    .failures
                    .entry(format!("{status} {code}"))
                    .or_default() += 1;
                Ok(Fate::Final)
            }
        }
    }
}

enum Fate {
    Final,
    Again { why: String, wait: Duration },
}

/// What an answer's body says: a purchase, or an error.
#[derive(Debug, Default, Deserialize)]
struct Said {
    outcome: Option<String>,
    order_id: Option<OrderId>,
    code: Option<String>,
}

impl Said {
    fn of(answer: &Answer) -> Self {
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }
}

fn wait(headers: &HeaderMap) -> Duration {
    let named = headers
        .get(header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.parse().ok());
    named.map_or(WAIT, Duration::from_secs).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_the_same_for_a_seed_and_holds_every_request() {
        let order = shuffled(100, 5, 7);
        assert_eq!(order, shuffled(100, 5, 7));
        assert_ne!(order, shuffled(100, 5, 8));
        let mut sorted = order;
        sorted.sort_unstable();
        assert_eq!(
            sorted,
            (0..100).flat_map(|buyer| [buyer; 5]).collect::<Vec<u32>>()
        );
    }

    #[test]
    fn a_buyer_waits_as_long_as_the_server_names_within_reason() {
        let named =
            |text| HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static(text))]);
        assert_eq!(wait(&named("2")), Duration::from_secs(2));
        assert_eq!(wait(&named("3600")), LONGEST_WAIT);
        assert_eq!(wait(&named("soon")), WAIT);
        assert_eq!(wait(&HeaderMap::new()), WAIT);
    }
}
