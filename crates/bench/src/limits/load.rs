//! The shop at its limits, alone: the opening second, ten times too many, and growth.

use std::sync::Arc;
use std::time::{Duration, Instant};

use seckill::{NewVoucher, UserId, VoucherForm, VoucherId};

use super::bare::{self, Task, Work};
use super::pump::{Pumped, Until, burst, pump};
use super::{
    A_DAY_MS, CONNECTIONS, Curve, Figure, LimitsError, Point, Run, all_of, decided, median,
    per_second, same, written,
};
use crate::client::Call;
use crate::report::tell;
use crate::sql;

/// In how long everybody's connection opens.
const SPREAD: Duration = Duration::from_millis(100);
/// How soon normal service has to be back.
const BACK_WITHIN: Duration = Duration::from_secs(5);
/// What is asked during the overload besides: a look at the memory each so often.
const LOOK: Duration = Duration::from_millis(200);
/// The most bytes of Redis that a buyer may take once the order is confirmed (design, section 8).
const BYTES_PER_BUYER: f64 = 150.0;

impl Run<'_> {
    /// Everybody's connection opens within a tenth of a second of the begin, and buys at once.
    pub(super) async fn opening(&mut self) -> Result<Figure, LimitsError> {
        let people = self.args.opening as usize;
        let (mut p99, mut worst, mut refused) = (Vec::new(), 0f64, 0);
        for _ in 0..self.args.rounds {
            let now_ms = self.admin.now_ms().await?;
            let stock = i64::from(self.args.opening);
            let sale = self
                .admin
                .create_sale(stock, now_ms + 1_500, now_ms + A_DAY_MS)
                .await?;
            let calls: Arc<[Call]> = self.calls(sale.voucher_id)[..people].into();
            self.admin.wait_until(sale.begin_ms).await?;
            let bought = burst(&self.site.origin, &calls, SPREAD).await;
            refused += people as u64 - bought.count("admitted");
            p99.push(bought.within_ms(99));
            worst = worst.max(bought.within_ms(100));
            self.confirmed(sale.voucher_id, people).await?;
        }
        Ok(Figure {
            name: format!("the opening second: {people} connections within 100 ms, all buying"),
            value: format!(
                "{refused} refused or lost in {} openings; p99 {:.0} ms from opening the connection to the answer, the slowest {worst:.0} ms",
                self.args.rounds,
                median(p99)
            ),
            kept: refused == 0,
        })
    }

    /// Waits until so many orders of a sale are rows.
    async fn confirmed(&self, voucher: VoucherId, orders: usize) -> Result<(), LimitsError> {
        let pool = sql::pool(&self.site.stores.database_url)?;
        let done = written(&pool, voucher.get(), orders).await;
        pool.close().await;
        done
    }

    /// Ten times as many requests under way as the server has seats, none waiting after a refusal.
    pub(super) async fn overload(&mut self) -> Result<Vec<Figure>, LimitsError> {
        let seats = self.args.seats as usize;
        self.site
            .restart(&[("SECKILL_MAX_CONCURRENT", &seats.to_string())])
            .await?;
        self.admin = self.site.admin(None).await?;
        let stock = i64::try_from(self.cookies.len()).unwrap_or(i64::MAX);
        let voucher = self.open_sale(stock).await?;
        let calls = self.calls(voucher);
        // Everybody has an order before, so that each answer asks Redis and none writes.
        let all = pump(
            &self.site.origin,
            &calls,
            CONNECTIONS,
            Until::Calls(calls.len()),
        )
        .await;
        all_of(&all, "admitted")?;
        self.confirmed(voucher, calls.len()).await?;
        let second = Until::Time(Duration::from_secs(1));
        let before = pump(&self.site.origin, &calls, CONNECTIONS, second).await;
        let rested = self.site.memory()?;

        let (origin, many) = (self.site.origin.clone(), Arc::clone(&calls));
        let time = Until::Time(Duration::from_secs(self.args.overload_seconds));
        let load = tokio::spawn(async move { pump(&origin, &many, 10 * seats, time).await });
        let mut memory = Vec::new();
        while !load.is_finished() {
            memory.push(self.site.memory()?);
            tokio::time::sleep(LOOK).await;
        }
        let loaded = load.await.expect("a load does not panic");
        let ended = Instant::now();
        let back = loop {
            let quarter = Until::Time(Duration::from_millis(250));
            let after = pump(&self.site.origin, &calls, CONNECTIONS, quarter).await;
            let well = after.answers() == after.count("already_ordered")
                && after.within_ms(99) <= 2.0 * before.within_ms(99) + 5.0;
            if well || ended.elapsed() > 4 * BACK_WITHIN {
                break well.then(|| ended.elapsed());
            }
        };
        self.site
            .restart(&[("SECKILL_MAX_CONCURRENT", "2048")])
            .await?;
        self.admin = self.site.admin(None).await?;
        Ok(vec![
            excess(&loaded, 10 * seats, self.args.overload_seconds),
            flat(rested, &memory),
            Figure {
                name: "normal service after it".into(),
                value: back.map_or("not back in 20 s".into(), |back| {
                    format!("back {:.2} s after the last request", back.as_secs_f64())
                }),
                kept: back.is_some_and(|back| back <= BACK_WITHIN),
            },
        ])
    }

    /// Buyers of one sale over HTTP, and what each costs Redis once confirmed.
    pub(super) async fn growth_http(
        &mut self,
        figures: &mut Vec<Figure>,
    ) -> Result<Curve, LimitsError> {
        let mut points = Vec::new();
        for size in decades(1_000, self.cookies.len()) {
            tell(&format!("{size} buyers over HTTP"));
            let before = self.redis.memory().await?;
            let voucher = self
                .open_sale(i64::try_from(size).unwrap_or(i64::MAX))
                .await?;
            let calls: Arc<[Call]> = self.calls(voucher)[..size].into();
            let bought = pump(&self.site.origin, &calls, CONNECTIONS, Until::Calls(size)).await;
            all_of(&bought, "admitted")?;
            self.confirmed(voucher, size).await?;
            points.push(Point {
                size: size as u64,
                per_second: bought.rate(),
                bytes: Some(each(self.redis.settled_memory().await?, before, size)),
            });
        }
        let bytes = points
            .last()
            .and_then(|point| point.bytes)
            .unwrap_or(f64::NAN);
        figures.push(Figure {
            name: "bytes of Redis per buyer, once the order is confirmed".into(),
            value: format!("{bytes:.0}, at most {BYTES_PER_BUYER:.0}"),
            kept: bytes <= BYTES_PER_BUYER,
        });
        Ok(Curve {
            name: "buyers of one sale over HTTP: decisions/s while orders are written".into(),
            points,
        })
    }

    /// Buyers of one sale by the script alone, orders still queued.
    pub(super) async fn growth_script(&mut self) -> Result<Curve, LimitsError> {
        let mut points = Vec::new();
        let most = usize::try_from(self.args.growth_script).unwrap_or(usize::MAX);
        for size in decades(1_000, most) {
            tell(&format!("{size} buyers by the script alone"));
            let task = Task {
                // A prefix of its own: nothing persists these, for their buyers have no accounts.
                prefix: format!("{}:grown{size}", self.site.stores.prefix),
                ..self.task(Work::Script, 0, 0)
            };
            let before = self.redis.memory().await?;
            let shop = bare::shop(&task, 4).await?;
            let voucher = self.sale_by_domain(&shop, size).await?;
            let users = 1..=i64::try_from(size).unwrap_or(i64::MAX);
            let begun = Instant::now();
            let admitted = decided(users, async |user| {
                let user = UserId::new(user).expect("positive");
                Ok(shop.buy(user, voucher, "").await?.outcome() == "admitted")
            })
            .await?;
            let took = begun.elapsed();
            same(admitted, size)?;
            points.push(Point {
                size: size as u64,
                per_second: per_second(size, took),
                bytes: Some(each(self.redis.memory().await?, before, size)),
            });
            shop.close().await;
            self.redis.forget(&task.prefix).await?;
            sql::release(&self.beside.pool, voucher).await?;
        }
        Ok(Curve {
            name: "buyers of one sale by the script alone, pipelined, orders still queued: decisions/s".into(),
            points,
        })
    }

    /// Many sales at once: each purchase is of the next one.
    pub(super) async fn growth_sales(&mut self) -> Result<Curve, LimitsError> {
        let mut points = Vec::new();
        let most = usize::try_from(self.args.growth_sales).unwrap_or(usize::MAX);
        let task = Task {
            database_url: self.site.stores.database_url.clone(),
            prefix: self.site.stores.prefix.clone(),
            ..self.task(Work::Script, 0, 0)
        };
        let shop = bare::shop(&task, 4).await?;
        let admin = sql::any_admin(&self.beside.site).await?;
        let mut sales: Vec<VoucherId> = Vec::new();
        for size in decades(1, most) {
            tell(&format!("{size} sales"));
            let before = (self.redis.settled_memory().await?, sales.len());
            while sales.len() < size {
                let new = new_sale(self.cookies.len())?;
                sales.push(shop.create_voucher(admin, new).await?.voucher_id);
            }
            let added = size - before.1;
            let bytes = each(self.redis.settled_memory().await?, before.0, added);
            // Each buyer once, of the next sale each.
            let count = self.args.buyers as usize;
            let calls: Arc<[Call]> = (0..count)
                .map(|n| {
                    let id = sales[n % size].to_string();
                    Call::post("/api/buy", &[("voucher_id", &id)]).by(&self.cookies[n])
                })
                .collect();
            let bought = pump(&self.site.origin, &calls, CONNECTIONS, Until::Calls(count)).await;
            let answered = bought.count("admitted") + bought.count("already_ordered");
            if answered != bought.answers() {
                return Err(LimitsError::Broken(format!("answers: {:?}", bought.kinds)));
            }
            points.push(Point {
                size: size as u64,
                per_second: bought.rate(),
                bytes: Some(bytes),
            });
        }
        shop.close().await;
        Ok(Curve {
            name: "sales at once, 10,000 buyers spread over them: answers/s (bytes: of Redis for a sale)".into(),
            points,
        })
    }

    async fn sale_by_domain(
        &self,
        shop: &seckill::Shop,
        stock: usize,
    ) -> Result<VoucherId, LimitsError> {
        let new = new_sale(stock)?;
        Ok(shop
            .create_voucher(self.beside.admin, new)
            .await?
            .voucher_id)
    }
}

