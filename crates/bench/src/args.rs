//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::client::Origin;

/// Drives a flash sale over real HTTP, measures it, and proves afterwards that nothing was oversold or lost
///
/// Without a subcommand it does what `buy` does. The exit code is 0 only when every check passes.
#[derive(Debug, Parser)]
#[command(
    name = "seckill-bench",
    version,
    args_conflicts_with_subcommands = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The options of `buy`.
    #[command(flatten)]
    pub buy: Buy,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Many buyers press the button several times each
    Buy(Buy),
    /// One user sends many requests at once: one id in all the answers, one unit of stock
    OneUser(OneUser),
    /// A purchase one second before the begin and one second after the end: refused, stock unchanged
    Window(Window),
    /// Many people watch one sale: how often Redis is read for them
    Viewers(Viewers),
    /// Compares a ledger with PostgreSQL and Redis
    Audit(Audit),
    /// Every earlier way to sell vouchers under the same load and audit, in a few minutes
    Road(Road),
    /// The product beside bare programs that do the same and nothing else, the opening second,
    /// an overload, and growth
    Limits(Limits),
    /// A bare program, started by that
    #[command(hide = true)]
    Bare,
    /// A process of a contender on that road, started by it
    #[command(hide = true)]
    RoadChild,
}

/// A whole sale.
#[derive(Debug, Clone, Args)]
pub struct Buy {
    /// Distinct signed-in users
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    pub buyers: u32,
    /// Requests that each of them sends
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub requests_per_buyer: u32,
    /// Requests under way at a time, each on a connection of its own
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub concurrency: u32,
    /// Vouchers on sale
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(i64).range(1..=10_000_000))]
    pub stock: i64,
    /// Sales one after another, with the same buyers; medians are printed at the end
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// What the order of the requests is drawn from
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where and how.
    #[command(flatten)]
    pub place: Place,
}

/// One user at once.
#[derive(Debug, Clone, Args)]
pub struct OneUser {
    /// Requests sent at once
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub parallel: u32,
    /// Vouchers on sale
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(i64).range(1..=10_000_000))]
    pub stock: i64,
    /// Where and how.
    #[command(flatten)]
    pub place: Place,
}

/// Outside the window.
#[derive(Debug, Clone, Args)]
pub struct Window {
    /// Vouchers on sale
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(i64).range(1..=10_000_000))]
    pub stock: i64,
    /// Where and how.
    #[command(flatten)]
    pub place: Place,
}

/// Only watching.
#[derive(Debug, Clone, Args)]
pub struct Viewers {
    /// People whose page is open
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub viewers: u64,
    /// How long they watch, with each period
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(2..=3_600))]
    pub seconds: u64,
    /// Connections that they share
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub connections: u32,
    /// How old what they are shown may be, in milliseconds; compared with each asking for itself
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub show_ms: u64,
    /// Where and how; the server is always one of this run's own.
    #[command(flatten)]
    pub place: Place,
}

/// The auditor alone.
#[derive(Debug, Clone, Args)]
pub struct Audit {
    /// The ledger that a client wrote
    #[arg(long)]
    pub ledger: PathBuf,
    /// A file that gets the result as JSON
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// What it is compared with.
    #[command(flatten)]
    pub stores: Stores,
}

/// The road to this design.
#[derive(Debug, Clone, Args)]
pub struct Road {
    /// Users; each asks twice at once
    #[arg(long, default_value_t = 3000, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    pub users: u32,
    /// Vouchers on sale
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub stock: u32,
    /// Asks under way at a time
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub concurrency: u32,
    /// Users of the part that ends in kill -9
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(60..=100_000))]
    pub crash_users: u32,
    /// How long locks are leased, in milliseconds
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    pub lease_ms: u64,
    /// Only contenders whose name holds this text
    #[arg(long)]
    pub only: Option<String>,
    /// A folder that gets road.md, road.json and road.svg
    #[arg(long)]
    pub docs: Option<PathBuf>,
    /// URL of PostgreSQL
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: String,
    /// URL of Redis, which nothing else should use meanwhile: its commands are counted
    #[arg(long, env = "REDIS_URL", hide_env_values = true)]
    pub redis_url: String,
    /// URL of RabbitMQ
    #[arg(long, env = "AMQP_URL", hide_env_values = true)]
    pub amqp_url: Option<String>,
}

/// How near the product is to the limit.
#[derive(Debug, Clone, Args)]
pub struct Limits {
    /// Rounds that the medians are of; five at least for documents
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub rounds: u16,
    /// Buyers, and so the orders of a round
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    pub buyers: u32,
    /// How long a rate is measured, in milliseconds
    #[arg(long, default_value_t = 1_500, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    pub window_ms: u64,
    /// Connections of the opening second
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub opening: u32,
    /// Seats of the server that gets ten times as many requests
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=2_000))]
    pub seats: u32,
    /// How long it gets them, in seconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub overload_seconds: u64,
    /// The most buyers of one sale over HTTP, up to 1,000,000
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1_000..=1_000_000))]
    pub growth_buyers: u32,
    /// The most buyers of one sale by the script alone, up to 10,000,000
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..=10_000_000))]
    pub growth_script: u64,
    /// The most sales at once, up to 10,000
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub growth_sales: u64,
    /// A folder that gets limits.md, limits.json and limits.svg
    #[arg(long)]
    pub docs: Option<PathBuf>,
    /// Where and how; the server is always one of this run's own.
    #[command(flatten)]
    pub place: Place,
}

impl Limits {
    /// How long a rate is measured.
    pub fn window(&self) -> Duration {
        Duration::from_millis(self.window_ms)
    }
}

/// The server that is loaded, and what stays of a run.
#[derive(Debug, Clone, Args)]
pub struct Place {
    /// A running server, http://host:port, whose stores are those named here; without it one is started on a
    /// database and a prefix of its own
    #[arg(long)]
    pub address: Option<Origin>,
    /// The server's binary, which is started and makes the buyers [default: seckill-server beside this program]
    #[arg(long, env = "SECKILL_SERVER_BIN")]
    pub server_bin: Option<PathBuf>,
    /// The administrator who creates the sale, name:password [default: one is made with the server's binary]
    #[arg(long, env = "SECKILL_ADMIN", hide_env_values = true)]
    pub admin: Option<String>,
    /// Leaves the database and the keys of a server started here
    #[arg(long)]
    pub keep: bool,
    /// A new file for every attempt and every answer [default: in a temporary folder]
    #[arg(long)]
    pub ledger: Option<PathBuf>,
    /// A file that gets the result as JSON
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// How often a buyer tries again after 503, 429 or a lost connection
    #[arg(long, default_value_t = 30)]
    pub retries: u32,
    /// Threads of this program; one leaves the other cores to the server
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// The server's stores.
    #[command(flatten)]
    pub stores: Stores,
}

/// PostgreSQL and Redis.
#[derive(Debug, Clone, Args)]
pub struct Stores {
    /// URL of PostgreSQL
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: String,
    /// URL of Redis
    #[arg(long, env = "REDIS_URL", hide_env_values = true)]
    pub redis_url: String,
    /// What every key in Redis begins with; a server started here gets one of its own
    #[arg(long, env = "SECKILL_PREFIX", default_value = seckill::names::DEFAULT_PREFIX)]
    pub prefix: String,
    /// Seconds that orders under way have to reach the database before they are judged
    #[arg(long, default_value_t = 60)]
    pub settle_seconds: u64,
}

impl Stores {
    /// How long orders under way are waited for.
    pub fn settle_within(&self) -> Duration {
        Duration::from_secs(self.settle_seconds)
    }
}
