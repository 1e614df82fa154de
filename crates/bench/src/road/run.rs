//! A run: each contender loaded, put to its faults, killed and started again, and audited.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use seckill::clock::{Clock, SystemClock};
use seckill::{NewVoucher, Shop, VoucherForm};
use sqlx::PgPool;

use super::audit::{Found, doubled, judge, rows};
use super::contenders::product;
use super::crew::{Crew, Member};
use super::pages::{Measured, Outcome};
use super::roster::{Expect, Row};
use super::stores::{Redis, Role, Scene, lay, postgres};
use super::{Answer, Fault, RoadError};
use crate::sql;

/// How often the rows are counted while they are waited for.
const LOOK: Duration = Duration::from_millis(20);
/// How long no new row comes before the rest is given up, for a way that may lose some.
const QUIET: Duration = Duration::from_secs(3);
/// The same for a way that must lose nothing, which has a whole recovery to do.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long no new row comes before nothing is expected any more, when all are there.
const STILL: Duration = Duration::from_millis(700);
/// Users put to each of a lock's faults.
const FAULTY: i64 = 6;

/// How much each contender is given to do.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Users; each asks twice at once.
    pub users: u32,
    /// Vouchers on sale.
    pub stock: u32,
    /// Asks under way at a time.
    pub concurrency: u32,
    /// Users of the part that ends in `kill -9`.
    pub crash_users: u32,
    /// How long locks are leased, in milliseconds.
    pub lease_ms: u64,
}

/// Where a run stands.
pub struct Road {
    program: PathBuf,
    database_url: String,
    database: String,
    server_url: String,
    redis_url: String,
    amqp_url: Option<String>,
    prefix: String,
    size: Size,
    redis: Redis,
    pool: PgPool,
}

/// What one load told.
#[derive(Default)]
struct Told {
    orders: HashSet<i64>,
    answers: u64,
    accepted: u64,
    conflicts: u64,
    failed: u64,
    /// Users whose ask got no answer.
    unanswered: Vec<i64>,
    micros: Vec<u64>,
}

impl Told {
    fn hear(&mut self, user: i64, answer: Option<Answer>) {
        let Some(answer) = answer else {
            self.unanswered.push(user);
            return;
        };
        self.answers += 1;
        self.orders.extend(answer.order());
        match answer {
            Answer::Accepted(_) => self.accepted += 1,
            Answer::Conflict => self.conflicts += 1,
            Answer::Failed => self.failed += 1,
            Answer::Already(_) | Answer::SoldOut | Answer::Busy => {}
        }
    }

    fn add(&mut self, other: Self) {
        self.orders.extend(other.orders);
        self.answers += other.answers;
        self.accepted += other.accepted;
        self.conflicts += other.conflicts;
        self.failed += other.failed;
        self.unanswered.extend(other.unanswered);
        self.micros.extend(other.micros);
    }

    fn percentile(&mut self, percent: usize) -> f64 {
        self.micros.sort_unstable();
        let at = (self.micros.len() * percent / 100).min(self.micros.len().saturating_sub(1));
        let micros = self.micros.get(at).copied().unwrap_or(0);
        f64::from(u32::try_from(micros).unwrap_or(u32::MAX)) / 1_000.0
    }
}

/// A sale that a contender is about to have.
struct Sale {
    scene: Scene,
    users: Vec<i64>,
    stock: usize,
    row: &'static Row,
    /// The product has a schema of its own.
    pool: PgPool,
}

impl Road {
    /// Makes a database and a prefix for a run; `program` is this program, started again as the
    /// contenders' processes.
    ///
    /// # Errors
    /// When a store can't be reached.
    pub async fn open(
        program: PathBuf,
        database_url: &str,
        redis_url: &str,
        amqp_url: Option<String>,
        size: Size,
    ) -> Result<Self, RoadError> {
        let name = format!("seckill_road_{:016x}", rand::random::<u64>());
        create(database_url, &name).await?;
        let url = sql::database_url(database_url, &name);
        Ok(Self {
            program,
            pool: postgres(&url, 4).await?,
            database_url: url,
            prefix: name.clone(),
            database: name,
            server_url: database_url.to_owned(),
            redis: Redis::open(redis_url).await?,
            redis_url: redis_url.to_owned(),
            amqp_url,
            size,
        })
    }

