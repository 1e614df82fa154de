//! A lease lock on Redis, for jobs that one process at a time should do.
//!
//! No order depends on it: a holder that was stopped beyond its lease may work beside the next
//! one, and every script and transaction bears that. It only saves work from being done twice.

use std::time::Duration;

use crate::redis::number;
use crate::scripts::{LOCK, UNLOCK};
use crate::{Error, Shop};

/// A name of a holder, unlike every other's.
pub(crate) fn owner() -> String {
    format!("{:032x}", rand::random::<u128>())
}

impl Shop {
    /// Takes the lock or renews the caller's lease; false while somebody else holds it.
    pub(crate) async fn lock(
        &self,
        name: &str,
        owner: &str,
        lease: Duration,
    ) -> Result<bool, Error> {
        let lease_ms = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
        let keys = vec![self.names().lock(name)];
        Ok(number(
            &self
                .redis()
                .eval(&LOCK, keys, vec![owner.into(), lease_ms.into()])
                .await?,
        )? == 0)
    }

    /// Gives the lock back, if the caller still holds it.
    pub(crate) async fn unlock(&self, name: &str, owner: &str) -> Result<bool, Error> {
        let keys = vec![self.names().lock(name)];
        Ok(number(&self.redis().eval(&UNLOCK, keys, vec![owner.into()]).await?)? == 1)
    }
}
