//! Every page, one async handler each: it loads its data first and then renders, so
//! that a page arrives whole, with its status, in one flight.

mod account;
mod console;
mod home;
mod orders;
mod preferences;
mod problem;
mod road;
mod sale;
mod shell;
mod visit;

pub use account::{login, register};
pub use console::{
    audit::admin_audit, dead_letters::admin_dead_letters, overview::admin, pending::admin_pending,
    queue::admin_queue, reports::admin_reports, sales::admin_sales,
};
pub use home::home;
pub use orders::{order, orders};
pub use preferences::preferences;
pub use problem::{not_found, problem, refused};
pub use road::road;
pub use sale::sale;
pub use visit::Visit;
