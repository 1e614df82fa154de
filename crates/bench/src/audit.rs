//! The audit: what a client was told, against what PostgreSQL and Redis hold.
//!
//! [`checks`] is a pure function of [`Facts`]; [`crate::facts`] gathers them. Each check stands
//! for a sentence of the promise, and can fail: the tests break each one.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use seckill::{OrderId, UserId, VoucherId};
use serde::Serialize;

use crate::ledger::Record;
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
        nothing_lost(facts, &index),
        one_owner(facts, &index),
        admitted_once(facts),
        one_id_per_user(facts, &index),
        one_live_order(facts),
        no_oversell(facts, &index),
        only_attempted(facts),
        no_undersell(facts, &index),
        stock_agrees(facts, &index),
        conservation(facts, &index),
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

/// Acknowledged ⊆ final, dead letters counted apart: not lost, but not settled.
fn nothing_lost(facts: &Facts, index: &Index<'_>) -> Check {
    let (mut confirmed, mut failed, mut dead, mut breaches) = (0, 0, 0, Vec::new());
    let ids: HashSet<OrderId> = facts
        .record
        .acknowledged
        .iter()
        .map(|told| told.2)
        .collect();
    for &id in &ids {
        match index.row.get(&id) {
            Some(row) if row.live => confirmed += 1,
            Some(_) => failed += 1,
            None if facts.dead.contains(&id) => dead += 1,
            None => breaches.push(format!("order {id}")),
        }
    }
    let figures = format!(
        "{} ids told: {confirmed} confirmed, {failed} failed, {dead} dead letters",
        ids.len()
    );
    Check::of("nothing admitted is lost", figures, &breaches)
}

/// Everybody who was told an id is the one whose order it is.
fn one_owner(facts: &Facts, index: &Index<'_>) -> Check {
    let mut owners: HashMap<OrderId, (VoucherId, UserId)> = index
        .row
        .iter()
        .map(|(&id, row)| (id, (row.voucher, row.user)))
        .collect();
    let mut breaches = Vec::new();
    for &(voucher, user, id) in &facts.record.acknowledged {
        let owner = *owners.entry(id).or_insert((voucher, user));
        if owner != (voucher, user) {
            breaches.push(format!(
                "order {id} is that of users {} and {user}",
                owner.1
            ));
        }
    }
    Check::of(
        "no id has two owners",
        format!("{} ids", owners.len()),
        &breaches,
    )
}

fn admitted_once(facts: &Facts) -> Check {
    let admitted = &facts.record.admitted;
    let more = admitted.iter().filter(|(_, times)| **times > 1);
    let breaches: Vec<String> = more
        .map(|(id, times)| format!("order {id} {times} times"))
        .collect();
    Check::of(
        "each order is admitted once",
        format!("{} admitted", admitted.len()),
        &breaches,
    )
}

/// A buyer is told one id; another only after the first was discarded.
fn one_id_per_user(facts: &Facts, index: &Index<'_>) -> Check {
    let mut ids: HashMap<(VoucherId, UserId), OrderId> = HashMap::new();
    let mut breaches = Vec::new();
    for &(voucher, user, id) in facts
        .record
        .acknowledged
        .iter()
        .filter(|told| !index.failed(told.2))
    {
        if let Some(other) = ids.insert((voucher, user), id) {
            breaches.push(format!("user {user} was told {other} and {id}"));
        }
    }
    Check::of(
        "one id per user in all answers",
        format!("{} users hold one", ids.len()),
        &breaches,
    )
}

fn one_live_order(facts: &Facts) -> Check {
    let mut holders = HashSet::new();
    let twice = facts
        .rows
        .iter()
        .filter(|row| row.live && !holders.insert((row.voucher, row.user)));
    let breaches: Vec<String> = twice
        .map(|row| format!("user {} in sale {}", row.user, row.voucher))
        .collect();
    Check::of(
        "one live order per user and voucher",
        format!("{} users", holders.len()),
        &breaches,
    )
}

fn no_oversell(facts: &Facts, index: &Index<'_>) -> Check {
    let over = facts
        .stocks
        .iter()
        .filter(|sale| index.live(sale.voucher) > sale.total);
    let breaches: Vec<String> = over
        .map(|s| {
            format!(
                "sale {} has {} of {}",
                s.voucher,
                index.live(s.voucher),
                s.total
            )
        })
        .collect();
    let (live, total) = (
        index.live.values().sum::<i64>(),
        facts.stocks.iter().map(|s| s.total).sum::<i64>(),
    );
    Check::of(
        "nothing is oversold",
        format!("{live} confirmed of {total}"),
        &breaches,
    )
}

