//! The load generator and the auditor, for `seckill-bench` and for the tests that place faults.
//!
//! It sees what a browser sees, and for the audit reads PostgreSQL and, through the domain,
//! Redis. What it was told is kept in a ledger, so that nobody's word is taken for an order but
//! the database's.

mod admin;
pub mod args;
pub mod audit;
pub mod client;
pub mod facts;
pub mod ledger;
pub mod limits;
pub mod load;
pub mod record;
pub mod report;
pub mod road;
pub mod scenario;
mod server;
pub mod site;
pub mod sql;
pub mod viewers;
