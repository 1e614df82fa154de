//! Faults, placed exactly: the real binary is killed, stopped and cut off under load, and each
//! scenario ends in the audit of what its buyers were told.
//!
//! Sizes are those of continuous integration; `SECKILL_FAULTS_SCALE` multiplies them. Each
//! scenario prints its figures in one line that begins with the fault's name.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by a panic"
)]

#[path = "../support/mod.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "shared with the other tests of the process, which use the rest"
)]
mod support;

mod stand;

mod aborts;
mod claims;
mod crowds;
mod halves;
mod kills;
mod letters;
mod loaders;
mod many;
mod poison;
mod postgres;
mod reconcilers;
mod stops;
