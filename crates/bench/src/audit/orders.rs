//! Ids and rows: what was told, to whom, and what became of it.

use std::collections::{HashMap, HashSet};

use seckill::{OrderId, UserId, VoucherId};

use super::{Check, Facts, Index};

/// Acknowledged ⊆ final, dead letters counted apart: not lost, but not settled.
pub(super) fn nothing_lost(facts: &Facts, index: &Index<'_>) -> Check {
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
pub(super) fn one_owner(facts: &Facts, index: &Index<'_>) -> Check {
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

pub(super) fn admitted_once(facts: &Facts) -> Check {
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
pub(super) fn one_id_per_user(facts: &Facts, index: &Index<'_>) -> Check {
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

pub(super) fn one_live_order(facts: &Facts) -> Check {
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

/// Final ⊆ attempted.
pub(super) fn only_attempted(facts: &Facts) -> Check {
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
