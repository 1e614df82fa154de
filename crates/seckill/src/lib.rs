//! The domain of the flash sale: admission, ids, queue, orders, vouchers, users, lock, reconcile.
//!
//! It knows nothing of HTTP or sessions, and takes the clock as an argument. [`Shop`] is the
//! way in; its functions stand in the module of their noun. Redis decides (`lua/admit.lua`
//! alone), PostgreSQL records, and the stream between them loses nothing:
//!
//! - [`admission`]: a purchase, one script, one answer
//! - [`consumer`]: from the stream to the row
//! - [`orders`]: what a buyer may ask about an order
//! - [`vouchers`], [`change`](Shop::pause), [`preload`](Shop::create_voucher): sales, their changes, and loading them
//! - [`lock`]: which process does a job that should be done once; no order depends on it
//! - [`dead_letters`], [`reconcile`], [`overview`]: what operators see and settle

mod catalog;
mod change;
mod coalesce;
mod confirm;
mod entry;
mod error;
mod gate;
mod limits;
mod mark;
mod preload;
mod redis;
mod showcase;
mod store;
mod window;

pub mod admission;
pub mod clock;
pub mod consumer;
pub mod dead_letters;
pub mod ground;
pub mod ids;
pub mod lock;
pub mod names;
pub mod orders;
pub mod overview;
pub mod page;
pub mod reconcile;
pub mod reports;
pub mod scripts;
pub mod sequence;
pub mod shop;
pub mod users;
pub mod vouchers;

pub use admission::Purchase;
pub use consumer::{Consumer, ConsumerConfig, Persisted, Step};
pub use dead_letters::{DeadLetter, Settled};
pub use error::{Cause, Error};
pub use ground::Finding;
pub use ids::{EntryId, Lane, LaneEntry, OrderId, UserId, VoucherId};
pub use limits::Login;
pub use orders::{Order, OrderState};
pub use overview::{LaneOverview, Overview, PendingEntry, SaleOverview, Worker};
pub use page::{Page, Paged};
pub use reconcile::{Reconciled, Reconciler};
pub use reports::{AuditEntry, Report, Standstill};
pub use shop::{OpenError, Shop, ShopConfig};
pub use users::{Role, User};
pub use vouchers::{NewVoucher, Sale, SaleState, VoucherForm};

/// A place where a test can stop or kill the process; nothing in any other build.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
fn fail_point(_name: &str) {}

/// A place where a test can kill or stop the process: `FAILPOINTS=name=return(kill)` or `return(stop)`.
///
/// Both are the real signal, sent by the process to itself: the place is exact, and nothing is
/// flushed, closed or unwound.
#[cfg(feature = "failpoints")]
fn fail_point(name: &str) {
    use rustix::process::{Signal, getpid, kill_process};
    let signal = match fail::eval(name, |what| what).flatten().as_deref() {
        Some("kill") => Signal::KILL,
        Some("stop") => Signal::STOP,
        _ => return,
    };
    kill_process(getpid(), signal).expect("a process may signal itself");
    // Any thread may be the one that takes a stop: this one goes no further until it is taken.
    std::thread::sleep(std::time::Duration::from_millis(50));
}
