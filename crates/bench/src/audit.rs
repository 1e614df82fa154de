//! The audit: what a client was told, against what PostgreSQL and Redis hold.
//!
//! [`checks`] is a pure function of [`Facts`]; [`crate::facts`] gathers them. Each check stands
//! for a sentence of the promise, and can fail: the tests break each one.

mod orders;
mod stock;

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use seckill::{OrderId, VoucherId};
use serde::Serialize;

use crate::record::Record;
use crate::sql::{Row, Stock};

/// A sale's counters in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// Whether Redis holds the sale.
    pub loaded: bool,
    /// Units put on sale.
    pub total: i64,
    /// Units left.
    pub left: i64,
    /// Admitted, not yet confirmed.
    pub in_flight: i64,
    /// Dead letters.
    pub dead: i64,
    /// Acknowledged rows.
    pub confirmed: i64,
}

/// Everything that is judged.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// What the ledger says.
    pub record: Record,
    /// Every order of the ledger's sales.
    pub rows: Vec<Row>,
    /// The ledger's sales.
    pub stocks: Vec<Stock>,
    /// The orders that lie among the dead letters.
    pub dead: HashSet<OrderId>,
    /// Counters read before the rows. A sale that Redis has released after its end has none.
    pub before: HashMap<VoucherId, Counters>,
    /// Counters read after the rows.
    pub after: HashMap<VoucherId, Counters>,
}

/// One line of the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What must hold.
    pub name: &'static str,
    /// Whether it does.
    pub passed: bool,
    /// The figures it was judged by, and the first few that break it.
    pub figures: String,
}

/// How many breaches a line names.
const NAMED: usize = 3;

impl Check {
    /// A check with its figures and what breaks it, if anything does.
    pub fn of(name: &'static str, mut figures: String, breaches: &[String]) -> Self {
        if !breaches.is_empty() {
            let named = breaches[..breaches.len().min(NAMED)].join("; ");
            let _ = write!(figures, "; {} wrong: {named}", breaches.len());
        }
        Self {
            name,
            passed: breaches.is_empty(),
            figures,
        }
    }
}

/// Judges the facts.
pub fn checks(facts: &Facts) -> Vec<Check> {
    let index = Index::of(facts);
    vec![
        drained(facts),
        orders::nothing_lost(facts, &index),
        orders::one_owner(facts, &index),
        orders::admitted_once(facts),
        orders::one_id_per_user(facts, &index),
        orders::one_live_order(facts),
        stock::no_oversell(facts, &index),
        orders::only_attempted(facts),
        stock::no_undersell(facts, &index),
        stock::stock_agrees(facts, &index),
        stock::conservation(facts, &index),
    ]
}

/// Whether every check passed.
pub fn passed(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.passed)
}

struct Index<'a> {
    row: HashMap<OrderId, &'a Row>,
    live: HashMap<VoucherId, i64>,
    failed: HashMap<VoucherId, i64>,
    decided: HashMap<VoucherId, i64>,
}

impl<'a> Index<'a> {
    fn of(facts: &'a Facts) -> Self {
        let (mut live, mut failed, mut decided) = (HashMap::new(), HashMap::new(), HashMap::new());
        for row in &facts.rows {
            *if row.live { &mut live } else { &mut failed }
                .entry(row.voucher)
                .or_default() += 1;
        }
        for (voucher, _) in &facts.record.decided {
            *decided.entry(*voucher).or_default() += 1;
        }
        Self {
            row: facts.rows.iter().map(|row| (row.order, row)).collect(),
            live,
            failed,
            decided,
        }
    }

    fn live(&self, voucher: VoucherId) -> i64 {
        self.live.get(&voucher).copied().unwrap_or(0)
    }

    fn failed(&self, order: OrderId) -> bool {
        self.row.get(&order).is_some_and(|row| !row.live)
    }
}

fn drained(facts: &Facts) -> Check {
    let left = facts.after.iter().filter(|(_, sale)| sale.in_flight != 0);
    let breaches: Vec<String> = left
        .map(|(id, sale)| format!("sale {id} has {}", sale.in_flight))
        .collect();
    Check::of(
        "nothing is in flight any more",
        format!("{} sales", facts.record.vouchers.len()),
        &breaches,
    )
}

#[cfg(test)]
mod tests;
