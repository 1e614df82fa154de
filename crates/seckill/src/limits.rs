//! Limits on log-in attempts, counted in Redis so that every process sees the same.
//!
//! Per account-and-address, so that guessing one password is slow, and per address, so that
//! trying one password on many accounts is. Never per account alone: nobody can lock out
//! somebody else.

use std::net::IpAddr;
use std::time::Duration;

use fred::interfaces::KeysInterface;
use fred::types::Value;

use crate::redis::count;
use crate::scripts::LIMIT;
use crate::{Error, Shop};

const WINDOW: Duration = Duration::from_secs(15 * 60);
/// Failures of one account from one address in a window.
const PER_ACCOUNT: i64 = 10;
/// Failures from one address in a window.
const PER_ADDRESS: i64 = 100;

/// Whether a log-in may be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// It may.
    Allowed,
    /// Not before this many milliseconds have passed.
    Wait {
        /// Milliseconds.
        ms: u64,
    },
}

impl Shop {
    /// Counts an attempt to log in, before the password is looked at.
    ///
    /// # Errors
    /// `Unavailable` when Redis can't be asked.
    pub async fn login_attempt(&self, address: IpAddr, username: &str) -> Result<Attempt, Error> {
        let mut wait = 0;
        for (key, limit) in [
            (self.account_key(address, username), PER_ACCOUNT),
            (self.address_key(address), PER_ADDRESS),
        ] {
            let window = i64::try_from(WINDOW.as_millis()).unwrap_or(i64::MAX);
            let reply = self
                .redis()
                .eval(&LIMIT, vec![key], vec![limit.into(), window.into()])
                .await?;
            wait = count(&reply)?.max(wait);
        }
        Ok(if wait == 0 {
            Attempt::Allowed
        } else {
            Attempt::Wait { ms: wait }
        })
    }

    /// Forgets the failures of this account from this address, and takes the attempt that
    /// succeeded back from the address' count.
    ///
    /// # Errors
    /// `Unavailable` when Redis can't be asked.
    pub async fn login_succeeded(&self, address: IpAddr, username: &str) -> Result<(), Error> {
        let client = self.redis().client();
        let _: Value = client.del(self.account_key(address, username)).await?;
        let _: Value = client.decr(self.address_key(address)).await?;
        Ok(())
    }

    fn address_key(&self, address: IpAddr) -> String {
        self.names().limit("login", &network(address))
    }

    fn account_key(&self, address: IpAddr, username: &str) -> String {
        // Hexadecimal: whatever was typed as a name can't make a key of another kind.
        let name: String = username
            .trim()
            .to_lowercase()
            .bytes()
            .take(64)
            .map(|b| format!("{b:02x}"))
            .collect();
        self.names()
            .limit("login", &format!("{}:{name}", network(address)))
    }
}

/// The address that is counted: an IPv6 network of 64 bits is one household.
fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            format!("{a:x}-{b:x}-{c:x}-{d:x}")
        }
    }
}