    /// Removes what the run made.
    ///
    /// # Errors
    /// When a store can't be asked: then something is left.
    pub async fn close(self) -> Result<(), RoadError> {
        self.redis.forget(&self.prefix).await?;
        self.redis.quit().await;
        self.pool.close().await;
        sql::database_drop(&self.server_url, &self.database).await?;
        sql::database_drop(&self.server_url, &self.shop_database()).await?;
        Ok(())
    }

    /// The product's own database, which is made when its turn comes.
    fn shop_database(&self) -> String {
        format!("{}_shop", self.database)
    }

    /// Whether this run has what the contender stands on.
    pub fn has(&self, row: &Row) -> bool {
        !row.rabbit || self.amqp_url.is_some()
    }

    /// Puts one contender through everything.
    ///
    /// # Errors
    /// When it could not be run; what it does wrong is in the outcome.
    pub async fn walk(&self, row: &'static Row) -> Result<Outcome, RoadError> {
        let mut measured = self.load(row).await?;
        if row.locks {
            measured.by_fault = self.faults(row).await?;
        }
        let (crash, told) = self.crash(row).await?;
        measured.lost = crash.lost;
        measured.crash_told = told;
        measured.crash_doubled = crash.doubled;
        Ok(Outcome::of(row, measured))
    }

    async fn sale(
        &self,
        row: &'static Row,
        part: &str,
        users: u32,
        stock: u32,
    ) -> Result<Sale, RoadError> {
        let mut scene = Scene {
            contender: row.name.to_owned(),
            role: Role::Both,
            database_url: self.database_url.clone(),
            redis_url: self.redis_url.clone(),
            amqp_url: self.amqp_url.clone(),
            prefix: format!("{}:{}:{part}", self.prefix, row.name),
            voucher: 1,
            lease_ms: self.size.lease_ms,
        };
        if row.product {
            let (users, pool) = self.shop(&mut scene, users, stock).await?;
            return Ok(Sale {
                scene,
                users,
                stock: stock as usize,
                row,
                pool,
            });
        }
        lay(&self.pool, scene.voucher, i64::from(stock), row.unique).await?;
        self.redis
            .call(&["SET", &scene.key("stock"), &stock.to_string()])
            .await?;
        let users = (1..=i64::from(users)).collect();
        Ok(Sale {
            scene,
            users,
            stock: stock as usize,
            row,
            pool: self.pool.clone(),
        })
    }

    /// A sale of the product's own, in a database of its own.
    async fn shop(
        &self,
        scene: &mut Scene,
        users: u32,
        stock: u32,
    ) -> Result<(Vec<i64>, PgPool), RoadError> {
        let name = self.shop_database();
        let made = create(&self.server_url, &name).await?;
        scene.database_url = sql::database_url(&self.server_url, &name);
        let shop = Shop::open(product::config(
            &scene.database_url,
            &scene.redis_url,
            &scene.prefix,
        ))
        .await?;
        shop.wait_for_redis(PATIENCE).await?;
        if made {
            shop.migrate().await?;
        }
        shop.wait_until_selling(PATIENCE).await?;
        let admin = shop.create_admin("road", "correct horse battery").await?;
        let buyers = shop.create_buyers(users).await?;
        let now = shop.clock(None).await?;
        let at = |ms: i64| jiff::Timestamp::from_millisecond(ms).map(|at| at.to_string());
        let broken = |error: jiff::Error| RoadError::Broken(error.to_string());
        let (begin, end) = (
            at(now - 1_000).map_err(broken)?,
            at(now + 3_600_000).map_err(broken)?,
        );
        let stock = stock.to_string();
        let form = VoucherForm {
            title: "The road",
            pay_cents: "100",
            value_cents: "200",
            stock: &stock,
            begin: &begin,
            end: &end,
            ..VoucherForm::default()
        };
        let sale = shop
            .create_voucher(admin.user_id, NewVoucher::parse(&form, now)?)
            .await?;
        scene.voucher = sale.voucher_id.get();
        shop.close().await;
        let users = buyers
            .into_iter()
            .map(|buyer| buyer.user_id.get())
            .collect();
        Ok((users, postgres(&scene.database_url, 4).await?))
    }

