//! The table, for a terminal and for Markdown.

use std::fmt::Write;

use super::{Document, Outcome};
use crate::road::roster::rows;

const HEAD: [&str; 12] = [
    "contender",
    "answers/s",
    "p50 ms",
    "p99 ms",
    "orders/s",
    "oversold",
    "doubled",
    "lost after kill -9",
    "success",
    "statements/order",
    "Redis commands/order",
    "audit",
];

fn cells(outcome: &Outcome) -> [String; 12] {
    let doubled = outcome.doubled + outcome.doubled_by_faults + outcome.doubled_after_kill;
    [
        outcome.title.to_owned(),
        format!("{:.0}", outcome.answers_per_second),
        format!("{:.1}", outcome.p50_ms),
        format!("{:.1}", outcome.p99_ms),
        format!("{:.0}", outcome.orders_per_second),
        outcome.oversold.to_string(),
        doubled.to_string(),
        format!(
            "{} of {}",
            outcome.lost_after_kill, outcome.told_before_kill
        ),
        format!("{:.1} %", outcome.success_rate * 100.0),
        format!("{:.1}", outcome.statements_per_order),
        format!("{:.1}", outcome.commands_per_order),
        verdict(outcome).to_owned(),
    ]
}

fn verdict(outcome: &Outcome) -> &'static str {
    match (outcome.surprises.is_empty(), outcome.audit_passed) {
        (true, true) => "passes",
        (true, false) => "fails as described",
        (false, _) => "NOT AS DESCRIBED",
    }
}

/// The table, a line each, with what is not as described below it.
pub fn lines(outcomes: &[Outcome]) -> Vec<String> {
    let all: Vec<[String; 12]> = std::iter::once(HEAD.map(str::to_owned))
        .chain(outcomes.iter().map(cells))
        .collect();
    let width = |i: usize| {
        all.iter()
            .map(|row| row[i].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let line = |row: &[String; 12]| {
        let cells = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(i, (cell, width))| match i {
                0 | 11 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut lines: Vec<String> = all.iter().map(line).collect();
    for outcome in outcomes {
        for surprise in &outcome.surprises {
            lines.push(format!("{}: {surprise}", outcome.name));
        }
    }
    lines
}

/// The page of the documents.
pub(super) fn markdown(document: &Document<'_>) -> String {
    let mut page = format!(
        "# The road to this design\n\n\
         Every earlier way to sell vouchers, working, under the same load and the same audit.\n\
         Written by `seckill-bench road`, which `script/bench road` runs, on {}, on {} cores, a {} build: {} users ask twice at once for {} vouchers, {} asks at a time.\n\
         Absolute figures belong to that machine; compare rows.\n\n\
         ![Answers and orders per second of each contender](road.svg)\n\n",
        document.date,
        document.cores,
        document.build,
        document.users,
        document.stock,
        document.concurrency
    );
    page.push_str(&format!(
        "| {} |\n|{}\n",
        HEAD.join(" | "),
        "---|".repeat(HEAD.len())
    ));
    for outcome in document.contenders {
        page.push_str(&format!("| {} |\n", cells(outcome).join(" | ")));
    }
    // Writing to a text does not fail.
    let _ = write!(
        page,
        "\n- *answers/s*, *p50*, *p99*: as the client sees them; *orders/s*: rows, from the first ask to the last row.\n\
         - *oversold*: rows above the stock. *doubled*: second rows of one user, under the load, under a lock's faults and after the crash.\n\
         - *lost after kill -9*: orders that a client was told of and that never got a row, of all that clients were told, in a part of its own with {} users: \
         a third of them ask, every process is killed with SIGKILL while one order is decided and not handed on, those who answer come back before those who persist, and whoever got no answer asks again.\n\
         - *success*: of the asks that met stock, how many got it.\n\
         - *statements*: to PostgreSQL, BEGIN not counted, COMMIT counted. *Redis commands*: as Redis counts them, those inside scripts and those of waiting consumers too.\n\
         - Locks are leased for {} ms, and their holders are made to fail late, to release slowly, and to work longer than the lease.\n\n",
        document.crash_users, document.lease_ms
    );
    for row in rows() {
        let Some(outcome) = document
            .contenders
            .iter()
            .find(|outcome| outcome.name == row.name)
        else {
            continue;
        };
        let _ = write!(page, "## {}\n\n", row.title);
        for sentence in row.words.split(". ") {
            let end = if sentence.ends_with('.') { "" } else { "." };
            let _ = writeln!(page, "{sentence}{end}");
        }
        let _ = write!(page, "Here: {}.\n\n", found(outcome));
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// What the audit found, in words.
fn found(outcome: &Outcome) -> String {
    let counted = [
        (outcome.oversold, "oversold"),
        (outcome.doubled, "doubled under the load"),
        (outcome.doubled_by_faults, "doubled by a lock's faults"),
        (outcome.doubled_after_kill, "doubled after kill -9"),
        (outcome.lost_after_kill, "lost after kill -9"),
    ];
    let mut parts: Vec<String> = counted
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if outcome.success_rate < 1.0 {
        parts.push(format!(
            "{:.1} % of the asks that met stock got it",
            outcome.success_rate * 100.0
        ));
    }
    if parts.is_empty() {
        "nothing oversold, doubled or lost".into()
    } else {
        parts.join(", ")
    }
}
