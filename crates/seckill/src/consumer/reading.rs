//! How a consumer reads: blocking reads with an end, and a group that is made again when it is gone.

use std::time::Duration;

use fred::interfaces::{ClientLike, StreamsInterface};
use fred::types::Value;
use fred::types::config::Options;

use super::{Consumer, READ_GRACE};
use crate::Error;
use crate::entry::Entry;
use crate::names::GROUP;
use crate::redis::list;

impl Consumer {
    pub(super) async fn read(
        &self,
        from: &str,
        block: Option<Duration>,
    ) -> Result<Vec<Entry>, Error> {
        let limit = block.unwrap_or_default() + READ_GRACE;
        let options = Options {
            max_attempts: Some(1),
            timeout: Some(limit),
            fail_fast: true,
            ..Options::default()
        };
        let block_ms =
            block.map(|block| u64::try_from(block.as_millis()).unwrap_or(u64::MAX).max(1));
        let count = Some(u64::try_from(self.config.batch).unwrap_or(u64::MAX));
        let reply: Result<Value, _> = self
            .reader
            .with_options(&options)
            .xreadgroup(
                GROUP,
                &self.name,
                count,
                block_ms,
                false,
                self.shop.names().orders(self.lane),
                from,
            )
            .await;
        let reply = match reply {
            Err(error) if matches!(error.kind(), fred::error::ErrorKind::Timeout) => {
                // No answer although the block time has passed: the connection is half open.
                tracing::warn!(consumer = %self.name, "a blocking read got no answer; connecting anew");
                // Not waited for: Redis may be out of reach for long, and a step has to end.
                let reader = self.reader.clone();
                tokio::spawn(async move {
                    if let Err(error) = reader.force_reconnection().await {
                        tracing::debug!(%error, "reconnecting the reader");
                    }
                });
                return Err(error.into());
            }
            reply => reply?,
        };
        // [[key, entries]], or a map of one in RESP3; nothing when the block time passed.
        let Some(stream) = list(reply)?.into_iter().next() else {
            return Ok(Vec::new());
        };
        let entries = list(stream)?.into_iter().nth(1).unwrap_or(Value::Null);
        Entry::decode_all(entries)
    }

    pub(super) async fn create_group(&self) -> Result<(), Error> {
        // At 0: what is in the stream and was acknowledged is deleted, so nothing comes twice.
        let made: Result<Value, _> = self
            .redis
            .client()
            .xgroup_create(self.shop.names().orders(self.lane), GROUP, "0", true)
            .await;
        match made {
            Ok(_) => tracing::info!(lane = %self.lane, "group created"),
            Err(error) if error.details().starts_with("BUSYGROUP") => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// The stream or its group is gone: said to a new read, and to one that was blocked in it.
pub(super) fn is_no_group(error: &Error) -> bool {
    let (Error::Internal(cause) | Error::Unavailable(cause)) = error else {
        return false;
    };
    let words = cause.to_string();
    words.contains("NOGROUP") || words.contains("UNBLOCKED")
}
