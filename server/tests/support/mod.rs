//! A whole shop for each test, and people who use it.
//!
//! Redis and PostgreSQL are real. Each test has a database of its own and a key
//! prefix of its own, so all run in parallel and none empties anything.

mod database;
mod process;
mod proxy;
mod visitor;

use std::{
    net::SocketAddr,
    process::Command,
    sync::{Arc, OnceLock},
    time::Duration,
};

use clap::Parser;
use fred::prelude::*;
use seckill::Shop;
use server::{Role, ServerError, build, config::Settings, sessions::Sessions};
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

pub use database::Database;
pub use process::{Process, free_port, redis_that_forgets};
pub use proxy::Proxy;
pub use visitor::{PASSWORD, Visitor};

/// How long anything may take that a test waits for. It is a limit, not a wait.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Where Redis and PostgreSQL are: `(database_url, redis_url)`.
pub fn services() -> &'static (String, String) {
    static URLS: OnceLock<(String, String)> = OnceLock::new();
    URLS.get_or_init(|| {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        match (variable("SECKILL_TEST_DATABASE_URL"), variable("SECKILL_TEST_REDIS_URL")) {
            (Some(database), Some(redis)) => (database, redis),
            _ => private_services().expect(
                "these tests need Redis and PostgreSQL: run script/test, or set SECKILL_TEST_DATABASE_URL and SECKILL_TEST_REDIS_URL",
            ),
        }
    })
}

fn private_services() -> Option<(String, String)> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../script/services");
    let run = |word: &str| {
        let output = Command::new(script)
            .arg(word)
            .env_remove("DATABASE_URL")
            .env_remove("REDIS_URL")
            .output()
            .ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    run("start")?;
    let urls = run("env")?;
    let value = |name: &str| {
        urls.lines()
            .find_map(|line| Some(line.strip_prefix(name)?.to_owned()))
    };
    Some((value("DATABASE_URL=")?, value("REDIS_URL=")?))
}

/// A word that no other test has.
pub fn unique() -> String {
    format!("t{:016x}", rand::random::<u64>())
}

