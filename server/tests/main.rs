//! The process as its users meet it: over HTTP, on real Redis and PostgreSQL.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by a panic"
)]

mod support;

mod accounts;
mod buying;
mod console;
mod contract;
mod crashes;
mod forms;
mod starting;
