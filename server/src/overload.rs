//! The gate in front of everything that costs: beyond a number of requests
//! under way, the next one is refused at once.
//!
//! A queue in front of a full server only makes every answer late; a refusal
//! with `Retry-After` keeps memory flat and lets those inside finish. Health
//! and metrics are exempt, because a server that is full is not a dead one.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Counts the requests under way.
#[derive(Debug, Clone)]
pub struct Gate {
    seats: Arc<Semaphore>,
}

impl Gate {
    /// A gate that lets `at_once` requests through at a time.
    pub fn new(at_once: usize) -> Self {
        Self {
            seats: Arc::new(Semaphore::new(at_once.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// A seat, given back when dropped; none when the server is full.
    pub fn enter(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.seats).try_acquire_owned().ok()
    }
}

/// Whether the path is answered however full the server is.
pub fn exempt(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz" | "/metrics")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_gate_refuses_until_somebody_leaves() {
        let gate = Gate::new(1);
        let seat = gate.enter();
        assert!(seat.is_some() && gate.enter().is_none());
        drop(seat);
        assert!(gate.enter().is_some());
    }
}
