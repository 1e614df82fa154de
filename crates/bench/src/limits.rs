//! How near the product is to the limit: each of its parts beside a bare program that does the
//! same and nothing else, in turn, several times in one run.
//!
//! Ratios are what counts: both sides share the machine, the load generator and the stores, so
//! a slow machine slows both. The medians of the rounds are compared with the budgets of the
//! design.
//!
//! - [`bare`]: the limit, in processes of its own
//! - [`load`]: the opening second, ten times too many, and growth
//! - [`pump`]: the load
//! - [`pages`]: what is written

mod bare;
mod load;
mod pages;
mod pump;

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt};
use http::HeaderValue;
use seckill::{UserId, VoucherId};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::admin::Admin;
use crate::args::Limits;
use crate::client::{Call, Connection, Origin};
use crate::report::{Progress, say, tell};
use crate::site::{Site, SiteError};
use crate::sql;
use bare::{Buy, Redis, TASK, Task, Work};
use pump::{Pumped, Until, pump};

pub use bare::child;

/// A sale that outlasts the run.
const A_DAY_MS: i64 = 86_400_000;
/// Requests under way at a time.
const CONNECTIONS: usize = 64;
/// What is not measured: the first answers of a process.
const WARM_UP: Duration = Duration::from_millis(300);

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum LimitsError {
    /// The site.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// PostgreSQL.
    #[error("PostgreSQL: {0}")]
    Sql(#[from] sqlx::Error),
    /// Redis.
    #[error("Redis: {0}")]
    Redis(#[from] fred::error::Error),
    /// The product could not be opened.
    #[error("the product: {0}")]
    Open(#[from] seckill::OpenError),
    /// The product failed.
    #[error("the product: {0}")]
    Shop(#[from] seckill::Error),
    /// A process or a file.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Something is not as it has to be; then no figure is printed.
    #[error("{0}")]
    Broken(String),
}

/// One comparison.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Compared {
    /// What is compared.
    pub name: String,
    /// In what.
    pub unit: String,
    /// The medians of the rounds: the bare program, the product, and the ratio.
    pub bare: f64,
    /// The product's.
    pub product: f64,
    /// Product to bare: the median of each round's.
    pub ratio: f64,
    /// The least ratio that the design asks for.
    pub budget: Option<f64>,
}

/// A figure without a counterpart.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// What came out.
    pub value: String,
    /// Whether it is as it was promised.
    pub kept: bool,
}

/// A point of a growth curve.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Point {
    /// Buyers of one sale, or sales.
    pub size: u64,
    /// Decisions or answers per second.
    pub per_second: f64,
    /// Bytes of Redis for each.
    pub bytes: Option<f64>,
}

/// How something grows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Curve {
    /// What grows, and what is measured.
    pub name: String,
    /// From small to large.
    pub points: Vec<Point>,
}

/// Everything that a run found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Findings {
    /// When, as a date in UTC.
    pub date: String,
    /// Cores of the machine.
    pub cores: usize,
    /// Rounds that the medians are of.
    pub rounds: usize,
    /// The comparisons.
    pub compared: Vec<Compared>,
    /// The single figures.
    pub figures: Vec<Figure>,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// Measures everything, prints it, and writes it where asked to.
///
/// # Errors
/// When something can't be measured: no answer, a wrong answer, a store that is away.
pub async fn measure(site: &mut Site, args: &Limits) -> Result<bool, LimitsError> {
    let mut run = Run::set(site, args).await?;
    let found = run.all().await;
    let cleared = run.clear().await;
    let found = found?;
    cleared?;
    pages::lines(&found).iter().for_each(|line| say(line));
    if let Some(folder) = &args.docs {
        pages::write(folder, &found)?;
        say(&format!(
            "written: limits.md, limits.json and limits.svg in {}",
            folder.display()
        ));
    }
    Ok(found.figures.iter().all(|figure| figure.kept))
}

/// A database beside the site's, for the bare programs and for backlogs.
struct Beside {
    url: String,
    server: String,
    name: String,
    pool: PgPool,
    /// The site's own database.
    site: PgPool,
    users: Vec<UserId>,
    admin: UserId,
}

struct Run<'a> {
    site: &'a mut Site,
    args: &'a Limits,
    admin: Admin,
    beside: Beside,
    redis: Redis,
    /// The product's buyers' cookies.
    cookies: Vec<HeaderValue>,
    progress: Progress,
}

