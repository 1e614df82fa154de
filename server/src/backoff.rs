//! How a loop waits while something it needs is away: 100 ms, doubled up to
//! 2 s, and one log line when the condition begins and one when it ends. A single
//! failure is no condition: the next try, a moment later, usually succeeds.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);

/// The waiting of one loop.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
    failures: u32,
}

impl Backoff {
    /// Nothing has failed yet.
    pub fn new() -> Self {
        Self {
            next: FIRST,
            failures: 0,
        }
    }

    /// Notes a failure. True for the second in a row: the one worth a log line.
    pub fn failed(&mut self) -> bool {
        self.failures = self.failures.saturating_add(1);
        self.failures == 2
    }

    /// Notes a success. True if failures that were told preceded it.
    pub fn succeeded(&mut self) -> bool {
        self.next = FIRST;
        std::mem::take(&mut self.failures) >= 2
    }

    /// Waits, longer each time. True if `stop` came first.
    pub async fn wait(&mut self, stop: &CancellationToken) -> bool {
        let delay = self.next;
        self.next = (delay * 2).min(LONGEST);
        tokio::time::timeout(delay, stop.cancelled()).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_told_when_it_changes_only() {
        let mut backoff = Backoff::new();
        assert!(!backoff.failed() && !backoff.succeeded(), "once is nothing");
        assert!(!backoff.failed() && backoff.failed() && !backoff.failed());
        assert!(backoff.succeeded() && !backoff.succeeded());
    }

    #[tokio::test]
    async fn waiting_ends_with_the_stop() {
        let stop = CancellationToken::new();
        stop.cancel();
        assert!(Backoff::new().wait(&stop).await);
    }
}
