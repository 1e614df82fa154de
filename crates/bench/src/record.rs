//! A ledger read back, as far as it is judged. Its size in memory is that of the buyers and
//! orders, not of the attempts.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use seckill::{OrderId, UserId, VoucherId};

use crate::ledger::{Event, LedgerError, Line};

/// What a ledger says, as far as it is judged.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// The sales.
    pub vouchers: BTreeSet<VoucherId>,
    /// How many attempts were sent.
    pub attempts: u64,
    /// Attempts that no answer came back for.
    pub unanswered: u64,
    /// Who tried to buy what.
    pub attempted: HashSet<(VoucherId, UserId)>,
    /// Of these, who was told *admitted*, *already ordered* or *sold out*.
    pub decided: HashSet<(VoucherId, UserId)>,
    /// Every order id that an answer carried, with whom it was told.
    pub acknowledged: HashSet<(VoucherId, UserId, OrderId)>,
    /// How often each id was told as *admitted*.
    pub admitted: HashMap<OrderId, u32>,
}

impl Record {
    /// Reads a ledger. A last line that was cut off in the middle is left out.
    ///
    /// # Errors
    /// When the file can't be read or is no ledger.
    pub fn read(path: &Path) -> Result<Self, LedgerError> {
        let wrong = |source| LedgerError::Io {
            path: path.to_owned(),
            source,
        };
        let mut file = BufReader::with_capacity(1 << 20, File::open(path).map_err(wrong)?);
        let (mut record, mut text, mut number) = (Self::default(), Vec::new(), 0);
        while file.read_until(b'\n', &mut text).map_err(wrong)? > 0 {
            number += 1;
            if text.last() == Some(&b'\n') {
                let line = serde_json::from_slice(&text).map_err(|source| LedgerError::Line {
                    path: path.to_owned(),
                    line: number,
                    source,
                })?;
                record.add(&line);
            }
            text.clear();
        }
        Ok(record)
    }

    fn add(&mut self, line: &Line) {
        let who = (line.voucher_id, line.user);
        match line.event {
            Event::Sent => {
                self.vouchers.insert(line.voucher_id);
                self.attempted.insert(who);
                self.attempts += 1;
                self.unanswered += 1;
            }
            Event::Lost => {}
            Event::Answered => {
                self.unanswered = self.unanswered.saturating_sub(1);
                let outcome = line.outcome.as_deref().unwrap_or_default();
                if matches!(outcome, "admitted" | "already_ordered" | "sold_out") {
                    self.decided.insert(who);
                }
                if let Some(order) = line.order_id {
                    self.acknowledged
                        .insert((line.voucher_id, line.user, order));
                    if outcome == "admitted" {
                        *self.admitted.entry(order).or_default() += 1;
                    }
                }
            }
        }
    }
}