/// Waits until `holds` is true; polls, because what is awaited happens elsewhere.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let limit = Instant::now() + DEADLINE;
    while !holds().await {
        assert!(Instant::now() < limit, "not within {DEADLINE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    settings: Settings,
}

/// Settings as somebody would type them.
pub fn settings(flags: &[String]) -> Settings {
    Typed::parse_from([String::from("seckill-server")].iter().chain(flags)).settings
}

/// A shop that is open for the length of a test.
pub struct Site {
    pub address: SocketAddr,
    pub database: Database,
    pub prefix: String,
    pub shop: Shop,
    pub sessions: Sessions,
    stop: CancellationToken,
    running: JoinHandle<Result<(), ServerError>>,
}

impl Site {
    /// Opens a shop that serves and persists.
    pub async fn open() -> Self {
        Self::open_with(Role::Both, &[]).await
    }

    /// Opens a shop in a role, with more settings.
    pub async fn open_with(role: Role, flags: &[&str]) -> Self {
        let database = Database::create().await;
        let prefix = unique();
        let mut all = flags_for(&database.url, &services().1, &prefix);
        let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
        all.retain(|flag| flags.iter().all(|other| name(other) != name(flag)));
        all.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let config = settings(&all)
            .check()
            .expect("the test's settings fit together");
        let shop = Shop::open(config.shop.clone()).await.unwrap();
        shop.migrate().await.unwrap();
        shop.close().await;
        let server = build(config, role).await.unwrap();
        let address = server.address().expect("a site listens");
        let (shop, sessions) = (server.shop().clone(), server.sessions().unwrap().clone());
        let stop = CancellationToken::new();
        let running = tokio::spawn(server.run(stop.clone()));
        let site = Self {
            address,
            database,
            prefix,
            shop,
            sessions,
            stop,
            running,
        };
        eventually("the site is ready", || async {
            site.visitor().asks("/readyz").await.status == 200
        })
        .await;
        site
    }

    /// Somebody who is not signed in.
    pub fn visitor(&self) -> Visitor {
        Visitor::new(self.address)
    }

    /// Somebody who is signed in and buys.
    pub async fn buyer(&self) -> Visitor {
        self.buyers(1).await.remove(0)
    }

    /// Many of them.
    pub async fn buyers(&self, count: u32) -> Vec<Visitor> {
        let mut buyers = Vec::new();
        for user in self.shop.create_buyers(count).await.unwrap() {
            let user = app::request::SessionUser {
                user_id: user.user_id,
                username: user.username,
            };
            buyers.push(
                self.visitor()
                    .with_cookie(&self.sessions.sign_in(&user).await.unwrap()),
            );
        }
        buyers
    }

    /// Somebody who may do everything.
    pub async fn admin(&self) -> Visitor {
        let user = self
            .shop
            .create_admin(&unique(), "correct horse battery")
            .await
            .unwrap();
        let user = app::request::SessionUser {
            user_id: user.user_id,
            username: user.username,
        };
        self.visitor()
            .with_cookie(&self.sessions.sign_in(&user).await.unwrap())
    }

    /// A sale that has begun and lasts an hour.
    pub async fn open_sale(&self, stock: u32) -> String {
        self.sale(stock, -1_000, 3_600_000).await
    }

    /// A sale whose window is given in milliseconds from now.
    pub async fn sale(&self, stock: u32, begin: i64, end: i64) -> String {
        let admin = self.admin().await;
        let now = admin.asks("/api/clock").await.json()["now_ms"]
            .as_i64()
            .unwrap();
        let stock = stock.to_string();
        let answer = admin
            .posts(
                "/api/admin/create_voucher",
                &[
                    ("title", "A voucher"),
                    ("subtitle", "for a test"),
                    ("rules", "one each"),
                    ("pay_cents", "100"),
                    ("value_cents", "200"),
                    ("stock", &stock),
                    ("begin", &at(now + begin)),
                    ("end", &at(now + end)),
                ],
            )
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let id = answer.json()["voucher_id"].as_str().unwrap().to_owned();
        eventually("the sale is loaded", || async {
            self.state(&id).await != "not_loaded"
        })
        .await;
        id
    }

    /// The sale's state, as anybody sees it.
    pub async fn state(&self, sale: &str) -> String {
        self.visitor()
            .asks(&format!("/api/sale?voucher_id={sale}"))
            .await
            .json()["state"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// What is left, exactly.
    pub async fn stock(&self, sale: &str) -> i64 {
        self.shop.sale(sale.parse().unwrap()).await.unwrap().stock
    }

    /// Orders in PostgreSQL.
    pub async fn rows(&self, sale: &str) -> i64 {
        self.database.orders(sale).await
    }

    /// Waits until the sale has this many orders in PostgreSQL and nothing is under way.
    pub async fn persists(&self, sale: &str, orders: i64) {
        eventually("every order is persisted and acknowledged", || async {
            self.rows(sale).await >= orders && self.under_way().await == 0
        })
        .await;
        assert_eq!(self.rows(sale).await, orders);
    }

    /// Orders admitted and not yet acknowledged.
    pub async fn under_way(&self) -> u64 {
        let overview = self.shop.overview().await;
        assert!(overview.redis && overview.postgres);
        overview
            .lanes
            .iter()
            .map(|lane| lane.in_flight + lane.pending)
            .sum()
    }

    /// A connection to Redis, and the name of a key of this site's only lane.
    pub async fn redis(&self) -> Client {
        let config = Config::from_url(&services().1).unwrap();
        let client = Client::new(config, None, None, None);
        client.init().await.unwrap();
        client
    }

    /// The name of a key of this site's only lane.
    pub fn key(&self, name: &str) -> String {
        format!("{}:{{0}}:{name}", self.prefix)
    }

    /// Settings for another process of the same shop.
    pub fn flags(&self) -> Vec<String> {
        flags_for(&self.database.url, &services().1, &self.prefix)
    }

    /// Closes in order; whatever is under way is finished.
    pub async fn closes(self) {
        self.stop.cancel();
        self.running.await.unwrap().unwrap();
        self.database.remove().await;
    }
}

/// The settings that every process of a test's shop shares.
pub fn flags_for(database: &str, redis: &str, prefix: &str) -> Vec<String> {
    [
        ("--addr", "127.0.0.1:0"),
        ("--database-url", database),
        ("--redis-url", redis),
        ("--prefix", prefix),
        ("--block-ms", "200"),
        ("--claim-after-ms", "1000"),
        ("--reconcile-ms", "200"),
        ("--dist", "/nonexistent"),
        ("--log", "warn"),
    ]
    .map(|(flag, value)| format!("{flag}={value}"))
    .to_vec()
}

/// A time as RFC 3339.
pub fn at(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).unwrap().to_string()
}

/// Runs as many at once as `at_once` says, and returns the answers in any order.
pub async fn all_at_once<F>(at_once: usize, work: impl IntoIterator<Item = F>) -> Vec<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    let seats = Arc::new(tokio::sync::Semaphore::new(at_once));
    let mut tasks = tokio::task::JoinSet::new();
    for one in work {
        let seats = Arc::clone(&seats);
        tasks.spawn(async move {
            let _seat = seats.acquire().await;
            one.await
        });
    }
    tasks.join_all().await
}
