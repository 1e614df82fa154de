//! The operators' pages: dense, aligned, still.

mod alarms;
pub(super) mod audit;
pub(super) mod dead_letters;
mod frame;
pub(super) mod overview;
pub(super) mod pending;
pub(super) mod queue;
pub(super) mod reports;
pub(super) mod sales;
