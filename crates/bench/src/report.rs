//! What a person reads: the table on standard output, progress on standard error, and the same
//! figures as JSON for documents.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::task::JoinHandle;

use crate::audit::Check;
use crate::load::Tally;
use crate::sql::Span;

/// Everything that a run found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// Which scenario.
    pub scenario: &'static str,
    /// In one line.
    pub title: String,
    /// Its sales, one after another.
    pub rounds: Vec<Round>,
    /// The audit at the end.
    pub checks: Vec<Check>,
    /// Whether every check passed.
    pub passed: bool,
}

/// One sale's figures.
#[derive(Debug, Clone, Serialize)]
pub struct Round {
    /// Decided requests, by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Requests answered with an error, by status and code.
    pub failures: BTreeMap<String, u64>,
    /// Tries that were sent again, by why.
    pub retried: BTreeMap<String, u64>,
    /// Requests that no try brought an answer to.
    pub given_up: u64,
    /// From the first request to the last answer.
    pub seconds: f64,
    /// Decided requests in that time.
    pub requests_per_second: f64,
    /// Half of the answers were quicker.
    pub p50_ms: f64,
    /// 99 of 100 answers were quicker.
    pub p99_ms: f64,
    /// The slowest answer.
    pub max_ms: f64,
    /// Rows.
    pub persisted: i64,
    /// From the first admission to the last row.
    pub persisted_in_ms: i64,
    /// Rows in that time.
    pub persisted_per_second: f64,
    /// From the last answer until nothing was in flight; nothing when that was given up.
    pub drained_ms: Option<f64>,
}

impl Round {
    /// The figures of a load. `tally.micros` is sorted.
    pub fn of(tally: Tally, span: Span, drained: Option<Duration>) -> Self {
        let ms = |micros: u32| f64::from(micros) / 1_000.0;
        let seconds = tally.took.as_secs_f64();
        Self {
            seconds,
            requests_per_second: rate(tally.decided(), seconds),
            p50_ms: ms(percentile(&tally.micros, 50)),
            p99_ms: ms(percentile(&tally.micros, 99)),
            max_ms: ms(percentile(&tally.micros, 100)),
            persisted: span.rows,
            persisted_in_ms: span.ms,
            // The clocks tell milliseconds: less than one counts as one.
            persisted_per_second: rate(
                span.rows.unsigned_abs(),
                Duration::from_millis(span.ms.max(1).unsigned_abs()).as_secs_f64(),
            ),
            drained_ms: drained.map(|time| time.as_secs_f64() * 1_000.0),
            outcomes: tally.outcomes,
            failures: tally.failures,
            retried: tally.retried,
            given_up: tally.given_up,
        }
    }

    /// The figures as lines of a table.
    pub fn lines(&self) -> Vec<String> {
        let mut retried = self.retried.clone();
        if self.given_up > 0 {
            retried.insert("given up".into(), self.given_up);
        }
        let drained = self.drained_ms.map_or("not in time".into(), |ms| {
            format!("{ms:.0} ms after the last answer")
        });
        vec![
            row("answers", &listed(&self.outcomes)),
            row("errors", &listed(&self.failures)),
            row("sent again", &listed(&retried)),
            row(
                "requests/s",
                &format!("{:.0} over {:.2} s", self.requests_per_second, self.seconds),
            ),
            row(
                "latency",
                &format!(
                    "p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms",
                    self.p50_ms, self.p99_ms, self.max_ms
                ),
            ),
            row(
                "orders/s",
                &format!(
                    "{:.0} persisted ({} in {} ms from the first admission to the last row)",
                    self.persisted_per_second, self.persisted, self.persisted_in_ms
                ),
            ),
            row("drained", &drained),
        ]
    }
}

/// The medians of several rounds.
pub fn medians(rounds: &[Round]) -> String {
    let median = |of: fn(&Round) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    format!(
        "{:.0} requests/s, p50 {:.1} ms, p99 {:.1} ms, {:.0} orders/s persisted",
        median(|round| round.requests_per_second),
        median(|round| round.p50_ms),
        median(|round| round.p99_ms),
        median(|round| round.persisted_per_second)
    )
}

