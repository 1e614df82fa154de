//! Units: sold, left, and counted twice over by PostgreSQL and Redis.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use seckill::VoucherId;

use super::{Check, Counters, Facts, Index};
use crate::sql::Stock;

pub(super) fn no_oversell(facts: &Facts, index: &Index<'_>) -> Check {
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

/// Demand that reached the stock left nothing unsold. Units in dead letters are not sold yet,
/// and discarded ones were on sale again, maybe after the last buyer had gone.
pub(super) fn no_undersell(facts: &Facts, index: &Index<'_>) -> Check {
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

pub(super) fn stock_agrees(facts: &Facts, index: &Index<'_>) -> Check {
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
pub(super) fn conservation(facts: &Facts, index: &Index<'_>) -> Check {
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
