//! What a run found: judged, and as table, JSON, Markdown and a chart.

mod chart;
mod table;

use std::collections::HashMap;
use std::io;
use std::path::Path;

use serde::Serialize;

use super::Fault;
use super::roster::{Expect, Row};
use super::run::{Size, today};
use chart::chart;
pub use table::lines;
use table::markdown;

/// The figures of a contender.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) answers_per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) orders_per_second: f64,
    pub(crate) rows: usize,
    pub(crate) oversold: usize,
    pub(crate) doubled: usize,
    pub(crate) conflicts: u64,
    pub(crate) failed: u64,
    pub(crate) lost_without_crash: usize,
    pub(crate) lost: usize,
    pub(crate) crash_told: usize,
    pub(crate) crash_doubled: usize,
    pub(crate) success: f64,
    pub(crate) statements_per_order: f64,
    pub(crate) commands_per_order: f64,
    pub(crate) by_fault: HashMap<Fault, usize>,
}

/// A contender's figures, and whether they are what its row says.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// The row's name.
    pub name: &'static str,
    /// The row's title.
    pub title: &'static str,
    /// The row's group.
    pub group: u8,
    /// Answers per second.
    pub answers_per_second: f64,
    /// Half of the answers came within, in milliseconds.
    pub p50_ms: f64,
    /// 99 in 100 answers came within, in milliseconds.
    pub p99_ms: f64,
    /// Rows per second, from the first ask to the last row.
    pub orders_per_second: f64,
    /// Rows in all.
    pub orders: usize,
    /// Rows above the stock.
    pub oversold: usize,
    /// Second rows of one user: under the load.
    pub doubled: usize,
    /// The same: when a lock's holder met a fault.
    pub doubled_by_faults: usize,
    /// The same: after SIGKILL.
    pub doubled_after_kill: usize,
    /// Orders that clients were told of and that are gone after SIGKILL.
    pub lost_after_kill: usize,
    /// Orders that clients were told of in that part.
    pub told_before_kill: usize,
    /// Of the asks that met stock, how many got it, 0 to 1.
    pub success_rate: f64,
    /// Statements to PostgreSQL per order, BEGIN not counted, COMMIT counted.
    pub statements_per_order: f64,
    /// Commands in Redis per order, those inside scripts counted.
    pub commands_per_order: f64,
    /// Whether the audit of a right way would pass.
    pub audit_passed: bool,
    /// What is not as the row says; empty in a run that passed.
    pub surprises: Vec<String>,
}

impl Outcome {
    /// Judges what was measured by what the row says.
    pub(crate) fn of(row: &'static Row, measured: Measured) -> Self {
        let at_fault = |fault| measured.by_fault.get(&fault).copied().unwrap_or(0);
        let holds = |expect: &Expect| match expect {
            Expect::Oversells => measured.oversold > 0,
            Expect::NeverOversells => measured.oversold == 0,
            Expect::Doubles => measured.doubled > 0,
            Expect::NeverDoubles => measured.doubled == 0,
            Expect::Conflicts => measured.conflicts > 0,
            Expect::NeverConflicts => measured.conflicts == 0,
            Expect::Loses => measured.lost > 0,
            Expect::NeverLoses => measured.lost == 0,
            Expect::DoublesAfterCrash => measured.crash_doubled > 0,
            Expect::NeverDoublesAfterCrash => measured.crash_doubled == 0,
            Expect::DoublesAt(fault) => at_fault(*fault) > 0,
            Expect::SafeAt(fault) => at_fault(*fault) == 0,
        };
        let mut surprises: Vec<String> = row
            .expect
            .iter()
            .filter(|expect| !holds(expect))
            .map(|expect| format!("not so: {expect:?}"))
            .collect();
        if measured.failed > 0 {
            surprises.push(format!("{} asks failed", measured.failed));
        }
        if measured.lost_without_crash > 0 {
            surprises.push(format!(
                "{} orders lost without a crash",
                measured.lost_without_crash
            ));
        }
        let by_faults = measured.by_fault.values().sum();
        let wrong = measured.oversold
            + measured.doubled
            + by_faults
            + measured.crash_doubled
            + measured.lost;
        Self {
            name: row.name,
            title: row.title,
            group: row.group,
            answers_per_second: rounded(measured.answers_per_second),
            p50_ms: rounded(measured.p50_ms),
            p99_ms: rounded(measured.p99_ms),
            orders_per_second: rounded(measured.orders_per_second),
            orders: measured.rows,
            oversold: measured.oversold,
            doubled: measured.doubled,
            doubled_by_faults: by_faults,
            doubled_after_kill: measured.crash_doubled,
            lost_after_kill: measured.lost,
            told_before_kill: measured.crash_told,
            success_rate: (measured.success * 1_000.0).round() / 1_000.0,
            statements_per_order: rounded(measured.statements_per_order),
            commands_per_order: rounded(measured.commands_per_order),
            audit_passed: wrong == 0 && measured.conflicts == 0,
            surprises,
        }
    }
}

/// To a tenth.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[derive(Serialize)]
struct Document<'a> {
    /// yyyy-mm-dd
    date: String,
    cores: usize,
    /// "release", or "debug": slower than what anybody runs.
    build: &'static str,
    users: u32,
    stock: u32,
    concurrency: u32,
    crash_users: u32,
    lease_ms: u64,
    contenders: &'a [Outcome],
}

/// Writes `road.md`, `road.json` and `road.svg` into a folder.
///
/// # Errors
/// When a file can't be written.
pub fn write_pages(folder: &Path, outcomes: &[Outcome], size: &Size) -> io::Result<()> {
    let document = Document {
        date: today(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        build: if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        },
        users: size.users,
        stock: size.stock,
        concurrency: size.concurrency,
        crash_users: size.crash_users,
        lease_ms: size.lease_ms,
        contenders: outcomes,
    };
    std::fs::create_dir_all(folder)?;
    let json = serde_json::to_string_pretty(&document)?;
    std::fs::write(folder.join("road.json"), json + "\n")?;
    std::fs::write(folder.join("road.md"), markdown(&document))?;
    std::fs::write(folder.join("road.svg"), chart(outcomes))
}
