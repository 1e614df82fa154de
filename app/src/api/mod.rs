//! Every server function, one file per noun: what a browser can ask for.
//!
//! Endpoints are fixed by name (scripts, load tests and old tabs rely on them).
//! Arguments are text and parsed inside, so that a missing or malformed one is an
//! `invalid` that names its field. A browser's plain form is answered with a redirect:
//! each function says where to with [`show`]; `server` makes the redirect of it.

pub mod admin_dead_letter;
pub mod admin_queue;
pub mod admin_report;
pub mod admin_voucher;
pub mod buy;
pub mod clock;
mod error;
pub mod order;
pub mod sale;
pub mod session;

use serde::{Deserialize, Serialize};

pub use error::{ApiError, Code};
#[cfg(feature = "ssr")]
pub use error::{retry_after, status_of};
#[cfg(feature = "ssr")]
pub use respond::{SHOW_HEADER, show};
#[cfg(feature = "ssr")]
pub(crate) use respond::{answered, refusal_page};

#[cfg(feature = "ssr")]
mod respond;

/// One page of a list; `next` is the cursor of the following one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed<T> {
    /// The page's items.
    pub items: Vec<T>,
    /// What to send as `after` for more; `null` at the end.
    pub next: Option<String>,
}

#[cfg(feature = "ssr")]
impl<T> Listed<T> {
    /// Turns a page of the domain into one of the contract.
    pub(crate) fn from_paged<U>(paged: seckill::page::Paged<U>, item: impl FnMut(U) -> T) -> Self {
        Self {
            items: paged.items.into_iter().map(item).collect(),
            next: paged.next,
        }
    }
}