/// A line of the table.
pub fn row(name: &str, value: &str) -> String {
    format!("  {name:<12}{value}")
}

/// The lines of an audit.
pub fn audit_lines(checks: &[Check]) -> Vec<String> {
    let lines = checks.iter().map(|check| {
        let sign = if check.passed { '✓' } else { '✗' };
        format!("  {sign} {}: {}", check.name, check.figures)
    });
    lines.collect()
}

fn listed(counts: &BTreeMap<String, u64>) -> String {
    if counts.is_empty() {
        return "none".into();
    }
    let parts: Vec<String> = counts
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    parts.join(", ")
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn rate(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}

/// The value that `percent` of 100 do not exceed, of sorted values; 0 when there are none.
fn percentile(sorted: &[u32], percent: usize) -> u32 {
    let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(rank).copied().unwrap_or(0)
}

/// Prints a line of the result.
#[expect(
    clippy::print_stdout,
    reason = "the result goes to standard output, and only from here"
)]
pub fn say(line: &str) {
    println!("{line}");
}

/// Tells what goes on, or what went wrong, on standard error.
pub fn tell(line: &str) {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes a report as JSON.
///
/// # Errors
/// When the file can't be written.
pub fn write_json(path: &Path, report: &Report) -> io::Result<()> {
    let text = serde_json::to_string_pretty(report)?;
    std::fs::write(path, text + "\n")
}

/// How far a load is, shown while it lasts: a bar in a terminal, else a line now and then.
#[derive(Debug, Clone)]
pub struct Progress {
    done: Arc<AtomicU64>,
    total: u64,
}

impl Progress {
    /// Nothing of so many requests is done.
    pub fn of(total: usize) -> Self {
        Self {
            done: Arc::default(),
            total: total as u64,
        }
    }

    /// One more is done.
    pub fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Shows it until the returned guard is dropped.
    pub fn shown(&self) -> Shown {
        let (progress, terminal) = (self.clone(), io::stderr().is_terminal());
        let task = tokio::spawn(async move {
            let begun = Instant::now();
            let pause = if terminal {
                Duration::from_millis(200)
            } else {
                Duration::from_secs(5)
            };
            loop {
                tokio::time::sleep(pause).await;
                let line = progress.line(begun.elapsed());
                let _ = if terminal {
                    write!(io::stderr(), "\r\x1b[K{line}")
                } else {
                    writeln!(io::stderr(), "{line}")
                };
            }
        });
        Shown { task, terminal }
    }

    fn line(&self, elapsed: Duration) -> String {
        const WIDTH: u64 = 30;
        let done = self.done.load(Ordering::Relaxed).min(self.total);
        let filled = usize::try_from(done * WIDTH / self.total.max(1)).unwrap_or(0);
        let bar = format!("{}{}", "█".repeat(filled), "░".repeat(30 - filled));
        format!(
            "{bar} {done} of {} requests, {:.0}/s",
            self.total,
            rate(done, elapsed.as_secs_f64())
        )
    }
}

/// Progress on the screen.
pub struct Shown {
    task: JoinHandle<()>,
    terminal: bool,
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.task.abort();
        if self.terminal {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let sorted: Vec<u32> = (1..=200).collect();
        assert_eq!(
            [50, 99, 100].map(|p| percentile(&sorted, p)),
            [100, 198, 200]
        );
        assert_eq!(percentile(&[7], 50), 7);
        assert_eq!(percentile(&[], 99), 0);
    }

    #[test]
    fn a_bar_is_never_longer_than_itself() {
        let progress = Progress::of(2);
        for _ in 0..3 {
            progress.step();
        }
        assert_eq!(
            progress.line(Duration::from_secs(1)).matches('█').count(),
            30
        );
        assert!(Progress::of(0).line(Duration::ZERO).contains("0 of 0"));
    }
}
