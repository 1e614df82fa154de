//! Log lines on standard error: JSON, one object a line, unless a person reads
//! them in a terminal.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

/// Crates whose ordinary business at `info` or `warn` says nothing to an
/// operator: a session that expired is not suspicious, and Redis going away is
/// said once by this process itself.
const QUIET: &str =
    "tower_sessions=error,tower_sessions_core=error,fred=error,hyper=warn,sqlx=error";

/// Starts logging with the given filter. A second call changes nothing.
///
/// # Errors
///
/// When the filter is malformed.
pub fn start(filter: &str) -> Result<(), tracing_subscriber::filter::ParseError> {
    // What is given comes last, and so wins over the defaults.
    let filter = EnvFilter::builder().parse(format!("{QUIET},{filter}"))?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    // An error means that a subscriber is there already, as in tests.
    let _ = if io::stderr().is_terminal() {
        lines.try_init()
    } else {
        lines
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .try_init()
    };
    Ok(())
}