    /// The measured part: every user asks twice at once.
    async fn load(&self, row: &'static Row) -> Result<Measured, RoadError> {
        let sale = self
            .sale(row, "load", self.size.users, self.size.stock)
            .await?;
        let crew = Crew::start(&self.program, &sale.scene, row.webs, row.apart).await?;
        let commands = self.redis.commands().await?;
        let began = Instant::now();
        let asks: Vec<i64> = sale.users.iter().flat_map(|user| [*user, *user]).collect();
        // Persisting is watched while asks go on.
        let asked = ask_all(&crew, &asks, self.size.concurrency as usize);
        let (mut told, took) = asked.await;
        let (found, last) = sale.settle(&told.orders).await?;
        let commands = self.redis.commands().await?.saturating_sub(commands);
        let statements = crew.end().await?;
        let seconds = |span: Duration| span.as_secs_f64().max(0.001);
        let each = |count: u64| to_f64(count) / to_f64(found.rows as u64).max(1.0);
        Ok(Measured {
            answers_per_second: to_f64(told.answers) / seconds(took),
            p50_ms: told.percentile(50),
            p99_ms: told.percentile(99),
            orders_per_second: to_f64(found.rows as u64) / seconds(last.duration_since(began)),
            rows: found.rows,
            oversold: found.oversold,
            doubled: found.doubled,
            conflicts: told.conflicts,
            failed: told.failed,
            lost_without_crash: found.lost,
            success: to_f64(told.accepted)
                / to_f64(told.accepted + told.conflicts + told.failed).max(1.0),
            statements_per_order: each(statements),
            commands_per_order: each(commands),
            ..Measured::default()
        })
    }

    /// A lock's classical faults, each for some users; returns double orders by fault.
    async fn faults(&self, row: &'static Row) -> Result<HashMap<Fault, usize>, RoadError> {
        const FAULTS: [Fault; 3] = [Fault::FailLate, Fault::SlowRelease, Fault::Slow];
        let sale = self.sale(row, "faults", 1, 1_000).await?;
        let crew = Crew::start(&self.program, &sale.scene, 1, false).await?;
        let member = crew.nth(0);
        let cases = FAULTS
            .iter()
            .zip(0i64..)
            .flat_map(|(fault, kind)| (0..FAULTY).map(move |n| (*fault, kind * 100 + n + 1)));
        let patience = self.size.lease_ms * 10;
        join_all(
            cases.map(|(fault, user)| put_to(member, user, fault, Duration::from_millis(patience))),
        )
        .await;
        let rows = rows(&sale.pool, false, sale.scene.voucher).await?;
        crew.end().await?;
        let twice = doubled(&rows);
        let count = |kind: i64| {
            twice
                .iter()
                .filter(|(user, _)| **user / 100 == kind)
                .map(|(_, more)| more)
                .sum()
        };
        Ok(FAULTS
            .iter()
            .zip(0i64..)
            .map(|(fault, kind)| (*fault, count(kind)))
            .collect())
    }

    /// The part that ends in SIGKILL, halfway, with one order decided and not handed on.
    async fn crash(&self, row: &'static Row) -> Result<(Found, usize), RoadError> {
        let users = self.size.crash_users;
        let sale = self.sale(row, "crash", users, users).await?;
        let crew = Crew::start(&self.program, &sale.scene, row.webs, row.apart).await?;
        let concurrency = self.size.concurrency as usize;
        let third = sale.users.len() / 3;
        let (first, rest) = sale.users.split_at(third);
        let (absent, rest) = rest.split_at(third);
        let (victim, rest) = rest
            .split_first()
            .ok_or_else(|| RoadError::Broken("too few users".into()))?;

        let (mut told, _) = ask_all(&crew, first, concurrency).await;
        if row.expect.contains(&Expect::DoublesAfterCrash) {
            // What is to be written twice has to be written once first.
            sale.first_row().await?;
        }
        let mut held = crew.nth(0).send(*victim, Fault::Crash);
        if !held.held().await {
            return Err(RoadError::Broken(format!(
                "{} never reached the place of its crash",
                row.name
            )));
        }
        crew.kill().await?;
        told.unanswered.push(*victim);

        // Those who answer are back before those who persist.
        let role = if row.apart { Role::Web } else { Role::Both };
        let mut crew = Crew {
            web: Vec::new(),
            worker: None,
        };
        for _ in 0..row.webs {
            crew.web
                .push(Member::start(&self.program, &sale.scene, role).await?);
        }
        told.add(ask_all(&crew, absent, concurrency).await.0);
        if row.apart {
            crew.worker = Some(Member::start(&self.program, &sale.scene, Role::Worker).await?);
        }
        told.add(ask_all(&crew, rest, concurrency).await.0);
        // Whoever got no answer asks again, as people do.
        for user in std::mem::take(&mut told.unanswered) {
            told.hear(
                user,
                again(
                    crew.nth(0),
                    user,
                    Fault::None,
                    Duration::from_millis(self.size.lease_ms * 10),
                )
                .await,
            );
        }
        let (found, _) = sale.settle(&told.orders).await?;
        crew.end().await?;
        Ok((found, told.orders.len()))
    }
}

