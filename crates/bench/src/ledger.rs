//! The ledger: every attempt and every answer that a client saw, one JSON object a line.
//!
//! An attempt is in the file before its request leaves, so that whatever ends this program, no
//! order can come of an attempt that the ledger does not know. Answers are written with the same
//! connection's next attempt, or when it rests: one write for both. The file is only ever
//! appended to, and each write holds whole lines.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use seckill::clock::{Clock, SystemClock};
use seckill::{OrderId, UserId, VoucherId};
use serde::{Deserialize, Serialize};

/// Why a ledger can't be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The file can't be read or written.
    #[error("the ledger {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A new run would be mixed with another.
    #[error("the ledger {0} is that of another run: name a new file")]
    Used(PathBuf),
    /// A line that this program did not write.
    #[error("the ledger {path}, line {line}: {source}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: u64,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Event {
    Sent,
    Answered,
    Lost,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) at_ms: i64,
    pub(crate) attempt: u64,
    pub(crate) voucher_id: VoucherId,
    pub(crate) user: UserId,
    pub(crate) event: Event,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) order_id: Option<OrderId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// A ledger being written. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Ledger(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: Mutex<File>,
    attempts: AtomicU64,
}

impl Ledger {
    /// Begins a ledger in a new or empty file.
    ///
    /// # Errors
    /// When the file can't be made or holds something.
    pub fn create(path: &Path) -> Result<Self, LedgerError> {
        let wrong = |source| LedgerError::Io {
            path: path.to_owned(),
            source,
        };
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(wrong)?;
        if file.metadata().map_err(wrong)?.len() > 0 {
            return Err(LedgerError::Used(path.to_owned()));
        }
        Ok(Self(Arc::new(Inner {
            path: path.to_owned(),
            file: Mutex::new(file),
            attempts: AtomicU64::new(0),
        })))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// A pen for one connection.
    pub fn pen(&self, voucher: VoucherId) -> Pen {
        Pen {
            ledger: self.clone(),
            voucher,
            lines: Vec::new(),
        }
    }
}

/// What one connection writes with. Dropping it loses the answers not yet flushed.
pub struct Pen {
    ledger: Ledger,
    voucher: VoucherId,
    lines: Vec<u8>,
}

impl Pen {
    /// Notes an attempt that is about to be sent; it is in the file when this returns.
    ///
    /// # Errors
    /// When it could not be written: then it must not be sent.
    pub fn sent(&mut self, user: UserId) -> Result<u64, LedgerError> {
        let attempt = self.ledger.0.attempts.fetch_add(1, Ordering::Relaxed) + 1;
        self.push(&self.line(attempt, user, Event::Sent));
        self.flush()?;
        Ok(attempt)
    }

    /// Notes an answer.
    pub fn answered(
        &mut self,
        attempt: u64,
        user: UserId,
        status: u16,
        outcome: Option<&str>,
        order: Option<OrderId>,
    ) {
        let line = self.line(attempt, user, Event::Answered);
        self.push(&Line {
            status: Some(status),
            outcome: outcome.map(str::to_owned),
            order_id: order,
            ..line
        });
    }

    /// Notes that no answer came.
    pub fn lost(&mut self, attempt: u64, user: UserId, error: &str) {
        let line = self.line(attempt, user, Event::Lost);
        self.push(&Line {
            error: Some(error.to_owned()),
            ..line
        });
    }

    /// Brings everything noted into the file.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn flush(&mut self) -> Result<(), LedgerError> {
        let inner = &self.ledger.0;
        let mut file = inner.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.write_all(&self.lines);
        self.lines.clear();
        written.map_err(|source| LedgerError::Io {
            path: inner.path.clone(),
            source,
        })
    }

    fn line(&self, attempt: u64, user: UserId, event: Event) -> Line {
        let (at_ms, voucher_id) = (SystemClock.now_ms(), self.voucher);
        Line {
            at_ms,
            attempt,
            voucher_id,
            user,
            event,
            status: None,
            outcome: None,
            order_id: None,
            error: None,
        }
    }

    fn push(&mut self, line: &Line) {
        serde_json::to_writer(&mut self.lines, line).expect("a line of plain values is valid JSON");
        self.lines.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;
    use crate::record::Record;

    fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
        text.parse().unwrap()
    }

    #[test]
    fn what_was_written_reads_back_and_a_torn_end_is_left_out() {
        let path = std::env::temp_dir().join(format!("ledger-{:016x}", rand::random::<u64>()));
        let ledger = Ledger::create(&path).unwrap();
        let mut pen = ledger.pen(id("7"));
        let first = pen.sent(id("1")).unwrap();
        pen.answered(first, id("1"), 200, Some("admitted"), Some(id("99")));
        let second = pen.sent(id("2")).unwrap();
        pen.lost(second, id("2"), "cut \"off\"\n");
        pen.flush().unwrap();
        OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"{\"at_ms\":1,")
            .unwrap();

        let record = Record::read(&path).unwrap();
        assert_eq!((record.attempts, record.unanswered), (2, 1));
        assert_eq!(
            record.attempted,
            HashSet::from([(id("7"), id("1")), (id("7"), id("2"))])
        );
        assert_eq!(
            record.acknowledged,
            HashSet::from([(id("7"), id("1"), id("99"))])
        );
        assert_eq!(record.admitted, HashMap::from([(id("99"), 1)]));
        assert!(matches!(Ledger::create(&path), Err(LedgerError::Used(_))));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn an_attempt_is_in_the_file_before_it_is_sent() {
        let path = std::env::temp_dir().join(format!("ledger-{:016x}", rand::random::<u64>()));
        let mut pen = Ledger::create(&path).unwrap().pen(id("7"));
        pen.sent(id("1")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.ends_with("\"voucher_id\":\"7\",\"user\":\"1\",\"event\":\"sent\"}\n"),
            "{text}"
        );
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_that_is_no_ledger_is_named_with_its_line() {
        let path = std::env::temp_dir().join(format!("ledger-{:016x}", rand::random::<u64>()));
        std::fs::write(&path, "hello\n").unwrap();
        assert!(matches!(
            Record::read(&path),
            Err(LedgerError::Line { line: 1, .. })
        ));
        std::fs::remove_file(path).unwrap();
    }
}
