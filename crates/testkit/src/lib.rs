//! What every test on real services stands on: a database and a key prefix of its own, so that
//! all run in parallel and none flushes what is another's.
//!
//! `SECKILL_TEST_DATABASE_URL` and `SECKILL_TEST_REDIS_URL` name the servers; `script/test`
//! sets them to private ones that end with it.

mod load;
mod proxy;
mod redis_server;

use std::future::Future;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use fred::prelude::{Builder, Client, ClientLike, Config};
use seckill::clock::{Clock, SystemClock};
use seckill::{
    Consumer, ConsumerConfig, Error, Lane, NewVoucher, Reconciler, Sale, Shop, ShopConfig, Step,
    User, VoucherForm, VoucherId,
};
use sqlx::{Connection, PgConnection, PgPool};

pub use load::{Crowd, Outcome, Workers, scale};
pub use proxy::Proxy;
pub use redis_server::{DataCopy, PrivateCluster, PrivateRedis};

/// How long an event may take before a test gives it up; never how long one waits for nothing.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// The URL of the PostgreSQL server that tests make their databases on.
pub fn database_server() -> String {
    setting("SECKILL_TEST_DATABASE_URL")
}

/// The URL of the Redis that tests keep their keys in.
pub fn redis_url() -> String {
    setting("SECKILL_TEST_REDIS_URL")
}

fn setting(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run the tests with script/test"))
}

/// Tells a fault's figures in one line, whether the test's output is captured or not.
pub fn report(fault: &str, figures: &str) {
    // A test does not fail because nobody reads.
    let _ = writeln!(std::io::stderr(), "{fault}: {figures}");
}

/// A text that no other test has.
pub fn unique(stem: &str) -> String {
    format!("{stem}_{:016x}", rand::random::<u64>())
}

/// A clock that a test can set forward or back against the system's.
#[derive(Debug, Default)]
pub struct ShiftedClock(AtomicI64);

impl ShiftedClock {
    /// Sets how many milliseconds it differs.
    pub fn shift(&self, ms: i64) {
        self.0.store(ms, Ordering::SeqCst);
    }
}

impl Clock for ShiftedClock {
    fn now_ms(&self) -> i64 {
        SystemClock.now_ms() + self.0.load(Ordering::SeqCst)
    }
}

/// A shop of the test's own, with bare connections beside it to break things with.
pub struct Stage {
    /// The shop under test.
    pub shop: Shop,
    /// How it was opened, for a second process on the same stores.
    pub config: ShopConfig,
    /// A bare connection to its Redis.
    pub redis: Client,
    /// Bare connections to its database.
    pub pool: PgPool,
    /// Its clock.
    pub clock: Arc<ShiftedClock>,
}

