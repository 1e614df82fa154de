//! Ids of vouchers, users, orders, lanes and stream entries.
//!
//! Each comes out of one constructor and is trusted after. Outside Rust an id is a string:
//! a browser's number has 53 bits, an id here has 63.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is no id: empty, not decimal digits only, zero, or above the type's range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a valid id")]
pub struct ParseIdError;

/// Digits only: a sign, a space or a leading zero is refused, so that one id has one text.
fn digits(text: &str) -> Result<u64, ParseIdError> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !plain || (text.len() > 1 && text.starts_with('0')) {
        return Err(ParseIdError);
    }
    text.parse().map_err(|_| ParseIdError)
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(i64);

        impl $name {
            /// The id with this number, if it is one (1 to 2^63 - 1).
            pub fn new(number: i64) -> Option<Self> {
                (number > 0).then_some(Self(number))
            }

            /// The number, as PostgreSQL keeps it.
            pub fn get(self) -> i64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                let number = i64::try_from(digits(text)?).map_err(|_| ParseIdError)?;
                Self::new(number).ok_or(ParseIdError)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id! {
    /// What is sold.
    VoucherId
}
id! {
    /// Who buys.
    UserId
}
id! {
    /// An admitted purchase; see [`crate::sequence`] for how it is made.
    OrderId
}

/// A lane: the part of the keys, and the stream, that share one hash tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lane(pub u16);

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Lane {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        u16::try_from(digits(text)?)
            .map(Self)
            .map_err(|_| ParseIdError)
    }
}

/// The id of an entry in a Redis stream: `<milliseconds>-<sequence>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId {
    /// Milliseconds since the Unix epoch, by Redis' clock.
    pub ms: u64,
    /// Which entry of that millisecond.
    pub seq: u64,
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

impl FromStr for EntryId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let (ms, seq) = text.split_once('-').ok_or(ParseIdError)?;
        Ok(Self {
            ms: digits(ms)?,
            seq: digits(seq)?,
        })
    }
}

/// An entry as the console names it: `<lane>:<milliseconds>-<sequence>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneEntry {
    /// The lane whose stream holds the entry.
    pub lane: Lane,
    /// The entry.
    pub entry: EntryId,
}

impl fmt::Display for LaneEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.lane, self.entry)
    }
}

impl FromStr for LaneEntry {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let (lane, entry) = text.split_once(':').ok_or(ParseIdError)?;
        Ok(Self {
            lane: lane.parse()?,
            entry: entry.parse()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_digits_only_and_positive() {
        for wrong in [
            "",
            "0",
            "-1",
            "+1",
            " 1",
            "1 ",
            "01",
            "1.0",
            "abc",
            "９",
            "9223372036854775808",
        ] {
            assert_eq!(wrong.parse::<OrderId>(), Err(ParseIdError), "{wrong:?}");
        }
        let largest = "9223372036854775807";
        assert_eq!(
            largest.parse::<OrderId>().map(|id| id.to_string()),
            Ok(largest.to_owned())
        );
    }

    #[test]
    fn an_entry_of_a_lane_reads_back_as_it_was_written() {
        let text = "3:1700000000000-7";
        assert_eq!(
            text.parse::<LaneEntry>().map(|e| e.to_string()),
            Ok(text.to_owned())
        );
        for wrong in [
            "",
            "1-2",
            "0:1",
            "0:1-",
            "0:-1",
            "70000:1-1",
            "0:1-2-3",
            "a:1-1",
        ] {
            assert!(wrong.parse::<LaneEntry>().is_err(), "{wrong:?}");
        }
    }
}
