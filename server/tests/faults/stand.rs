//! What every scenario stands on: a database and a prefix of its own, processes of the real
//! binary, buyers who write down what they were told, and the audit at the end.

use std::{
    io::Write,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use bench::{
    args::Stores,
    audit,
    client::Origin,
    facts::Books,
    ledger::Ledger,
    load::{self, Buyer, Load, Tally},
    record::Record,
    report::{Progress, audit_lines},
    sql,
};
use fred::{clients::Client, interfaces::ClientLike as _, types::config::Config as RedisConfig};
use futures::{StreamExt, stream};
use seckill::{NewVoucher, OrderId, SaleState, Shop, ShopConfig, User, VoucherForm, VoucherId};
use server::sessions::Sessions;
use sqlx::PgPool;

use crate::support::{Process, Visitor, at, eventually, flags_for, free_port, services, unique};

/// Tries of a buyer after the first: a fault that lasts longer than all of them is found out.
const RETRIES: u32 = 60;

/// How many of what continuous integration does once.
pub fn scaled(count: u32) -> u32 {
    let scale = std::env::var("SECKILL_FAULTS_SCALE").ok();
    count * scale.map_or(1, |scale| scale.parse().expect("a whole number"))
}

/// Prints the figures of a scenario, past the test runner that keeps back what tests print.
pub fn figures(fault: &str, text: &str) {
    let mut unheld = std::io::stderr();
    writeln!(unheld, "{fault}: {text}").unwrap();
}

/// A shop of a scenario's own.
pub struct Stand {
    /// The domain, in this process: to prepare, and to look behind the answers.
    pub shop: Shop,
    /// Its database.
    pub pool: PgPool,
    /// Where its buyers write down what they were told.
    pub ledger: Ledger,
    /// Who does what an operator does.
    pub admin: User,
    stores: Stores,
    base: String,
    database: String,
    sessions: Sessions,
    folder: PathBuf,
}

impl Stand {
    /// A shop without any process yet.
    pub async fn new() -> Self {
        Self::on(services().clone()).await
    }

    /// A shop on these servers, `(database_url, redis_url)`.
    pub async fn on((base, redis_url): (String, String)) -> Self {
        let database = format!("faults_{}", unique());
        let mut tries = 0;
        // Databases are copied from a template, and two copies at once refuse each other.
        while let Err(error) = sql::database_create(&base, &database).await {
            tries += 1;
            assert!(tries < 200, "create database: {error}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let database_url = sql::database_url(&base, &database);
        let prefix = unique();
        let mut config = ShopConfig::new(&database_url, &redis_url);
        config.prefix.clone_from(&prefix);
        (config.redis_connections, config.pg_connections) = (2, 4);
        let shop = Shop::open(config).await.unwrap();
        shop.wait_for_redis(Duration::from_secs(60)).await.unwrap();
        shop.migrate().await.unwrap();
        let admin = shop
            .create_admin("admin", crate::support::PASSWORD)
            .await
            .unwrap();
        let mut redis = RedisConfig::from_url(&redis_url).unwrap();
        redis.database = Some(redis.database.unwrap_or(0) + 1);
        let sessions = Sessions::open(&redis, 1, false).unwrap();
        sessions.wait().await.unwrap();
        let folder = std::env::temp_dir().join(format!("seckill-faults-{}", unique()));
        std::fs::create_dir(&folder).unwrap();
        Self {
            pool: PgPool::connect(&database_url).await.unwrap(),
            ledger: Ledger::create(&folder.join("ledger")).unwrap(),
            shop,
            admin,
            stores: Stores {
                database_url,
                redis_url,
                prefix,
                settle_seconds: 60,
            },
            base,
            database,
            sessions,
            folder,
        }
    }

    /// The settings of this shop's processes: quick to block, to claim and to reconcile.
    pub fn flags(&self, more: &[&str]) -> Vec<String> {
        let stores = &self.stores;
        let mut flags = flags_for(&stores.database_url, &stores.redis_url, &stores.prefix);
        let mut with = |flag: &str| {
            let name = flag.split('=').next().unwrap_or_default().to_owned() + "=";
            flags.retain(|other| !other.starts_with(&name));
            flags.push(flag.to_owned());
        };
        with("--block-ms=100");
        with("--claim-after-ms=400");
        with("--log=warn,server=info");
        more.iter().for_each(|flag| with(flag));
        flags
    }

    /// A worker, with fail points; it may have ended by one before it says that it reads.
    pub fn worker_with(&self, points: &str, more: &[&str]) -> Process {
        Process::starts_with("worker", &self.flags(more), &[("FAILPOINTS", points)])
    }

    /// A worker that reads.
    pub async fn worker(&self, more: &[&str]) -> Process {
        let mut worker = self.worker_with("", more);
        worker.says("a consumer is reading").await;
        worker
    }

    /// A process that serves the site; on a port that it can be started on again.
    pub async fn web(&self) -> Web {
        self.web_at(free_port(), "").await
    }

    /// The same on this port, with fail points.
    pub async fn web_at(&self, port: u16, points: &str) -> Web {
        self.web_as(port, points, &[]).await
    }

    /// The same with flags.
    pub async fn web_as(&self, port: u16, points: &str, more: &[&str]) -> Web {
        let addr = format!("--addr=127.0.0.1:{port}");
        let flags = self.flags(&[&[&*addr], more].concat());
        let mut process = Process::starts_with("web", &flags, &[("FAILPOINTS", points)]);
        process.says("\"address\":\"").await;
        let web = Web { process, port };
        eventually("the site is ready", || async {
            web.visitor().asks("/readyz").await.status == 200
        })
        .await;
        web
    }

    /// People who are signed in.
    pub async fn crowd(&self, count: u32) -> Arc<[Buyer]> {
        let mut crowd = Vec::new();
        let mut left = count;
        while left > 0 {
            let users = self.shop.create_buyers(left.min(5_000)).await.unwrap();
            left -= left.min(5_000);
            let mut signed = stream::iter(users)
                .map(|user| async move {
                    Buyer {
                        user: user.user_id,
                        cookie: self.sign_in(&user).await.parse().unwrap(),
                    }
                })
                .buffered(128);
            while let Some(buyer) = signed.next().await {
                crowd.push(buyer);
            }
        }
        crowd.into()
    }

    async fn sign_in(&self, user: &User) -> String {
        let user = app::request::SessionUser {
            user_id: user.user_id,
            username: user.username.clone(),
        };
        self.sessions.sign_in(&user).await.unwrap()
    }

    /// The operator in front of a process.
    pub async fn operator(&self, web: &Web) -> Visitor {
        web.visitor().with_cookie(&self.sign_in(&self.admin).await)
    }

    /// The form of a sale that has begun and lasts an hour.
    pub async fn form(&self, title: &str, stock: u32) -> Vec<(&'static str, String)> {
        let now = self.shop.clock(None).await.unwrap();
        [
            ("title", title.to_owned()),
            ("subtitle", String::new()),
            ("rules", String::new()),
            ("pay_cents", "100".into()),
            ("value_cents", "200".into()),
            ("stock", stock.to_string()),
            ("begin", at(now - 1_000)),
            ("end", at(now + 3_600_000)),
        ]
        .into()
    }

    /// A sale that is open.
    pub async fn sale(&self, stock: u32) -> VoucherId {
        let fields = self.form("A voucher", stock).await;
        let field = |name: &str| &*fields.iter().find(|(known, _)| *known == name).unwrap().1;
        let form = VoucherForm {
            title: field("title"),
            pay_cents: field("pay_cents"),
            value_cents: field("value_cents"),
            stock: field("stock"),
            begin: field("begin"),
            end: field("end"),
            ..VoucherForm::default()
        };
        let now = self.shop.clock(None).await.unwrap();
        let new = NewVoucher::parse(&form, now).unwrap();
        let sale = self.shop.create_voucher(self.admin.user_id, new).await;
        let id = sale.unwrap().voucher_id;
        self.opens(id).await;
        id
    }

    /// A bare connection to its Redis, to break things with.
    pub async fn redis(&self) -> Client {
        let config = RedisConfig::from_url(&self.stores.redis_url).unwrap();
        let redis = Client::new(config, None, None, None);
        redis.init().await.unwrap();
        redis
    }

    /// The name of a key of its only lane.
    pub fn key(&self, name: &str) -> String {
        format!("{}:{{0}}:{name}", self.stores.prefix)
    }

    /// Waits until a sale sells.
    pub async fn opens(&self, sale: VoucherId) {
        eventually("the sale is open", || async {
            self.state(sale).await == Some(SaleState::Open)
        })
        .await;
    }

    /// The state of a sale, when it can be asked.
    pub async fn state(&self, sale: VoucherId) -> Option<SaleState> {
        self.shop.sale(sale).await.ok().map(|sale| sale.state)
    }

    /// Everybody of the crowd asks for it, so many at a time, until answered.
    pub async fn buy(&self, web: &Web, sale: VoucherId, crowd: &[Buyer], at_once: u32) -> Tally {
        self.buy_at(web.origin(), sale, crowd, at_once).await
    }

    /// The same at an address that one process after another may serve.
    pub async fn buy_at(
        &self,
        origin: Origin,
        sale: VoucherId,
        crowd: &[Buyer],
        at_once: u32,
    ) -> Tally {
        let order = load::shuffled(count(crowd.len()), 1, rand::random());
        self.load(origin, sale, crowd, order, at_once).await
    }

    /// Requests in this order, each by the buyer with that index.
    pub async fn load(
        &self,
        origin: Origin,
        sale: VoucherId,
        crowd: &[Buyer],
        order: Vec<u32>,
        at_once: u32,
    ) -> Tally {
        let (progress, requests) = (Progress::of(order.len()), order.len() as u64);
        let load = Load {
            origin,
            buyers: crowd.into(),
            order,
            voucher: sale,
            concurrency: at_once,
            retries: RETRIES,
        };
        let tally = load::run(load, &self.ledger, &progress).await.unwrap();
        assert!(
            tally.given_up == 0 && tally.failures.is_empty() && tally.decided() == requests,
            "{tally:?}"
        );
        tally
    }

    /// Admitted orders that are not acknowledged yet, in all lanes and sales; none when it can't be asked.
    pub async fn in_flight(&self) -> Option<u64> {
        let overview = self.shop.overview().await;
        let lanes = overview.lanes.iter();
        (overview.redis && overview.postgres)
            .then(|| lanes.map(|lane| lane.in_flight + lane.pending).sum())
    }

    /// Waits until nothing is under way; tells how long that took.
    pub async fn drains(&self) -> Duration {
        let begun = Instant::now();
        eventually("everything admitted is settled", || async {
            self.in_flight().await == Some(0)
        })
        .await;
        begun.elapsed()
    }

    /// Entries delivered and not acknowledged.
    pub async fn pending(&self) -> u64 {
        let overview = self.shop.overview().await;
        assert!(overview.redis, "Redis answers");
        overview.lanes.iter().map(|lane| lane.pending).sum()
    }

    /// Dead letters.
    pub async fn dead(&self) -> u64 {
        let overview = self.shop.overview().await;
        assert!(overview.redis, "Redis answers");
        overview.lanes.iter().map(|lane| lane.dead).sum()
    }

    /// Live orders in PostgreSQL.
    pub async fn rows(&self, sale: VoucherId) -> i64 {
        sqlx::query_scalar(
            "select count(*) from voucher_order where voucher_id = $1 and state = 'confirmed'",
        )
        .bind(sale.get())
        .fetch_one(&self.pool)
        .await
        .unwrap()
    }

    /// The states that PostgreSQL has of an order: one or none.
    pub async fn order_states(&self, order: OrderId) -> Vec<String> {
        sqlx::query_scalar("select state from voucher_order where order_id = $1")
            .bind(order.get())
            .fetch_all(&self.pool)
            .await
            .unwrap()
    }

    /// From here on PostgreSQL refuses this buyer's orders, with an error that is nobody's fault but theirs.
    pub async fn poison(&self, buyer: &Buyer) {
        sqlx::raw_sql(
            "create table if not exists poisoned (user_id bigint primary key);
             create or replace function refuse() returns trigger language plpgsql as $$
             begin
               if new.state = 'confirmed' and exists (select 1 from poisoned where user_id = new.user_id) then
                 raise check_violation using message = 'poisoned by the test';
               end if;
               return new;
             end $$;
             create or replace trigger refuse before insert on voucher_order for each row execute function refuse();",
        )
        .execute(&self.pool)
        .await
        .unwrap();
        sqlx::query("insert into poisoned values ($1)")
            .bind(buyer.user.get())
            .execute(&self.pool)
            .await
            .unwrap();
    }

    /// The cause is gone.
    pub async fn heal(&self) {
        sqlx::query("delete from poisoned")
            .execute(&self.pool)
            .await
            .unwrap();
    }

    /// The audit: what buyers were told against PostgreSQL and Redis, after everything has drained.
    pub async fn audit(&self) -> Record {
        let record = Record::read(self.ledger.path()).unwrap();
        let books = Books::open(&self.stores).await.unwrap();
        let facts = books.facts(record).await.unwrap();
        books.close().await;
        let checks = audit::checks(&facts);
        assert!(
            audit::passed(&checks),
            "the audit:\n{}",
            audit_lines(&checks).join("\n")
        );
        facts.record
    }

    /// Removes what was made for the scenario. One that failed leaves it to be looked at.
    pub async fn closes(self) {
        self.shop.close().await;
        self.sessions.close().await;
        self.pool.close().await;
        sql::database_drop(&self.base, &self.database)
            .await
            .unwrap();
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}

/// A process that serves the site.
pub struct Web {
    pub process: Process,
    pub port: u16,
}

impl Web {
    /// Where it is.
    pub fn origin(&self) -> Origin {
        Origin::of(&format!("127.0.0.1:{}", self.port)).unwrap()
    }

    /// Somebody in front of it.
    pub fn visitor(&self) -> Visitor {
        Visitor::new(([127, 0, 0, 1], self.port).into())
    }
}

/// A length as the load counts.
pub fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap()
}

/// How often a decided request had this outcome.
pub fn outcome(tally: &Tally, name: &str) -> u64 {
    tally.outcomes.get(name).copied().unwrap_or(0)
}

/// Whether a process has ended; it is collected when somebody waits for it.
pub fn is_over(pid: u32) -> bool {
    state(pid) == 'Z'
}

/// The letter that the system gives the state of a process.
fn state(pid: u32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name before the state stands in parentheses and may hold anything.
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    rest.chars().next().unwrap()
}

/// Waits until a process has stopped itself at a fail point.
pub async fn stops_itself(process: &mut Process) {
    let pid = process.pid();
    eventually("the process stops at its fail point", || async {
        state(pid) == 'T'
    })
    .await;
}

/// Waits until a process has killed itself at a fail point.
pub async fn kills_itself(process: &mut Process) {
    use std::os::unix::process::ExitStatusExt;
    let ended = process.ends().await;
    assert_eq!(ended.signal(), Some(9), "{ended:?}");
}