/// A new, migrated database on the test server; its URL.
pub async fn database() -> String {
    let (server, name) = (database_server(), unique("seckill_test"));
    let mut connection = PgConnection::connect(&server)
        .await
        .expect("the test PostgreSQL answers");
    // Two at once can collide over the template: it is made again.
    let mut tries = 0;
    loop {
        match sqlx::query(&format!("create database {name}"))
            .execute(&mut connection)
            .await
        {
            Ok(_) => break,
            Err(error) if tries > 50 => panic!("create database: {error}"),
            Err(_) => tries += 1,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (base, query) = server.split_once('?').unwrap_or((&server, ""));
    let stem = base.rsplit_once('/').map_or(base, |(stem, _)| stem);
    if query.is_empty() {
        format!("{stem}/{name}")
    } else {
        format!("{stem}/{name}?{query}")
    }
}

impl Stage {
    /// A shop on a new database and prefix.
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// The same with settings changed first.
    pub async fn with(change: impl FnOnce(&mut ShopConfig)) -> Self {
        let clock = Arc::new(ShiftedClock::default());
        let mut config = ShopConfig::new(&database().await, &redis_url());
        config.prefix = unique("test");
        config.pg_connections = 4;
        config.redis_connections = 2;
        // A loaded machine with a slow disk may keep Redis busy for seconds.
        config.buy_timeout = Duration::from_secs(10);
        config.clock = Arc::clone(&clock) as _;
        change(&mut config);
        let shop = Shop::open(config.clone()).await.expect("valid settings");
        shop.wait_for_redis(DEADLINE)
            .await
            .expect("the test Redis answers");
        shop.migrate().await.expect("the migrations run");
        shop.wait_until_selling(DEADLINE)
            .await
            .expect("the ground is safe");
        let redis = Builder::from_config(Config::from_url(&config.redis_url).expect("a Redis URL"))
            .build()
            .expect("a client");
        redis.init().await.expect("the test Redis answers");
        let pool = PgPool::connect(&config.database_url)
            .await
            .expect("the database answers");
        Self {
            shop,
            config,
            redis,
            pool,
            clock,
        }
    }

    /// A second process on the same stores.
    pub async fn another(&self) -> Shop {
        let shop = Shop::open(self.config.clone())
            .await
            .expect("valid settings");
        shop.wait_until_selling(DEADLINE)
            .await
            .expect("the ground is safe");
        shop
    }

    /// A key of lane 0 under this stage's prefix: `key("orders")`.
    pub fn key(&self, rest: &str) -> String {
        format!("{}:{{0}}:{rest}", self.config.prefix)
    }

    /// Runs a Redis command given as words, and returns its reply.
    pub async fn redis_command(&self, words: &[&str]) -> fred::types::Value {
        use fred::types::{ClusterHash, CustomCommand};
        let command = CustomCommand::new(words[0], ClusterHash::FirstKey, false);
        let args: Vec<String> = words[1..].iter().map(|word| (*word).to_owned()).collect();
        self.redis
            .custom(command, args)
            .await
            .unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// An admin.
    pub async fn admin(&self) -> User {
        self.shop
            .create_admin("admin", "correct horse")
            .await
            .expect("an admin")
    }

    /// Buyers.
    pub async fn buyers(&self, count: u32) -> Vec<User> {
        self.shop.create_buyers(count).await.expect("buyers")
    }

    /// A sale that is open for an hour.
    pub async fn open_sale(&self, stock: i64) -> Sale {
        self.sale_between(stock, -1_000, 3_600_000).await
    }

    /// A sale that opens and closes so many milliseconds from now.
    pub async fn sale_between(&self, stock: i64, begin_in_ms: i64, end_in_ms: i64) -> Sale {
        let now_ms = self.shop.clock(None).await.expect("Redis answers");
        let (begin, end) = (rfc3339(now_ms + begin_in_ms), rfc3339(now_ms + end_in_ms));
        let stock = stock.to_string();
        let form = VoucherForm {
            title: "Lunch for two",
            pay_cents: "4900",
            value_cents: "9900",
            stock: &stock,
            begin: &begin,
            end: &end,
            ..VoucherForm::default()
        };
        let new = NewVoucher::parse(&form, now_ms).expect("a valid form");
        let admin = self.admin().await;
        self.shop
            .create_voucher(admin.user_id, new)
            .await
            .expect("the voucher is created")
    }

    /// A consumer of lane 0 that works quickly.
    pub async fn consumer(&self) -> Consumer {
        self.consumer_with(|_| {}).await
    }

    /// The same with settings changed first.
    pub async fn consumer_with(&self, change: impl FnOnce(&mut ConsumerConfig)) -> Consumer {
        let mut config = ConsumerConfig {
            block: Duration::from_millis(100),
            claim_after: Duration::from_millis(300),
            ..ConsumerConfig::default()
        };
        change(&mut config);
        Consumer::open(&self.shop, Lane(0), &unique("consumer"), config)
            .await
            .expect("a consumer")
    }

    /// Steps a consumer until `enough` of what it did so far; returns all of it.
    pub async fn consume_until(
        &self,
        consumer: &mut Consumer,
        enough: impl Fn(&Step) -> bool,
    ) -> Step {
        let mut all = Step::default();
        let work = async {
            while !enough(&all) {
                match consumer.step().await {
                    Ok(step) => {
                        all.read += step.read;
                        all.claimed += step.claimed;
                        all.duplicates += step.duplicates;
                        all.persisted.extend(step.persisted);
                        all.dead.extend(step.dead);
                        if step.waited {
                            tokio::time::sleep(Duration::from_millis(50)).await;
                        }
                    }
                    Err(error) if error.is_transient() => {
                        tokio::time::sleep(Duration::from_millis(20)).await
                    }
                    Err(error) => panic!("a step failed: {error}"),
                }
            }
        };
        tokio::time::timeout(DEADLINE, work)
            .await
            .unwrap_or_else(|_| panic!("not in time"));
        all
    }

    /// Lets a fresh consumer write everything that is queued, and fails if anything is left.
    pub async fn drain(&self) {
        let mut consumer = self.consumer().await;
        let work = async {
            loop {
                match consumer.step().await {
                    Ok(_) => {}
                    Err(error) if error.is_transient() => {
                        tokio::time::sleep(Duration::from_millis(20)).await
                    }
                    Err(error) => panic!("a step failed: {error}"),
                }
                let overview = self.shop.overview().await;
                let lanes = overview
                    .lanes
                    .iter()
                    .all(|lane| lane.pending == 0 && lane.stream_length == 0);
                let sales = overview.sales.iter().all(|sale| sale.in_flight == 0);
                if lanes && sales && !overview.lanes.is_empty() {
                    break;
                }
            }
        };
        tokio::time::timeout(DEADLINE, work)
            .await
            .unwrap_or_else(|_| panic!("the queue was not drained in time"));
        consumer.close().await;
    }

    /// Runs the reconciler until a round finds nothing to do.
    pub async fn reconcile(&self) {
        let mut reconciler = Reconciler::new(&self.shop);
        let work = async {
            loop {
                let done = reconciler.step().await.expect("both stores answer");
                let quiet = done.loaded.is_empty()
                    && done.finished.is_empty()
                    && done.applied == 0
                    && done.restored == 0;
                if quiet && !done.skipped {
                    break;
                }
            }
        };
        tokio::time::timeout(DEADLINE, work)
            .await
            .unwrap_or_else(|_| panic!("the reconciler found no rest"));
        reconciler.close().await;
    }

    /// Live rows of a voucher, as (user, order).
    pub async fn rows(&self, voucher: VoucherId) -> Vec<(i64, i64)> {
        sqlx::query_as(
            "select user_id, order_id from voucher_order where voucher_id = $1 and state = 'confirmed' order by order_id",
        )
        .bind(voucher.get())
        .fetch_all(&self.pool)
        .await
        .expect("the database answers")
    }

    /// Asserts the promise for a sale at rest: conservation, rows = what is acked, no mark left behind.
    pub async fn assert_balanced(&self, voucher: VoucherId) {
        let overview = self.shop.overview().await;
        let sale = overview
            .sales
            .iter()
            .find(|sale| sale.voucher_id == voucher)
            .expect("the sale is held");
        assert!(sale.balanced, "conservation: {sale:?}");
        let rows = i64::try_from(self.rows(voucher).await.len()).expect("few rows");
        assert_eq!(
            (sale.confirmed, sale.in_flight),
            (rows, 0),
            "rows against counters: {sale:?}"
        );
        let stock: i64 = sqlx::query_scalar("select stock from voucher where voucher_id = $1")
            .bind(voucher.get())
            .fetch_one(&self.pool)
            .await
            .expect("the row");
        assert_eq!(stock, sale.total - rows, "PostgreSQL's stock");
    }
}

/// A time as RFC 3339 in UTC, to the millisecond.
pub fn rfc3339(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms)
        .expect("a time of this era")
        .to_string()
}

/// Waits until `check` gives something, at most [`DEADLINE`].
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, check: impl Fn() -> F) -> T {
    let work = async {
        loop {
            if let Some(found) = check().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(DEADLINE, work)
        .await
        .unwrap_or_else(|_| panic!("not in time: {what}"))
}

/// Whether a call says "not now".
pub fn is_unavailable<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Unavailable(_)))
}
