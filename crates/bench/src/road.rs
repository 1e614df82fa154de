//! The road to this design: every earlier way to sell vouchers, working, measured and audited.
//!
//! A way is a [`Contender`]: it takes an order and answers, and may persist behind the answer.
//! It always runs in child processes of its own (`child.rs`), which the parent loads (`run.rs`),
//! kills with SIGKILL, starts again, and audits; `roster.rs` says of each what it gets wrong,
//! and a run passes only if exactly that is what the audit finds.

mod audit;
mod child;
mod contenders;
mod crew;
mod pages;
mod roster;
mod run;
mod stores;
mod walk;

use std::io::Write;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

pub use child::child;
pub use pages::{Outcome, lines, write_pages};
pub use roster::{Row, rows};
pub use run::{Road, Size};
pub use walk::walk;

/// Why a contender, or its run, could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RoadError {
    /// PostgreSQL failed.
    #[error("PostgreSQL: {0}")]
    Sql(#[from] sqlx::Error),
    /// Redis failed.
    #[error("Redis: {0}")]
    Redis(#[from] fred::error::Error),
    /// RabbitMQ failed.
    #[error("RabbitMQ: {0}")]
    Amqp(#[from] lapin::Error),
    /// The product's path failed.
    #[error("the product: {0}")]
    Shop(#[from] seckill::Error),
    /// The product could not be opened.
    #[error("the product: {0}")]
    Open(#[from] seckill::OpenError),
    /// A pipe or a file failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Something is not as this program made it.
    #[error("{0}")]
    Broken(String),
}

/// What goes wrong on purpose while an order is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// The process stops between the decision and handing the order on, and is killed there.
    Crash,
    /// Under the lock: the work fails after the lease is over, and the lock is released.
    FailLate,
    /// The work fails at once; the release stops between looking and deleting.
    SlowRelease,
    /// The work takes longer than the lease, and then writes.
    Slow,
    /// The work takes its time, within the lease.
    Dwell,
}

impl Fault {
    const ALL: [(Self, &str); 6] = [
        (Self::None, "none"),
        (Self::Crash, "crash"),
        (Self::FailLate, "fail-late"),
        (Self::SlowRelease, "slow-release"),
        (Self::Slow, "slow"),
        (Self::Dwell, "dwell"),
    ];

    fn word(self) -> &'static str {
        let found = Self::ALL.into_iter().find(|(fault, _)| *fault == self);
        found.map_or("none", |(_, word)| word)
    }

    fn parse(word: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(_, known)| *known == word);
        found.map(|(fault, _)| fault)
    }
}

/// One order that is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    /// The request's number, by which the parent knows it.
    pub(crate) number: u64,
    pub(crate) user: i64,
    pub(crate) voucher: i64,
    pub(crate) fault: Fault,
    /// How long locks are leased, which every fault's length is measured by.
    pub(crate) lease: Duration,
}

impl Ask {
    /// If this is the fault: tells the parent that its place is reached, and waits.
    pub(crate) async fn at(&self, fault: Fault) -> bool {
        if self.fault != fault {
            return false;
        }
        let wait = match fault {
            Fault::None => return false,
            Fault::Crash => None,
            Fault::FailLate | Fault::SlowRelease => Some(self.lease + self.lease / 10),
            Fault::Slow => Some(self.lease * 2),
            Fault::Dwell => Some(self.lease * 2 / 5),
        };
        line(&format!("h {}", self.number));
        match wait {
            Some(wait) => tokio::time::sleep(wait).await,
            None => std::future::pending().await,
        }
        true
    }
}

/// Writes a line to the parent.
fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    // A parent that is gone has closed the input too, which ends this process.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// What a client is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The order is taken.
    Accepted(i64),
    /// This user has one already; its id, where the contender knows it.
    Already(Option<i64>),
    /// Nothing is left.
    SoldOut,
    /// Refused although something was left: somebody else changed it meanwhile.
    Conflict,
    /// This user's lock is held.
    Busy,
    /// The work failed.
    Failed,
}

impl Answer {
    fn words(self) -> String {
        match self {
            Self::Accepted(id) => format!("accepted {id}"),
            Self::Already(Some(id)) => format!("already {id}"),
            Self::Already(None) => "already".into(),
            Self::SoldOut => "sold-out".into(),
            Self::Conflict => "conflict".into(),
            Self::Busy => "busy".into(),
            Self::Failed => "failed".into(),
        }
    }

    fn parse(words: &str) -> Option<Self> {
        let mut parts = words.split(' ');
        let word = parts.next()?;
        let id = parts.next().and_then(|id| id.parse().ok());
        Some(match word {
            "accepted" => Self::Accepted(id?),
            "already" => Self::Already(id),
            "sold-out" => Self::SoldOut,
            "conflict" => Self::Conflict,
            "busy" => Self::Busy,
            "failed" => Self::Failed,
            _ => return None,
        })
    }

    /// The order that the client believes to have after this answer.
    pub(crate) fn order(self) -> Option<i64> {
        match self {
            Self::Accepted(id) | Self::Already(Some(id)) => Some(id),
            _ => None,
        }
    }
}

/// One way to sell.
pub(crate) trait Contender: Send + Sync {
    /// Takes an order and answers.
    fn buy<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<Answer, RoadError>>;

    /// Brings what was decided into the database, until it is dropped. Tells once that it is
    /// ready to. Ways that write before they answer have nothing to do here.
    fn persist(&self, ready: Ready) -> BoxFuture<'_, Result<(), RoadError>> {
        ready.tell();
        Box::pin(std::future::pending())
    }
}

/// Told when a contender's persisting has begun to listen.
pub(crate) struct Ready(tokio::sync::oneshot::Sender<()>);

impl Ready {
    pub(crate) fn tell(self) {
        // Nobody waits any more when the process ends.
        let _ = self.0.send(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_faults_travel_as_words() {
        for answer in [
            Answer::Accepted(7),
            Answer::Already(Some(8)),
            Answer::Already(None),
            Answer::SoldOut,
            Answer::Conflict,
            Answer::Busy,
            Answer::Failed,
        ] {
            assert_eq!(Answer::parse(&answer.words()), Some(answer));
        }
        assert_eq!(Answer::parse("accepted"), None);
        for (fault, word) in Fault::ALL {
            assert_eq!(Fault::parse(word), Some(fault));
            assert_eq!(fault.word(), word);
        }
    }
}
