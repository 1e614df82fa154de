//! What is done to a site: a whole sale, one user at once, and the window from outside.

use std::sync::Arc;

use seckill::VoucherId;

use crate::admin::Admin;
use crate::args::{Buy, OneUser, Place, Window};
use crate::audit::{Check, Facts, checks};
use crate::facts::{Books, FactsError};
use crate::ledger::{Ledger, LedgerError};
use crate::load::{self, Buyer, Load, Tally};
use crate::record::Record;
use crate::report::{self, Progress, Report, Round, say};
use crate::site::{Site, SiteError};

/// How long a sale is open; no run lasts that long.
const A_DAY_MS: i64 = 86_400_000;

/// Why a scenario could not be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The site is not as it has to be.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The stores.
    #[error(transparent)]
    Facts(#[from] FactsError),
}

/// A site with everything that a scenario needs.
pub struct Stage<'a> {
    site: &'a Site,
    place: &'a Place,
    ledger: Ledger,
    books: Books,
    admin: Admin,
}

impl<'a> Stage<'a> {
    /// Sets a scenario up.
    ///
    /// # Errors
    /// When the site, the stores or the ledger can't be used.
    pub async fn set(
        site: &'a Site,
        place: &'a Place,
        ledger: Ledger,
    ) -> Result<Self, ScenarioError> {
        let books = Books::open(&site.stores).await?;
        let admin = site.admin(place.admin.as_deref()).await?;
        Ok(Self {
            site,
            place,
            ledger,
            books,
            admin,
        })
    }

    /// Many buyers press the button several times each.
    ///
    /// # Errors
    /// When the scenario could not be played to its end.
    pub async fn buy(&mut self, args: &Buy) -> Result<Report, ScenarioError> {
        let Buy {
            buyers,
            requests_per_buyer,
            concurrency,
            stock,
            rounds,
            ..
        } = *args;
        let title = format!(
            "{buyers} buyers, {requests_per_buyer} requests each, {concurrency} at a time, stock {stock}"
        );
        let mut report = Report {
            scenario: "buy",
            title,
            ..Report::default()
        };
        let buyers = self.site.buyers(buyers).await?;
        let count = u32::try_from(buyers.len()).unwrap_or(u32::MAX);
        for round in 1..=rounds {
            let voucher = self.open_sale(stock).await?;
            let order = load::shuffled(
                count,
                requests_per_buyer,
                args.seed.wrapping_add(u64::from(round)),
            );
            let tally = self.press(&buyers, order, voucher, concurrency).await?;
            let figures = self.settled(tally, voucher).await?;
            say(&format!("{} (round {round} of {rounds})", report.title));
            figures.lines().iter().for_each(|line| say(line));
            report.rounds.push(figures);
        }
        if rounds > 1 {
            say(&format!("medians of {rounds} rounds"));
            say(&report::row("", &report::medians(&report.rounds)));
        }
        self.audit(&mut report, |_| Vec::new()).await?;
        Ok(report)
    }

    /// One user sends many requests at once.
    ///
    /// # Errors
    /// When the scenario could not be played to its end.
    pub async fn one_user(&mut self, args: &OneUser) -> Result<Report, ScenarioError> {
        let OneUser {
            parallel, stock, ..
        } = *args;
        let title = format!("one user, {parallel} requests at once, stock {stock}");
        let mut report = Report {
            scenario: "one-user",
            title,
            ..Report::default()
        };
        let buyers = self.site.buyers(1).await?;
        let voucher = self.open_sale(stock).await?;
        let tally = self
            .press(&buyers, vec![0; parallel as usize], voucher, parallel)
            .await?;
        let told = ["admitted", "already_ordered"]
            .map(|name| tally.outcomes.get(name).copied().unwrap_or(0));
        self.show(&mut report, tally, voucher).await?;
        let left = self.admin.sale(voucher).await?.stock;
        self.audit(&mut report, |facts| {
            let (ids, answers) = (facts.record.acknowledged.len(), told[0] + told[1]);
            let one = Check {
                name: "one id in all the answers",
                passed: ids == 1 && answers == u64::from(parallel),
                figures: format!("{ids} id in {answers} of {parallel} answers"),
            };
            vec![one, stock_is(facts, left, stock - 1)]
        })
        .await?;
        Ok(report)
    }

