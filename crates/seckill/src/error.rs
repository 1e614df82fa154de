//! What the domain's functions fail with, by what the caller can do about it.

/// A cause that is kept for the log and never shown to a client.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The failure of a function of [`crate::Shop`].
///
/// A refusal of business (sold out, not started) is a value, not an error. `Display` is for
/// logs; only the texts of `Invalid` and `Conflict` are made for the caller's eyes.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input can't be taken as it is; the text says which and why.
    #[error("invalid: {0}")]
    Invalid(String),
    /// There is no such thing, or it is somebody else's.
    #[error("not found")]
    NotFound,
    /// The state of things forbids it; the text says why.
    #[error("conflict: {0}")]
    Conflict(String),
    /// Redis or PostgreSQL can't be asked now; the same call may succeed later.
    #[error("unavailable: {0}")]
    Unavailable(#[source] Cause),
    /// Something that must not happen.
    #[error("internal: {0}")]
    Internal(#[source] Cause),
}

impl Error {
    /// An internal error from a sentence: a reply or row that must not be.
    pub(crate) fn impossible(what: impl Into<String>) -> Self {
        Self::Internal(what.into().into())
    }

    /// Whether the same call may succeed later without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

impl From<fred::error::Error> for Error {
    fn from(error: fred::error::Error) -> Self {
        use fred::error::ErrorKind;
        // A server that starts, is full, or has lost its quorum says so in words; the rest is a bug.
        const AWAY: [&str; 9] = [
            "LOADING",
            "BUSY",
            "MASTERDOWN",
            "CLUSTERDOWN",
            "READONLY",
            "MISCONF",
            "NOREPLICAS",
            "TRYAGAIN",
            "OOM",
        ];
        let away = matches!(
            error.kind(),
            ErrorKind::IO
                | ErrorKind::Timeout
                | ErrorKind::Canceled
                | ErrorKind::Cluster
                | ErrorKind::Backpressure
                | ErrorKind::Routing
                | ErrorKind::Unknown
        ) || AWAY.iter().any(|word| error.details().starts_with(word));
        if away && !error.details().starts_with("ERR") {
            Self::Unavailable(error.into())
        } else {
            Self::Internal(error.into())
        }
    }
}

/// SQLSTATE classes after which the same statement may succeed later: connection, resources,
/// operator intervention, system; and serialization failure, deadlock, lock or statement timeouts;
/// a database that accepts no connections.
const TRANSIENT: [&str; 12] = [
    "08", "53", "57", "58", "40", "55P03", "55000", "25P03", "25P04",
    // Read only, no right, no table: somebody is at the database, and no order is to blame.
    "25006", "42501", "42P01",
];

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let transient = match &error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed => true,
            // A connection that broke in the middle of an answer.
            sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => true,
            sqlx::Error::Database(db) => db
                .code()
                .is_some_and(|code| TRANSIENT.iter().any(|class| code.starts_with(class))),
            _ => false,
        };
        if transient {
            Self::Unavailable(error.into())
        } else {
            Self::Internal(error.into())
        }
    }
}
