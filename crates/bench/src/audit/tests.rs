//! A sound set of facts passes; each way to break it fails the check that stands for it.

use super::*;

fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(number: u32) -> T {
    number.to_string().parse().unwrap()
}

fn row(order: u32, user: u32, live: bool) -> Row {
    Row {
        order: id(order),
        user: id(user),
        voucher: id(1),
        live,
    }
}

/// Stock 2: users 1 and 2 hold orders 11 and 12, user 3 was told sold out.
fn sound() -> Facts {
    let mut facts = Facts {
        rows: vec![row(11, 1, true), row(12, 2, true)],
        stocks: vec![Stock {
            voucher: id(1),
            total: 2,
            left: 0,
            ended: false,
        }],
        ..Facts::default()
    };
    let record = &mut facts.record;
    record.vouchers.insert(id(1));
    record.attempts = 3;
    for user in 1..=3 {
        record.attempted.insert((id(1), id(user)));
        record.decided.insert((id(1), id(user)));
    }
    for user in 1..=2 {
        record.acknowledged.insert((id(1), id(user), id(10 + user)));
        record.admitted.insert(id(10 + user), 1);
    }
    let sale = Counters {
        loaded: true,
        total: 2,
        left: 0,
        in_flight: 0,
        dead: 0,
        confirmed: 2,
    };
    facts.before.insert(id(1), sale);
    facts.after.insert(id(1), sale);
    facts
}

/// The names of the checks that fail after `change`.
fn failing(change: impl FnOnce(&mut Facts)) -> Vec<&'static str> {
    let mut facts = sound();
    change(&mut facts);
    checks(&facts)
        .into_iter()
        .filter(|check| !check.passed)
        .map(|check| check.name)
        .collect()
}

fn after(facts: &mut Facts) -> &mut Counters {
    facts.after.get_mut(&id(1)).unwrap()
}

#[test]
fn sound_facts_pass() {
    assert_eq!(failing(|_| {}), Vec::<&str>::new());
}

#[test]
fn an_order_under_way_is_not_drained() {
    let names = failing(|facts| after(facts).in_flight = 1);
    assert!(
        names.contains(&"nothing is in flight any more"),
        "{names:?}"
    );
}

#[test]
fn an_acknowledged_id_without_a_row_is_lost() {
    let names = failing(|facts| _ = facts.rows.pop());
    assert!(names.contains(&"nothing admitted is lost"), "{names:?}");
}

#[test]
fn a_dead_letter_is_unsettled_but_neither_lost_nor_unsold() {
    let names = failing(|facts| {
        facts.rows.pop();
        facts.dead.insert(id(12));
        facts.stocks[0].left = 1;
        for counters in [&mut facts.before, &mut facts.after] {
            let sale = counters.get_mut(&id(1)).unwrap();
            (sale.dead, sale.confirmed) = (1, 1);
        }
    });
    assert_eq!(names, Vec::<&str>::new());
}

#[test]
fn an_id_told_to_two_users_has_two_owners() {
    let names = failing(|facts| _ = facts.record.acknowledged.insert((id(1), id(3), id(11))));
    assert_eq!(names, ["no id has two owners"]);
}

#[test]
fn an_id_whose_row_is_another_users_has_two_owners() {
    let names = failing(|facts| facts.rows[0].user = id(3));
    assert!(names.contains(&"no id has two owners"), "{names:?}");
}

#[test]
fn an_id_admitted_twice_is_found() {
    let names = failing(|facts| *facts.record.admitted.get_mut(&id(11)).unwrap() = 2);
    assert_eq!(names, ["each order is admitted once"]);
}

#[test]
fn a_user_who_was_told_two_ids_is_found() {
    let names = failing(|facts| _ = facts.record.acknowledged.insert((id(1), id(1), id(13))));
    assert!(
        names.contains(&"one id per user in all answers"),
        "{names:?}"
    );
}

#[test]
fn a_user_may_be_told_another_id_after_a_discard() {
    let names = failing(|facts| {
        facts.record.acknowledged.insert((id(1), id(1), id(9)));
        facts.rows.push(row(9, 1, false));
    });
    assert_eq!(names, Vec::<&str>::new());
}

#[test]
fn two_live_orders_of_a_user_are_found() {
    let names = failing(|facts| facts.rows[1].user = id(1));
    assert!(
        names.contains(&"one live order per user and voucher"),
        "{names:?}"
    );
}

#[test]
fn more_rows_than_stock_is_an_oversell() {
    let names = failing(|facts| {
        facts.rows.push(row(13, 3, true));
        facts.stocks[0].left = -1;
    });
    assert!(names.contains(&"nothing is oversold"), "{names:?}");
}

#[test]
fn a_row_of_somebody_who_never_tried_is_found() {
    let names = failing(|facts| _ = facts.record.attempted.remove(&(id(1), id(2))));
    assert_eq!(names, ["every row comes from an attempt"]);
}

#[test]
fn stock_left_under_full_demand_is_an_undersell() {
    let short = |facts: &mut Facts| {
        facts.rows.pop();
        facts.record.acknowledged.remove(&(id(1), id(2), id(12)));
        facts.stocks[0].left = 1;
        for counters in [&mut facts.before, &mut facts.after] {
            let sale = counters.get_mut(&id(1)).unwrap();
            (sale.left, sale.confirmed) = (1, 1);
        }
    };
    assert_eq!(failing(short), ["nothing is undersold"]);
    let too_few = failing(|facts| {
        short(facts);
        facts.record.decided = std::iter::once((id(1), id(1))).collect();
    });
    assert_eq!(too_few, Vec::<&str>::new());
}

#[test]
fn stock_that_does_not_match_the_rows_is_found() {
    assert_eq!(
        failing(|facts| facts.stocks[0].left = 1),
        ["PostgreSQL's stock is total minus live orders"]
    );
}

#[test]
fn a_sale_that_postgresql_does_not_know_is_found() {
    let names = failing(|facts| facts.stocks.clear());
    assert_eq!(names, ["PostgreSQL's stock is total minus live orders"]);
}

#[test]
fn a_unit_that_redis_has_twice_or_not_at_all_breaks_conservation() {
    assert_eq!(
        failing(|facts| after(facts).left = 1),
        ["Redis conserves every unit"]
    );
    let (left, confirmed) = (1, 1);
    let names = failing(|facts| (after(facts).left, after(facts).confirmed) = (left, confirmed));
    assert_eq!(
        names,
        ["Redis conserves every unit"],
        "rows above what was admitted"
    );
    let names = failing(|facts| facts.before.get_mut(&id(1)).unwrap().confirmed = 3);
    assert_eq!(
        names,
        ["Redis conserves every unit"],
        "rows below what was acknowledged"
    );
    assert_eq!(
        failing(|facts| after(facts).loaded = false),
        ["Redis conserves every unit"]
    );
}

#[test]
fn a_sale_that_redis_released_is_judged_by_its_rows() {
    let released = |facts: &mut Facts| {
        facts.before.clear();
        facts.after.clear();
    };
    assert_eq!(
        failing(released),
        ["Redis conserves every unit"],
        "not before its end"
    );
    let names = failing(|facts| {
        released(facts);
        facts.stocks[0].ended = true;
    });
    assert_eq!(names, Vec::<&str>::new());
}

#[test]
fn a_line_names_a_few_breaches_and_counts_all() {
    let breaches: Vec<String> = (1..=9).map(|n| format!("order {n}")).collect();
    let check = Check::of("x", "9 ids".into(), &breaches);
    assert_eq!(check.figures, "9 ids; 9 wrong: order 1; order 2; order 3");
}
