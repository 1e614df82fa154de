//! The end of the process: SIGTERM or SIGINT asks for an orderly one, a second
//! signal does not wait for it.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// Exit status of a process that was told twice, as a shell counts SIGINT.
const TOLD_TWICE: i32 = 130;

/// A token that is cancelled by the first signal.
///
/// # Errors
///
/// When the operating system refuses signal handlers.
pub fn on_signal() -> io::Result<CancellationToken> {
    let terminate = signal(SignalKind::terminate())?;
    let interrupt = signal(SignalKind::interrupt())?;
    let stop = CancellationToken::new();
    tokio::spawn(told(stop.clone(), terminate, interrupt));
    Ok(stop)
}

#[expect(
    clippy::disallowed_methods,
    reason = "who signals twice does not want to wait for an orderly return"
)]
async fn told(stop: CancellationToken, mut terminate: Signal, mut interrupt: Signal) {
    next(&mut terminate, &mut interrupt).await;
    info!("stopping: requests under way and batches in hand are finished first");
    stop.cancel();
    next(&mut terminate, &mut interrupt).await;
    warn!("told twice to stop: leaving at once");
    std::process::exit(TOLD_TWICE);
}

async fn next(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
