//! The mark of an admitted order, as Rust reads it; `lua/mark.lua` writes it.

use crate::Error;
use crate::ids::{EntryId, OrderId, UserId, VoucherId};

/// What carries an order from its admission to its acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Whether its entry is a dead letter.
    pub(crate) dead: bool,
    /// The load that the order belongs to; a row is written only under this epoch.
    pub(crate) epoch: i64,
    pub(crate) user_id: UserId,
    pub(crate) voucher_id: VoucherId,
    /// Milliseconds, by Redis' clock.
    pub(crate) admitted_ms: i64,
    /// The one entry that carries the order.
    pub(crate) place: EntryId,
    pub(crate) traceparent: String,
}

impl Mark {
    /// Reads `1|state|epoch|user_id|voucher_id|admitted_ms|place|traceparent`.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        Self::fields(text)
            .ok_or_else(|| Error::impossible(format!("a mark that is none: {text:?}")))
    }

    fn fields(text: &str) -> Option<Self> {
        let mut parts = text.splitn(8, '|');
        let mut part = || parts.next();
        if part()? != "1" {
            return None;
        }
        Some(Self {
            dead: match part()? {
                "q" => false,
                "d" => true,
                _ => return None,
            },
            epoch: part()?.parse().ok()?,
            user_id: part()?.parse().ok()?,
            voucher_id: part()?.parse().ok()?,
            admitted_ms: part()?.parse().ok()?,
            place: part()?.parse().ok()?,
            traceparent: part()?.to_owned(),
        })
    }

    /// Whether this is the mark of that user's order of that voucher.
    pub(crate) fn is_of(&self, user: UserId, voucher: VoucherId) -> bool {
        self.user_id == user && self.voucher_id == voucher
    }
}

/// A field of the in-flight hash that is a sale's sentinel rather than an order.
pub(crate) fn order_field(field: &str) -> Option<OrderId> {
    field.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_reads_as_the_script_writes_it() {
        let mark =
            Mark::parse("1|q|3|9|7|1700000000000|1700000000000-1|00-ab-cd-01").expect("a mark");
        assert!(!mark.dead && mark.epoch == 3 && mark.traceparent == "00-ab-cd-01");
        assert_eq!(mark.place.to_string(), "1700000000000-1");
        for wrong in [
            "",
            "2|q|3|9|7|1|1-1|",
            "1|x|3|9|7|1|1-1|",
            "1|q|3|9|7|1|1|",
            "1|q|3|9|7|1|1-1",
        ] {
            assert!(Mark::parse(wrong).is_err(), "{wrong}");
        }
    }
}
