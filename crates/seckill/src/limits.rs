//! Log-in and registration with their limits, counted in Redis so that every process sees the same.
//!
//! Only failures count: per account-and-address, so that guessing one password is slow, and
//! per address, so that trying one password on many accounts is. Never per account alone:
//! nobody can lock out somebody else, and a right password is never counted. Attempts on one
//! account from one address come one after the other, so that a hundred guesses at once are
//! counted like a hundred in a row.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::time::Duration;

use fred::interfaces::KeysInterface;
use fred::types::Value;
use tokio::sync::Mutex;

use crate::redis::count;
use crate::scripts::LIMIT;
use crate::{Error, Shop, User};

const WINDOW: Duration = Duration::from_secs(15 * 60);
/// Failures of one account from one address in a window.
const PER_ACCOUNT: i64 = 10;
/// Failures from one address in a window.
const PER_ADDRESS: i64 = 100;
/// Registrations from one address in a window: each costs a password hash.
const REGISTRATIONS: i64 = 300;
/// Attempts that can be under way at once without sharing a turn by chance.
const TURNS: usize = 256;

static ATTEMPTS: [Mutex<()>; TURNS] = [const { Mutex::const_new(()) }; TURNS];

/// The answer to an attempt to log in or to register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// The user.
    Welcome(User),
    /// Name or password is wrong; which one is not told.
    Wrong,
    /// Too many failures: not before this many milliseconds have passed.
    Wait {
        /// Milliseconds.
        ms: u64,
    },
}

impl Shop {
    /// Checks a name and a password that somebody at this address entered.
    ///
    /// # Errors
    /// `Unavailable` when Redis or PostgreSQL can't be asked, or too many passwords are being
    /// hashed: nothing was counted.
    pub async fn login(
        &self,
        address: IpAddr,
        username: &str,
        password: &str,
    ) -> Result<Login, Error> {
        let (account, address) = (
            self.account_key(address, username),
            self.address_key("login", address),
        );
        let _turn = ATTEMPTS[turn(&account)].lock().await;
        for (key, limit) in [(&account, PER_ACCOUNT), (&address, PER_ADDRESS)] {
            let ms = self.limit(key, limit, false).await?;
            if ms > 0 {
                return Ok(Login::Wait { ms });
            }
        }
        match self.verify(username, password).await? {
            Some(user) => {
                let _: Value = self.redis().client().del(account).await?;
                Ok(Login::Welcome(user))
            }
            None => {
                self.limit(&account, PER_ACCOUNT, true).await?;
                self.limit(&address, PER_ADDRESS, true).await?;
                Ok(Login::Wrong)
            }
        }
    }

    /// Creates a buyer's account for somebody at this address.
    ///
    /// # Errors
    /// As for [`Shop::register`].
    pub async fn register_from(
        &self,
        address: IpAddr,
        username: &str,
        password: &str,
    ) -> Result<Login, Error> {
        let key = self.address_key("register", address);
        let ms = self.limit(&key, REGISTRATIONS, false).await?;
        if ms > 0 {
            return Ok(Login::Wait { ms });
        }
        let user = self.register(username, password).await?;
        self.limit(&key, REGISTRATIONS, true).await?;
        Ok(Login::Welcome(user))
    }

    /// Counts an event or only looks; milliseconds to wait, 0 when there may be one now.
    async fn limit(&self, key: &str, limit: i64, counts: bool) -> Result<u64, Error> {
        let window = i64::try_from(WINDOW.as_millis()).unwrap_or(i64::MAX);
        let args = vec![limit.into(), window.into(), i64::from(counts).into()];
        count(
            &self
                .redis()
                .eval(&LIMIT, vec![key.to_owned()], args)
                .await?,
        )
    }

    fn address_key(&self, kind: &str, address: IpAddr) -> String {
        self.names().limit(kind, &network(address))
    }

    fn account_key(&self, address: IpAddr, username: &str) -> String {
        // Hexadecimal: whatever was typed as a name can't make a key of another kind.
        let folded = username.trim().to_lowercase();
        let name: String = folded
            .bytes()
            .take(64)
            .map(|b| format!("{b:02x}"))
            .collect();
        self.names()
            .limit("login", &format!("{}:{name}", network(address)))
    }
}

fn turn(account: &str) -> usize {
    let mut hasher = DefaultHasher::new();
    account.hash(&mut hasher);
    usize::try_from(hasher.finish() % TURNS as u64).unwrap_or(0)
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
