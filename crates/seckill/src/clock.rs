//! The process' clock, handed in: the only place that asks the operating system for the time.
//!
//! It numbers orders and stamps rows. Whether a sale is open is decided by Redis' clock alone.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells the time in milliseconds since the Unix epoch.
pub trait Clock: Send + Sync {
    /// Now. It may step in either direction.
    fn now_ms(&self) -> i64;
}

/// A clock that can be shared.
pub type SharedClock = Arc<dyn Clock>;

/// The operating system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the place that clippy.toml points to"
    )]
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}
