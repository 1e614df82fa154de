//! Entries of the orders stream and of the dead letters, as they are read.
//!
//! An entry is hostile until it is parsed: fields may be missing, doubled, or hold text where a
//! number is due.

use std::collections::HashMap;

use fred::types::Value;

use crate::Error;
use crate::ids::EntryId;
use crate::redis::{list, text};
use crate::store::order::Admitted;

/// An entry and its fields; none when the entry itself is gone although its id is pending.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: EntryId,
    pub(crate) fields: Option<HashMap<String, String>>,
}

impl Entry {
    /// Reads `[id, [field, value, …]]`.
    pub(crate) fn decode(value: Value) -> Result<Self, Error> {
        let parts = list(value)?;
        let id = parts.first().map(text).unwrap_or_default();
        let id = id
            .parse()
            .map_err(|_| Error::impossible(format!("a stream entry named {id:?}")))?;
        let fields = match parts.into_iter().nth(1) {
            None | Some(Value::Null) => None,
            Some(fields) => Some(pairs(&list(fields)?)),
        };
        Ok(Self { id, fields })
    }

    /// Reads a list of entries.
    pub(crate) fn decode_all(value: Value) -> Result<Vec<Self>, Error> {
        list(value)?.into_iter().map(Self::decode).collect()
    }

    /// A field's text; empty when it is missing.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields
            .as_ref()
            .and_then(|fields| fields.get(name))
            .map_or("", String::as_str)
    }

    /// The order that the entry carries, or the first thing that is wrong with it.
    pub(crate) fn order(&self) -> Result<Admitted, String> {
        if self.field("v") != "1" {
            return Err("broken entry: it is of no version that is known here".into());
        }
        let broken = |name: &str| format!("broken entry: {name} is missing or malformed");
        Ok(Admitted {
            order_id: self
                .field("order_id")
                .parse()
                .map_err(|_| broken("order_id"))?,
            user_id: self
                .field("user_id")
                .parse()
                .map_err(|_| broken("user_id"))?,
            voucher_id: self
                .field("voucher_id")
                .parse()
                .map_err(|_| broken("voucher_id"))?,
            admitted_ms: self
                .field("admitted_ms")
                .parse()
                .map_err(|_| broken("admitted_ms"))?,
            // It is only carried along: what PostgreSQL can't hold is left out.
            traceparent: self.field("traceparent").replace('\0', ""),
        })
    }

    /// All fields as JSON, for an operator's eyes.
    pub(crate) fn payload(&self) -> String {
        serde_json::to_string(&self.fields).unwrap_or_default()
    }
}

fn pairs(parts: &[Value]) -> HashMap<String, String> {
    let lossy = |value: &Value| match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => text(other),
    };
    parts
        .chunks_exact(2)
        .map(|pair| (lossy(&pair[0]), lossy(&pair[1])))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(fields: &[(&str, &str)]) -> Entry {
        let fields = fields
            .iter()
            .flat_map(|(k, v)| [Value::from(*k), Value::from(*v)])
            .collect();
        Entry::decode(Value::Array(vec!["1-1".into(), Value::Array(fields)])).expect("an entry")
    }

    #[test]
    fn a_broken_entry_says_what_is_wrong() {
        let whole = [
            ("v", "1"),
            ("order_id", "5"),
            ("user_id", "6"),
            ("voucher_id", "7"),
            ("admitted_ms", "8"),
        ];
        assert!(entry(&whole).order().is_ok());
        for (i, (name, _)) in whole.iter().enumerate().skip(1) {
            let mut fields = whole;
            fields[i].1 = "text";
            assert_eq!(
                entry(&fields).order(),
                Err(format!("broken entry: {name} is missing or malformed"))
            );
        }
        assert!(entry(&[]).order().is_err());
        let gone =
            Entry::decode(Value::Array(vec!["1-1".into(), Value::Null])).expect("a pending id");
        assert!(gone.fields.is_none());
    }
}