impl Sale {
    /// Waits until something is in the database.
    async fn first_row(&self) -> Result<(), RoadError> {
        let began = Instant::now();
        while rows(&self.pool, self.row.product, self.scene.voucher)
            .await?
            .is_empty()
        {
            if began.elapsed() > PATIENCE {
                return Err(RoadError::Broken(format!(
                    "{} writes nothing",
                    self.row.name
                )));
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Waits until what was told is in the database, or nothing comes any more; returns the
    /// audit, and when the last row was seen.
    async fn settle(&self, told: &HashSet<i64>) -> Result<(Found, Instant), RoadError> {
        let (mut last, mut count) = (Instant::now(), usize::MAX);
        loop {
            let rows = rows(&self.pool, self.row.product, self.scene.voucher).await?;
            let found = judge(&rows, told, self.stock);
            if rows.len() != count {
                (count, last) = (rows.len(), Instant::now());
            }
            let patience = match (found.lost, self.row.apart, self.row.loses) {
                (0, false, _) => return Ok((found, last)),
                (0, true, _) => STILL,
                (_, _, true) => QUIET,
                (_, _, false) => PATIENCE,
            };
            if last.elapsed() > patience {
                return Ok((found, last));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Makes a database unless it is there; tells whether it was made.
///
/// Two at once can collide over the template that both are copied from: it is tried again.
async fn create(server_url: &str, name: &str) -> Result<bool, RoadError> {
    const DUPLICATE_DATABASE: &str = "42P04";
    let began = Instant::now();
    loop {
        match sql::database_create(server_url, name).await {
            Ok(()) => return Ok(true),
            Err(sqlx::Error::Database(error))
                if error.code().as_deref() == Some(DUPLICATE_DATABASE) =>
            {
                return Ok(false);
            }
            Err(sqlx::Error::Database(_)) if began.elapsed() < PATIENCE => {
                tokio::time::sleep(LOOK).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends asks, `concurrency` at a time, in turn to the processes that answer; tells how long
/// it took until the last answer.
async fn ask_all(crew: &Crew, users: &[i64], concurrency: usize) -> (Told, Duration) {
    let (next, began) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let one = || async {
        let mut told = Told::default();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let Some(user) = users.get(n) else {
                return told;
            };
            let asked = Instant::now();
            let answer = crew.nth(n).send(*user, Fault::None).answer().await;
            told.hear(*user, answer);
            told.micros
                .push(u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX));
        }
    };
    let mut all = Told::default();
    for told in join_all((0..concurrency.max(1)).map(|_| one())).await {
        all.add(told);
    }
    (all, began.elapsed())
}

/// Asks again for as long as the user's lock is held.
async fn again(member: &Member, user: i64, fault: Fault, patience: Duration) -> Option<Answer> {
    let began = Instant::now();
    loop {
        match member.send(user, fault).answer().await {
            Some(Answer::Busy) if began.elapsed() < patience => tokio::time::sleep(LOOK).await,
            answer => return answer,
        }
    }
}

/// One user's holder meets the fault, and two more of the user's asks come meanwhile.
async fn put_to(member: &Member, user: i64, fault: Fault, patience: Duration) {
    let mut holder = member.send(user, fault);
    if holder.held().await {
        let others = [(); 2].map(|()| again(member, user, Fault::Dwell, patience));
        tokio::join!(holder.answer(), join_all(others));
    } else {
        holder.answer().await;
        again(member, user, Fault::None, patience).await;
    }
}

/// Counts here are far below what a float holds exactly.
fn to_f64(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Today, as a run notes it: yyyy-mm-dd.
pub(crate) fn today() -> String {
    let now = jiff::Timestamp::from_millisecond(SystemClock.now_ms());
    let now = now.unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string();
    now.chars().take(10).collect()
}