/// Final ⊆ attempted.
fn only_attempted(facts: &Facts) -> Check {
    let strange = facts
        .rows
        .iter()
        .filter(|row| !facts.record.attempted.contains(&(row.voucher, row.user)));
    let breaches: Vec<String> = strange
        .map(|row| format!("order {} of user {}", row.order, row.user))
        .collect();
    let figures = format!(
        "{} rows, {} attempts",
        facts.rows.len(),
        facts.record.attempts
    );
    Check::of("every row comes from an attempt", figures, &breaches)
}

/// Demand that reached the stock left nothing unsold. Units in dead letters are not sold yet,
/// and discarded ones were on sale again, maybe after the last buyer had gone.
fn no_undersell(facts: &Facts, index: &Index<'_>) -> Check {
    let (mut figures, mut breaches) = (Vec::new(), Vec::new());
    for sale in &facts.stocks {
        let count = |of: &HashMap<VoucherId, i64>| of.get(&sale.voucher).copied().unwrap_or(0);
        let (demand, live, failed) = (
            count(&index.decided),
            count(&index.live),
            count(&index.failed),
        );
        let dead = facts
            .after
            .get(&sale.voucher)
            .map_or(0, |counters| counters.dead);
        if demand >= sale.total && live + dead + failed < sale.total {
            breaches.push(format!(
                "sale {} sold {live} of {}",
                sale.voucher, sale.total
            ));
        }
        let unsettled = if dead > 0 {
            format!(" and {dead} dead letters")
        } else {
            String::new()
        };
        figures.push(format!(
            "demand {demand}, stock {}, sold {live}{unsettled}",
            sale.total
        ));
    }
    let shown = match figures.len() {
        0..=2 => figures.join("; "),
        more => format!("{more} sales, the last: {}", figures[more - 1]),
    };
    Check::of("nothing is undersold", shown, &breaches)
}

fn stock_agrees(facts: &Facts, index: &Index<'_>) -> Check {
    let known: HashSet<VoucherId> = facts.stocks.iter().map(|sale| sale.voucher).collect();
    let gone = facts
        .record
        .vouchers
        .iter()
        .filter(|id| !known.contains(id));
    let mut breaches: Vec<String> = gone
        .map(|id| format!("sale {id} is not in PostgreSQL"))
        .collect();
    let wrong = facts
        .stocks
        .iter()
        .filter(|sale| sale.left != sale.total - index.live(sale.voucher));
    breaches.extend(wrong.map(|sale| {
        format!(
            "sale {}: {} left of {}, {} sold",
            sale.voucher,
            sale.left,
            sale.total,
            index.live(sale.voucher)
        )
    }));
    let left: i64 = facts.stocks.iter().map(|sale| sale.left).sum();
    Check::of(
        "PostgreSQL's stock is total minus live orders",
        format!("{left} left"),
        &breaches,
    )
}

/// total = left + in flight + dead + confirmed in Redis, and the rows lie between what was
/// acknowledged before they were counted and everything admitted after.
fn conservation(facts: &Facts, index: &Index<'_>) -> Check {
    let mut breaches = Vec::new();
    let mut sum = (0, 0, 0, 0, 0);
    for (&id, sale) in &facts.after {
        let Counters {
            loaded,
            total,
            left,
            in_flight,
            dead,
            confirmed,
        } = *sale;
        sum = (
            sum.0 + total,
            sum.1 + left,
            sum.2 + in_flight,
            sum.3 + dead,
            sum.4 + confirmed,
        );
        if !loaded {
            breaches.push(format!("sale {id} is not held by Redis"));
        } else if total != left + in_flight + dead + confirmed || left < 0 {
            breaches.push(format!(
                "sale {id}: {total} is not {left} + {in_flight} + {dead} + {confirmed}"
            ));
        }
        let least = facts.before.get(&id).map_or(0, |before| before.confirmed);
        let (rows, most) = (index.live(id), confirmed + in_flight + dead);
        if rows < least || rows > most {
            breaches.push(format!("sale {id} has {rows} rows, not {least} to {most}"));
        }
    }
    let absent = facts
        .stocks
        .iter()
        .filter(|sale| !facts.after.contains_key(&sale.voucher));
    let (released, missing): (Vec<&Stock>, Vec<&Stock>) = absent.partition(|sale| sale.ended);
    breaches.extend(
        missing
            .iter()
            .map(|sale| format!("sale {} was not told by Redis", sale.voucher)),
    );
    let mut figures = format!(
        "{} = {} left + {} in flight + {} dead + {} confirmed",
        sum.0, sum.1, sum.2, sum.3, sum.4
    );
    if !released.is_empty() {
        let _ = write!(figures, "; {} sales released by Redis", released.len());
    }
    Check::of("Redis conserves every unit", figures, &breaches)
}

#[cfg(test)]
mod tests;
