//! The load: calls one after another on each of some connections, as fast as they are answered.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::client::{Answer, Call, Connection, Origin};

/// What came back.
#[derive(Debug, Clone, Default)]
pub(super) struct Pumped {
    /// Answers, by what they said: an outcome, else the status.
    pub(super) kinds: BTreeMap<String, u64>,
    /// Microseconds until each answer, sorted.
    pub(super) micros: Vec<u32>,
    /// From the first call to the last answer.
    pub(super) took: Duration,
}

/// What a purchase's answer says.
#[derive(Deserialize)]
struct Said<'a> {
    outcome: Option<&'a str>,
}

impl Pumped {
    pub(super) fn count(&self, kind: &str) -> u64 {
        self.kinds.get(kind).copied().unwrap_or(0)
    }

    pub(super) fn answers(&self) -> u64 {
        self.kinds.values().sum()
    }

    /// Answers per second.
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
    pub(super) fn rate(&self) -> f64 {
        self.answers() as f64 / self.took.as_secs_f64()
    }

    /// The time that `percent` of 100 answers did not exceed, in milliseconds.
    pub(super) fn within_ms(&self, percent: usize) -> f64 {
        let rank = (self.micros.len() * percent)
            .div_ceil(100)
            .saturating_sub(1);
        f64::from(self.micros.get(rank).copied().unwrap_or(0)) / 1_000.0
    }

    fn heard(&mut self, answer: &Answer, took: Duration) {
        let status = answer.status.as_u16();
        let said = serde_json::from_slice::<Said<'_>>(&answer.body);
        let kind = match said {
            Ok(Said {
                outcome: Some(outcome),
            }) if status == 200 => outcome.to_owned(),
            _ => status.to_string(),
        };
        *self.kinds.entry(kind).or_default() += 1;
        self.micros
            .push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
    }
}

/// When a load ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Until {
    /// After so many calls in all, which are taken in turn.
    Calls(usize),
    /// After so long.
    Time(Duration),
}

/// Sends calls over so many connections, which are made first.
pub(super) async fn pump(
    origin: &Origin,
    calls: &Arc<[Call]>,
    connections: usize,
    until: Until,
) -> Pumped {
    let (next, start) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(Barrier::new(connections + 1)),
    );
    let mut workers = JoinSet::new();
    for _ in 0..connections {
        let (calls, next, start) = (Arc::clone(calls), Arc::clone(&next), Arc::clone(&start));
        let mut connection = Connection::to(origin);
        workers.spawn(async move {
            // What fails here fails again with the first call, and counts there.
            let _ = connection.connect().await;
            start.wait().await;
            let (begun, mut pumped) = (Instant::now(), Pumped::default());
            loop {
                let turn = next.fetch_add(1, Ordering::Relaxed);
                let over = match until {
                    Until::Calls(all) => turn >= all,
                    Until::Time(time) => begun.elapsed() >= time,
                };
                if over {
                    return pumped;
                }
                pumped
                    .call(&mut connection, &calls[turn % calls.len()])
                    .await;
            }
        });
    }
    start.wait().await;
    let begun = Instant::now();
    let pumped = gathered(workers).await;
    Pumped {
        took: begun.elapsed(),
        ..pumped
    }
}

/// Each call once, on a connection of its own that opens at its time within `spread`.
pub(super) async fn burst(origin: &Origin, calls: &Arc<[Call]>, spread: Duration) -> Pumped {
    let begun = Instant::now();
    let mut workers = JoinSet::new();
    let count = u32::try_from(calls.len()).unwrap_or(u32::MAX);
    for (call, n) in calls.iter().zip(0u32..) {
        let (mut connection, call) = (Connection::to(origin), call.clone());
        let due = begun + spread * n / count;
        workers.spawn(async move {
            tokio::time::sleep_until(due.into()).await;
            let mut pumped = Pumped::default();
            pumped.call(&mut connection, &call).await;
            pumped
        });
    }
    let pumped = gathered(workers).await;
    Pumped {
        took: begun.elapsed(),
        ..pumped
    }
}

async fn gathered(mut workers: JoinSet<Pumped>) -> Pumped {
    let mut all = Pumped::default();
    while let Some(ended) = workers.join_next().await {
        let one = ended.expect("a worker does not panic");
        for (kind, count) in one.kinds {
            *all.kinds.entry(kind).or_default() += count;
        }
        all.micros.extend(one.micros);
    }
    all.micros.sort_unstable();
    all
}

impl Pumped {
    async fn call(&mut self, connection: &mut Connection, call: &Call) {
        let begun = Instant::now();
        match connection.send(call).await {
            Ok(answer) => self.heard(&answer, begun.elapsed()),
            Err(_) => *self.kinds.entry("lost".into()).or_default() += 1,
        }
    }
}