impl<'a> Run<'a> {
    async fn set(site: &'a mut Site, args: &'a Limits) -> Result<Self, LimitsError> {
        let admin = site.admin(None).await?;
        let most = args.buyers.max(args.growth_buyers).max(args.opening);
        tell(&format!("making {most} buyers"));
        let buyers = site.buyers(most).await?;
        let cookies: Vec<HeaderValue> = buyers.iter().map(|buyer| buyer.cookie.clone()).collect();
        let redis = Redis::open(&site.stores.redis_url).await?;
        let server = args.place.stores.database_url.clone();
        let name = format!("{}_bare", site.stores.prefix);
        sql::database_create(&server, &name).await?;
        let url = sql::database_url(&server, &name);
        let beside = Beside::lay(site, url, server, name, args.buyers).await?;
        let steps = 2 * COMPARISONS * usize::from(args.rounds);
        Ok(Self {
            site,
            args,
            admin,
            beside,
            redis,
            cookies,
            progress: Progress::of(steps),
        })
    }

    async fn clear(self) -> Result<(), LimitsError> {
        self.redis.quit().await;
        self.beside.pool.close().await;
        self.beside.site.close().await;
        Ok(sql::database_drop(&self.beside.server, &self.beside.name).await?)
    }

    async fn all(&mut self) -> Result<Findings, LimitsError> {
        let mut found = Findings {
            date: jiff::Timestamp::now()
                .to_string()
                .chars()
                .take(10)
                .collect(),
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            rounds: self.args.rounds.into(),
            ..Findings::default()
        };
        {
            let _shown = self.progress.shown();
            found.compared = self.compare().await?;
        }
        tell("the opening second");
        found.figures.push(self.opening().await?);
        tell("ten times too many");
        found.figures.extend(self.overload().await?);
        tell("growth");
        found
            .curves
            .push(self.growth_http(&mut found.figures).await?);
        found.curves.push(self.growth_script().await?);
        found.curves.push(self.growth_sales().await?);
        Ok(found)
    }
}

/// Lines of the comparison.
const COMPARISONS: usize = 7;

/// The rounds of one line.
#[derive(Default)]
struct Line {
    bare: Vec<f64>,
    product: Vec<f64>,
}

impl Line {
    fn add(&mut self, bare: f64, product: f64) {
        self.bare.push(bare);
        self.product.push(product);
    }

