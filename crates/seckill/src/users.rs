//! Accounts: who a user is, what role they have, and how a password is checked.

use std::str::FromStr;
use std::sync::LazyLock;

use argon2::Argon2;
use argon2::password_hash::rand_core::OsRng;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use tokio::sync::Semaphore;

use crate::ids::UserId;
use crate::store::account;
use crate::{Error, Shop};

/// Passwords hashed at a time: each takes 19 MiB and some 30 ms of a core.
const HASHING: usize = 2;
/// Callers that may wait for their turn; more are told to come back.
const HASHING_QUEUE: usize = 64;
const USERNAME: std::ops::RangeInclusive<usize> = 2..=32;
const PASSWORD: std::ops::RangeInclusive<usize> = 8..=128;

/// What a user may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Buys.
    Buyer,
    /// Also looks at the console.
    Viewer,
    /// Also settles dead letters, pauses and resumes.
    Operator,
    /// Also creates and changes sales.
    Admin,
}

impl Role {
    const ALL: [Self; 4] = [Self::Buyer, Self::Viewer, Self::Operator, Self::Admin];

    /// The role's word over HTTP and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Buyer => "buyer",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

impl FromStr for Role {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or(())
    }
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Their id.
    pub user_id: UserId,
    /// Their name as they wrote it.
    pub username: String,
    /// What they may do.
    pub role: Role,
}

/// Argon2id with the crate's defaults, which are OWASP's minimum: 19 MiB, 2 passes, 1 lane.
static HASHER: LazyLock<Argon2<'static>> = LazyLock::new(Argon2::default);
static TURNS: Semaphore = Semaphore::const_new(HASHING);
static QUEUE: Semaphore = Semaphore::const_new(HASHING_QUEUE);
/// What an unknown name's password is checked against, so that it takes as long as a known one's.
static NOBODY: LazyLock<String> =
    LazyLock::new(|| hash("nobody has this password").expect("hashing a constant succeeds"));

fn hash(password: &str) -> Result<String, Error> {
    let salt = SaltString::generate(&mut OsRng);
    let hash = HASHER.hash_password(password.as_bytes(), &salt);
    Ok(hash
        .map_err(|error| Error::impossible(error.to_string()))?
        .to_string())
}

/// Runs `work` off the async threads, a few at a time.
async fn in_turn<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let _place = QUEUE
        .try_acquire()
        .map_err(|full| Error::Unavailable(full.into()))?;
    let _turn = TURNS
        .acquire()
        .await
        .map_err(|closed| Error::Internal(closed.into()))?;
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::Internal(error.into()))?
}

/// A username and the form in which it is compared: 2 to 32 letters, digits, `_`, `-` or `.`.
fn username(text: &str) -> Result<(String, String), Error> {
    let text = text.trim();
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !USERNAME.contains(&text.chars().count()) || !text.chars().all(allowed) {
        return Err(Error::Invalid(
            "username: 2 to 32 letters, digits, _ - or .".into(),
        ));
    }
    Ok((text.to_owned(), text.to_lowercase()))
}

fn password(text: &str) -> Result<String, Error> {
    if !PASSWORD.contains(&text.chars().count()) {
        return Err(Error::Invalid("password: 8 to 128 characters".into()));
    }
    Ok(text.to_owned())
}

impl Shop {
    /// Creates a buyer's account.
    ///
    /// # Errors
    /// `Invalid` for a name or password that can't be taken, `Conflict` when the name is
    /// taken, `Unavailable` when PostgreSQL is away or too many passwords are being hashed.
    pub(crate) async fn register(&self, name: &str, secret: &str) -> Result<User, Error> {
        let ((name, key), secret) = (username(name)?, password(secret)?);
        let hash = in_turn(move || hash(&secret)).await?;
        let made = account::account_insert(self.pool(), &name, &key, &hash).await?;
        made.ok_or_else(|| Error::Conflict("this username is taken".into()))
    }

    /// The user with this name and password; none when either is wrong, in the same time.
    ///
    /// # Errors
    /// `Unavailable` as for [`Shop::register`].
    pub(crate) async fn verify(&self, name: &str, secret: &str) -> Result<Option<User>, Error> {
        let key = username(name).map(|(_, key)| key);
        let account = match &key {
            Ok(key) => account::account_by_name(self.pool(), key).await?,
            Err(_) => None,
        };
        let (user, stored) = match account {
            Some(account) => (Some(account.user), account.password_hash),
            None => (None, None),
        };
        // Longer than any password that was ever accepted: not worth a hash of that length.
        let secret: String = secret.chars().take(*PASSWORD.end() + 1).collect();
        let right = in_turn(move || {
            let stored_or_nobody = stored.as_deref().unwrap_or(&NOBODY);
            let parsed = PasswordHash::new(stored_or_nobody)
                .map_err(|e| Error::impossible(e.to_string()))?;
            Ok(HASHER.verify_password(secret.as_bytes(), &parsed).is_ok() && stored.is_some())
        })
        .await?;
        Ok(user.filter(|_| right))
    }

    /// The user with this id, with the role they have now.
    ///
    /// # Errors
    /// `Unavailable` when PostgreSQL can't be asked.
    pub async fn user(&self, id: UserId) -> Result<Option<User>, Error> {
        account::account_by_id(self.pool(), id).await
    }

    /// Creates an admin, or makes an existing account one and sets its password.
    ///
    /// # Errors
    /// As for [`Shop::register`], without the conflict.
    pub async fn create_admin(&self, name: &str, secret: &str) -> Result<User, Error> {
        let ((name, key), secret) = (username(name)?, password(secret)?);
        let hash = in_turn(move || hash(&secret)).await?;
        account::account_upsert_admin(self.pool(), &name, &key, &hash).await
    }

    /// Creates accounts for a load test, to which nobody can log in with a password.
    ///
    /// # Errors
    /// `Invalid` for none or more than a million.
    pub async fn create_buyers(&self, count: u32) -> Result<Vec<User>, Error> {
        let count = i32::try_from(count)
            .ok()
            .filter(|n| (1..=1_000_000).contains(n));
        let count = count.ok_or_else(|| Error::Invalid("count: 1 to 1000000".into()))?;
        let stem = format!("buyer-{:08x}", rand::random::<u32>());
        account::account_insert_many(self.pool(), &stem, count).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_without_case() {
        assert_eq!(
            username(" Anna.B ").map(|n| n.1).ok(),
            Some("anna.b".into())
        );
        for wrong in ["", "a", "a b", "a\n", "<b>", &"x".repeat(33)] {
            assert!(username(wrong).is_err(), "{wrong:?}");
        }
        assert!(username("小明").is_ok());
    }

    #[test]
    fn a_hash_is_argon2id_at_owasps_minimum() {
        let hash = hash("correct horse").expect("hashes");
        assert!(
            hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{hash}"
        );
    }
}