    /// Purchases before the begin and after the end.
    ///
    /// # Errors
    /// When the scenario could not be played to its end.
    pub async fn window(&mut self, args: &Window) -> Result<Report, ScenarioError> {
        let stock = args.stock;
        let title = format!("1 s before the begin and 1 s after the end, stock {stock}");
        let mut report = Report {
            scenario: "window",
            title,
            ..Report::default()
        };
        let buyers = self.site.buyers(1).await?;
        let now_ms = self.admin.now_ms().await?;
        let sale = self
            .admin
            .create_sale(stock, now_ms + 3_000, now_ms + 4_000)
            .await?;
        self.admin.wait_until(sale.begin_ms - 1_000).await?;
        let before = self.press(&buyers, vec![0], sale.voucher_id, 1).await?;
        let at_ms = self.admin.now_ms().await?;
        self.admin.wait_until(sale.end_ms + 1_000).await?;
        let after = self.press(&buyers, vec![0], sale.voucher_id, 1).await?;
        let left = self.admin.sale(sale.voucher_id).await?.stock;
        let early = refused(
            "before the begin: not started",
            &before,
            "not_started",
            at_ms < sale.begin_ms,
        );
        let late = refused("after the end: ended", &after, "ended", true);
        say(&report.title);
        self.audit(&mut report, |facts| {
            vec![early, late, stock_is(facts, left, stock)]
        })
        .await?;
        Ok(report)
    }

    /// Lets go of the stores.
    pub async fn clear(self) {
        self.books.close().await;
    }

    async fn open_sale(&mut self, stock: i64) -> Result<VoucherId, ScenarioError> {
        let now_ms = self.admin.now_ms().await?;
        let sale = self
            .admin
            .create_sale(stock, now_ms, now_ms + A_DAY_MS)
            .await?;
        self.admin.wait_until_open(sale.voucher_id).await?;
        Ok(sale.voucher_id)
    }

    async fn press(
        &self,
        buyers: &Arc<[Buyer]>,
        order: Vec<u32>,
        voucher: VoucherId,
        concurrency: u32,
    ) -> Result<Tally, ScenarioError> {
        let progress = Progress::of(order.len());
        let _shown = progress.shown();
        let (origin, buyers) = (self.site.origin.clone(), Arc::clone(buyers));
        let load = Load {
            origin,
            buyers,
            order,
            voucher,
            concurrency,
            retries: self.place.retries,
        };
        Ok(load::run(load, &self.ledger, &progress).await?)
    }

    /// Waits until a sale's orders are in the database, and takes the figures.
    async fn settled(&self, tally: Tally, voucher: VoucherId) -> Result<Round, ScenarioError> {
        let drained = self.books.drained(&[voucher].into()).await;
        Ok(Round::of(tally, self.books.span(voucher).await?, drained))
    }

    async fn show(
        &self,
        report: &mut Report,
        tally: Tally,
        voucher: VoucherId,
    ) -> Result<(), ScenarioError> {
        let figures = self.settled(tally, voucher).await?;
        say(&report.title);
        figures.lines().iter().for_each(|line| say(line));
        report.rounds.push(figures);
        Ok(())
    }

    /// Audits the whole run, with the scenario's own checks first.
    async fn audit(
        &self,
        report: &mut Report,
        own: impl FnOnce(&Facts) -> Vec<Check>,
    ) -> Result<(), ScenarioError> {
        let facts = self.books.facts(Record::read(self.ledger.path())?).await?;
        report.checks = own(&facts);
        if !report.rounds.is_empty() {
            report.checks.push(no_errors(&report.rounds));
        }
        report.checks.extend(checks(&facts));
        Ok(())
    }
}

/// Audits a ledger that is there already.
///
/// # Errors
/// When the ledger or one of the stores can't be read.
pub async fn audit(args: &crate::args::Audit) -> Result<Report, ScenarioError> {
    let record = Record::read(&args.ledger)?;
    let title = format!(
        "{}: {} attempts, {} without an answer",
        args.ledger.display(),
        record.attempts,
        record.unanswered
    );
    say(&title);
    let books = Books::open(&args.stores).await?;
    let facts = books.facts(record).await;
    books.close().await;
    Ok(Report {
        scenario: "audit",
        title,
        checks: checks(&facts?),
        ..Report::default()
    })
}

/// Refusals of business are answers, and 503 and 429 are tried again; anything else is a fault.
fn no_errors(rounds: &[Round]) -> Check {
    let wrong = rounds.iter().flat_map(|round| &round.failures);
    let breaches: Vec<String> = wrong
        .map(|(what, count)| format!("{count} times {what}"))
        .collect();
    let answered: u64 = rounds
        .iter()
        .flat_map(|round| round.outcomes.values())
        .sum();
    Check::of("no request fails", format!("{answered} decided"), &breaches)
}

fn stock_is(facts: &Facts, redis: i64, expected: i64) -> Check {
    let postgres: i64 = facts.stocks.iter().map(|sale| sale.left).sum();
    Check {
        name: "the stock is what it has to be",
        passed: redis == expected && postgres == expected,
        figures: format!("{redis} in Redis, {postgres} in PostgreSQL, {expected} expected"),
    }
}

fn refused(name: &'static str, tally: &Tally, outcome: &str, in_time: bool) -> Check {
    let only = tally.outcomes.get(outcome) == Some(&1);
    let late = if in_time {
        ""
    } else {
        ", but the answer came too late to tell"
    };
    Check {
        name,
        passed: only && in_time,
        figures: format!("{:?}{late}", tally.outcomes),
    }
}