    fn compared(self, name: &str, unit: &str, budget: Option<f64>) -> Compared {
        let ratios = self.bare.iter().zip(&self.product);
        let ratios = ratios.map(|(bare, product)| product / bare).collect();
        Compared {
            name: name.into(),
            unit: unit.into(),
            bare: median(self.bare),
            product: median(self.product),
            ratio: median(ratios),
            budget,
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn per_second(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

impl Run<'_> {
    /// Every line, bare and product in turn.
    async fn compare(&mut self) -> Result<Vec<Compared>, LimitsError> {
        let sold_out = self.sold_out_sale().await?;
        let home = self.page_calls("/");
        let sale = self.page_calls(&format!("/sales/{sold_out}"));
        let sizes = [
            self.bytes_of(&home[0]).await?,
            self.bytes_of(&sale[0]).await?,
        ];
        let mut lines: [Line; COMPARISONS] = Default::default();
        for _ in 0..self.args.rounds {
            let [post, script, whole, drain, alone, front, detail] = &mut lines;
            post.add(
                self.bare_post(Work::Post).await?,
                self.product_sold_out(sold_out).await?,
            );
            let (bare_decided, bare_persisted) = self.bare_whole().await?;
            let (decided, persisted) = self.product_whole().await?;
            script.add(bare_decided, decided);
            whole.add(bare_persisted, persisted);
            drain.add(self.bare_drain().await?, self.product_drain().await?);
            alone.add(self.bare_alone().await?, self.product_alone().await?);
            front.add(
                self.bare_page(sizes[0]).await?,
                self.product_page(&home).await?,
            );
            detail.add(
                self.bare_page(sizes[1]).await?,
                self.product_page(&sale).await?,
            );
        }
        let [post, script, whole, drain, alone, front, detail] = lines;
        Ok(vec![
            post.compared(
                "sold out, beside a POST without Redis",
                "answers/s",
                Some(0.9),
            ),
            script.compared("decided, while orders are written", "answers/s", None),
            whole.compared("the whole path, to the last row", "orders/s", Some(0.8)),
            drain.compared("a backlog drains", "orders/s", Some(0.8)),
            alone.compared("the decision alone, pipelined", "decisions/s", None),
            front.compared("the page /, for strangers", "pages/s", None),
            detail.compared("a sale's page, for strangers", "pages/s", None),
        ])
    }

    fn task(&self, work: Work, voucher: i64, entries: usize) -> Task {
        Task {
            work,
            database_url: self.beside.url.clone(),
            redis_url: self.site.stores.redis_url.clone(),
            // Under the run's own prefix, so that it is cleared away with it.
            prefix: format!("{}:bare", self.site.stores.prefix),
            voucher,
            entries,
        }
    }

    /// The bare buyers' calls.
    fn bare_calls(&self, voucher: i64) -> Arc<[Call]> {
        let call = Call::post("/api/buy", &[("voucher_id", &voucher.to_string())]);
        let users = self.beside.users.iter();
        users
            .map(|user| call.by(&cookie(&format!("user={user}"))))
            .collect()
    }

    /// The product's buyers' calls.
    fn calls(&self, voucher: VoucherId) -> Arc<[Call]> {
        let call = Call::post("/api/buy", &[("voucher_id", &voucher.to_string())]);
        self.cookies.iter().map(|cookie| call.by(cookie)).collect()
    }

    fn page_calls(&self, path: &str) -> Arc<[Call]> {
        [Call::get(path)].into()
    }

    async fn bytes_of(&self, call: &Call) -> Result<usize, LimitsError> {
        let answer = Connection::to(&self.site.origin)
            .send(call)
            .await
            .map_err(|error| LimitsError::Broken(error.to_string()))?;
        if answer.status.is_success() {
            Ok(answer.body.len())
        } else {
            Err(LimitsError::Broken(format!(
                "a page is answered with {}",
                answer.status
            )))
        }
    }

    /// Answers per second for a while, all of one kind.
    async fn steady(
        &self,
        origin: &Origin,
        calls: &Arc<[Call]>,
        kind: &str,
    ) -> Result<f64, LimitsError> {
        pump(origin, calls, CONNECTIONS, Until::Time(WARM_UP)).await;
        let pumped = pump(origin, calls, CONNECTIONS, Until::Time(self.args.window())).await;
        self.progress.step();
        all_of(&pumped, kind)?;
        Ok(pumped.rate())
    }

    async fn bare_post(&self, work: Work) -> Result<f64, LimitsError> {
        let program = Program::start(&self.task(work, 1, 0)).await?;
        let rate = self
            .steady(&program.origin, &self.bare_calls(1), "sold_out")
            .await;
        program.end().await?;
        rate
    }

    /// A sale whose one voucher is gone.
    async fn sold_out_sale(&mut self) -> Result<VoucherId, LimitsError> {
        let voucher = self.open_sale(1).await?;
        let calls: Arc<[Call]> = self.calls(voucher)[..1].into();
        let bought = pump(&self.site.origin, &calls, 1, Until::Calls(1)).await;
        all_of(&bought, "admitted")?;
        Ok(voucher)
    }

    async fn open_sale(&mut self, stock: i64) -> Result<VoucherId, LimitsError> {
        let now_ms = self.admin.now_ms().await?;
        let sale = self
            .admin
            .create_sale(stock, now_ms, now_ms + A_DAY_MS)
            .await?;
        self.admin.wait_until_open(sale.voucher_id).await?;
        Ok(sale.voucher_id)
    }

    async fn product_sold_out(&self, voucher: VoucherId) -> Result<f64, LimitsError> {
        // Not the one who has it.
        let calls: Arc<[Call]> = self.calls(voucher)[1..self.args.buyers as usize].into();
        self.steady(&self.site.origin, &calls, "sold_out").await
    }

    /// Answers per second, and orders per second to the last row.
    async fn bare_whole(&self) -> Result<(f64, f64), LimitsError> {
        let voucher = self.beside.voucher(self.beside.users.len()).await?;
        let task = self.task(Work::Whole, voucher, 0);
        bare::lay(&self.redis, &task, i64::MAX).await?;
        let program = Program::start(&task).await?;
        let calls = self.bare_calls(voucher);
        let begun = Instant::now();
        let pumped = pump(
            &program.origin,
            &calls,
            CONNECTIONS,
            Until::Calls(calls.len()),
        )
        .await;
        written(&self.beside.pool, voucher, calls.len()).await?;
        let took = begun.elapsed();
        self.progress.step();
        program.end().await?;
        all_of(&pumped, "admitted")?;
        Ok((pumped.rate(), per_second(calls.len(), took)))
    }

    async fn product_whole(&mut self) -> Result<(f64, f64), LimitsError> {
        let voucher = self.open_sale(i64::from(self.args.buyers)).await?;
        let calls: Arc<[Call]> = self.calls(voucher)[..self.args.buyers as usize].into();
        let begun = Instant::now();
        let pumped = pump(
            &self.site.origin,
            &calls,
            CONNECTIONS,
            Until::Calls(calls.len()),
        )
        .await;
        written(&self.beside.site, voucher.get(), calls.len()).await?;
        let took = begun.elapsed();
        self.progress.step();
        all_of(&pumped, "admitted")?;
        Ok((pumped.rate(), per_second(calls.len(), took)))
    }

    async fn bare_drain(&self) -> Result<f64, LimitsError> {
        let users = &self.beside.users;
        let voucher = self.beside.voucher(users.len()).await?;
        let task = self.task(Work::Drain, voucher, users.len());
        bare::lay(&self.redis, &task, i64::MAX).await?;
        let buy = Buy::open(self.redis.clone(), &task).await?;
        let admitted = decided(users.iter().copied(), async |user| {
            buy.decide(user.get()).await
        })
        .await?;
        same(admitted, users.len())?;
        let seconds = Program::drained(&task).await?;
        self.progress.step();
        Ok(per_second(users.len(), seconds))
    }

    async fn product_drain(&self) -> Result<f64, LimitsError> {
        let users = &self.beside.users;
        let task = self.task(Work::ProductDrain, 0, users.len());
        self.sold_by_domain(&task).await?;
        let seconds = Program::drained(&task).await?;
        self.progress.step();
        Ok(per_second(users.len(), seconds))
    }

    /// Sells to every buyer through the domain, without a consumer; decisions per second.
    async fn sold_by_domain(&self, task: &Task) -> Result<f64, LimitsError> {
        let users = &self.beside.users;
        let shop = bare::shop(task, 4).await?;
        let new = load::new_sale(users.len())?;
        let voucher = shop
            .create_voucher(self.beside.admin, new)
            .await?
            .voucher_id;
        let begun = Instant::now();
        let admitted = decided(users.iter().copied(), async |user| {
            let purchase = shop.buy(user, voucher, "").await?;
            Ok(purchase.outcome() == "admitted")
        })
        .await?;
        let took = begun.elapsed();
        same(admitted, users.len())?;
        shop.close().await;
        Ok(per_second(users.len(), took))
    }

    async fn bare_alone(&self) -> Result<f64, LimitsError> {
        let users = &self.beside.users;
        let task = self.task(Work::Script, 2, 0);
        bare::lay(&self.redis, &task, i64::MAX).await?;
        let buy = Buy::open(self.redis.clone(), &task).await?;
        let begun = Instant::now();
        let admitted = decided(users.iter().copied(), async |user| {
            buy.decide(user.get()).await
        })
        .await?;
        let took = begun.elapsed();
        self.progress.step();
        same(admitted, users.len())?;
        Ok(per_second(users.len(), took))
    }

    async fn product_alone(&self) -> Result<f64, LimitsError> {
        let task = self.task(Work::ProductDrain, 0, self.beside.users.len());
        let rate = self.sold_by_domain(&task).await?;
        // What was sold is written, so that it is not the next round's backlog.
        Program::drained(&task).await?;
        self.progress.step();
        Ok(rate)
    }

    async fn bare_page(&self, bytes: usize) -> Result<f64, LimitsError> {
        let program = Program::start(&self.task(Work::Page(bytes), 1, 0)).await?;
        let rate = self
            .steady(&program.origin, &self.page_calls("/"), "200")
            .await;
        program.end().await?;
        rate
    }

    async fn product_page(&self, calls: &Arc<[Call]>) -> Result<f64, LimitsError> {
        self.steady(&self.site.origin, calls, "200").await
    }
}

/// Fails unless every answer was of this kind.
fn all_of(pumped: &Pumped, kind: &str) -> Result<(), LimitsError> {
    if pumped.answers() > 0 && pumped.count(kind) == pumped.answers() {
        Ok(())
    } else {
        Err(LimitsError::Broken(format!(
            "every answer has to be {kind}, but they were {:?}",
            pumped.kinds
        )))
    }
}

fn same(admitted: usize, expected: usize) -> Result<(), LimitsError> {
    if admitted == expected {
        Ok(())
    } else {
        Err(LimitsError::Broken(format!(
            "{admitted} of {expected} were admitted"
        )))
    }
}

/// Decides for each user, many at a time; how many were admitted.
async fn decided<U>(
    users: impl IntoIterator<Item = U>,
    decide: impl AsyncFn(U) -> Result<bool, LimitsError>,
) -> Result<usize, LimitsError> {
    const AT_ONCE: usize = 512;
    let decide = &decide;
    let mut answers = stream::iter(users)
        .map(|user| decide(user))
        .buffer_unordered(AT_ONCE);
    let mut admitted = 0;
    while let Some(answer) = answers.next().await {
        admitted += usize::from(answer?);
    }
    Ok(admitted)
}

/// Waits until a voucher has so many rows.
async fn written(pool: &PgPool, voucher: i64, rows: usize) -> Result<(), LimitsError> {
    const LOOK: Duration = Duration::from_millis(5);
    const PATIENCE: Duration = Duration::from_secs(60);
    let rows = i64::try_from(rows).unwrap_or(i64::MAX);
    let begun = Instant::now();
    loop {
        // The stock is written with the rows, and is one row to read.
        let sold = sql::sold(pool, voucher).await?;
        if sold >= rows {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            return Err(LimitsError::Broken(format!(
                "{sold} of {rows} orders were written"
            )));
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn cookie(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("digits and letters")
}

impl Beside {
    async fn lay(
        site: &Site,
        url: String,
        server: String,
        name: String,
        buyers: u32,
    ) -> Result<Self, LimitsError> {
        let task = Task {
            work: Work::Script,
            database_url: url.clone(),
            redis_url: site.stores.redis_url.clone(),
            prefix: format!("{}:bare", site.stores.prefix),
            voucher: 0,
            entries: 0,
        };
        let shop = bare::migrated(&task).await?;
        let password = format!("{:032x}", rand::random::<u128>());
        let admin = shop.create_admin("limits", &password).await?.user_id;
        let users = shop.create_buyers(buyers).await?;
        shop.close().await;
        Ok(Self {
            pool: sql::pool(&url)?,
            site: sql::pool(&site.stores.database_url)?,
            users: users.into_iter().map(|user| user.user_id).collect(),
            url,
            server,
            name,
            admin,
        })
    }

    /// A voucher's row for a bare program.
    async fn voucher(&self, stock: usize) -> Result<i64, LimitsError> {
        let stock = i64::try_from(stock).unwrap_or(i64::MAX);
        Ok(sql::bare_voucher(&self.pool, stock).await?)
    }
}

/// A process that does a task.
struct Program {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    origin: Origin,
}

impl Program {
    fn spawn(task: &Task) -> Result<(Child, Lines<BufReader<ChildStdout>>), LimitsError> {
        let text =
            serde_json::to_string(task).map_err(|error| LimitsError::Broken(error.to_string()))?;
        let mut child = Command::new(std::env::current_exe()?)
            .arg("bare")
            .env(TASK, text)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .process_group(0)
            .spawn()?;
        let stdout = child
            .stdout
            .take()
            .ok_or_else(|| LimitsError::Broken("a pipe is missing".into()))?;
        Ok((child, BufReader::new(stdout).lines()))
    }

    async fn line(lines: &mut Lines<BufReader<ChildStdout>>) -> Result<String, LimitsError> {
        lines
            .next_line()
            .await?
            .ok_or_else(|| LimitsError::Broken("a bare program ended without a word".into()))
    }

    /// Starts one that serves.
    async fn start(task: &Task) -> Result<Self, LimitsError> {
        let (child, mut lines) = Self::spawn(task)?;
        let address = Self::line(&mut lines).await?;
        let origin = Origin::of(&address).map_err(LimitsError::Broken)?;
        Ok(Self {
            child,
            lines,
            origin,
        })
    }

    async fn end(mut self) -> Result<(), LimitsError> {
        drop(self.child.stdin.take());
        drop(self.lines);
        let status = self.child.wait().await?;
        if status.success() {
            Ok(())
        } else {
            Err(LimitsError::Broken(format!(
                "a bare program ended with {status}"
            )))
        }
    }

    /// Runs one that drains; how long it took.
    async fn drained(task: &Task) -> Result<Duration, LimitsError> {
        let (mut child, mut lines) = Self::spawn(task)?;
        let told = Self::line(&mut lines).await?;
        let seconds: f64 = told
            .parse()
            .map_err(|_| LimitsError::Broken(format!("no time: {told}")))?;
        child.wait().await?;
        Ok(Duration::from_secs_f64(seconds))
    }
}
