//! Every SQL statement, one file per noun; checked at compile time against `migrations/`.
//!
//! Functions take an executor, so that the caller decides what belongs to one transaction.

pub(crate) mod account;
pub(crate) mod order;
pub(crate) mod voucher;
pub(crate) mod watch;

use std::str::FromStr;
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use crate::Error;

/// How long a caller waits for a connection before the answer is "unavailable".
const ACQUIRE: Duration = Duration::from_secs(3);

/// A pool that connects when it is used, and again after each loss.
///
/// The limits end what a stopped process left open: a transaction that idles holds a sale's row.
pub(crate) fn pool(url: &str, connections: u32) -> Result<PgPool, sqlx::Error> {
    let options = PgConnectOptions::from_str(url)?
        .application_name("seckill")
        .options([
            ("idle_in_transaction_session_timeout", "30s"),
            ("lock_timeout", "10s"),
            ("statement_timeout", "60s"),
        ]);
    Ok(PgPoolOptions::new()
        .max_connections(connections.max(1))
        .acquire_timeout(ACQUIRE)
        .connect_lazy_with(options))
}

/// A column that can't hold what it holds.
pub(crate) fn impossible(table: &str, column: &str, id: impl std::fmt::Display) -> Error {
    Error::impossible(format!("impossible row: {table}.{column} of {id}"))
}