/// A sale that is open for a day.
pub(super) fn new_sale(stock: usize) -> Result<NewVoucher, LimitsError> {
    let now = jiff::Timestamp::now();
    let end = now + jiff::SignedDuration::from_hours(24);
    let (stock, begin, end) = (stock.to_string(), now.to_string(), end.to_string());
    let form = VoucherForm {
        title: "Load test",
        subtitle: "Made by seckill-bench",
        pay_cents: "4900",
        value_cents: "9900",
        stock: &stock,
        begin: &begin,
        end: &end,
        ..VoucherForm::default()
    };
    Ok(NewVoucher::parse(&form, now.as_millisecond())?)
}

/// The powers of ten between these, both counted.
fn decades(least: usize, most: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(least), |size| size.checked_mul(10))
        .take_while(move |size| *size <= most)
}

/// What each of so many added.
#[expect(clippy::cast_precision_loss, reason = "bytes of a machine")]
fn each(after: u64, before: u64, count: usize) -> f64 {
    (after as f64 - before as f64) / count.max(1) as f64
}

fn excess(loaded: &Pumped, connections: usize, seconds: u64) -> Figure {
    let (taken, refused) = (loaded.count("already_ordered"), loaded.count("503"));
    let others = loaded.answers() - taken - refused;
    Figure {
        name: format!("ten times too many: {connections} requests under way for {seconds} s"),
        value: format!(
            "{taken} answered, {refused} refused with 503, {others} otherwise; p50 {:.0} ms, p99 {:.0} ms over all",
            loaded.within_ms(50),
            loaded.within_ms(99)
        ),
        kept: taken > 0 && refused > 0 && others == 0,
    }
}

/// Flat: what it has after a third of the time it has at the end.
fn flat(rested: u64, memory: &[u64]) -> Figure {
    let mb = |bytes: u64| bytes / 1_000_000;
    let settled = memory.get(memory.len() / 3).copied().unwrap_or(0);
    let most = memory.iter().copied().max().unwrap_or(0);
    let last = memory.last().copied().unwrap_or(0);
    Figure {
        name: "the server's memory meanwhile".into(),
        value: format!(
            "{} MB before, {} MB after a third of the time, {} MB at the end, never above {} MB",
            mb(rested),
            mb(settled),
            mb(last),
            mb(most)
        ),
        kept: last <= settled + settled / 10,
    }
}
