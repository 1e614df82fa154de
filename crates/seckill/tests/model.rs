//! A model test: whatever is done in whatever order, the shop does what a model of a few dozen
//! lines does. The model knows who holds an order, how many units there are, and whether the
//! sale is paused; crashes, claims, losses and flushes are nothing to it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fred::interfaces::ClientLike;
use fred::types::{ClusterHash, CustomCommand, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use seckill::{
    Consumer, ConsumerConfig, DeadLetter, Error, Lane, OrderId, Page, Purchase, Reconciler,
    SaleState, Settled, Shop, UserId, VoucherId,
};
use testkit::{DEADLINE, Stage, report, scale, unique};

/// Users of a case; those from `GHOSTS` on have no account until they are healed, so that the
/// database refuses their orders.
const USERS: usize = 8;
const GHOSTS: usize = 4;

/// What can be done to a shop.
#[derive(Debug, Clone)]
enum Op {
    Buy(usize),
    Consume,
    /// A consumer reads so many entries and dies.
    CrashHolding(usize),
    /// The consumer that works dies where it is.
    CrashWorker,
    Claim,
    /// A user's account comes, so that orders of it can be written.
    Heal(usize),
    /// An entry that Redis never admitted.
    Forge(usize),
    Replay(usize),
    Discard(usize),
    AddStock(i64),
    Pause,
    Resume,
    FlushScripts,
    LoseStream,
    LoseGroup,
    LoseDeadLetters,
    Reconcile,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        8 => (0..USERS).prop_map(Op::Buy),
        5 => Just(Op::Consume),
        2 => (1..4_usize).prop_map(Op::CrashHolding),
        1 => Just(Op::CrashWorker),
        2 => Just(Op::Claim),
        1 => (GHOSTS..USERS).prop_map(Op::Heal),
        1 => (0..USERS).prop_map(Op::Forge),
        2 => (0..4_usize).prop_map(Op::Replay),
        2 => (0..4_usize).prop_map(Op::Discard),
        1 => (1..3_i64).prop_map(Op::AddStock),
        1 => Just(Op::Pause),
        2 => Just(Op::Resume),
        1 => Just(Op::FlushScripts),
        1 => Just(Op::LoseStream),
        1 => Just(Op::LoseGroup),
        1 => Just(Op::LoseDeadLetters),
        2 => Just(Op::Reconcile),
    ];
    vec(op, 15..=30)
}

/// What the shop has to be.
#[derive(Debug)]
struct Model {
    total: i64,
    paused: bool,
    /// User → order; a discarded one holds none.
    holds: BTreeMap<i64, i64>,
}

impl Model {
    fn left(&self) -> i64 {
        self.total - i64::try_from(self.holds.len()).expect("few")
    }

    /// What a purchase is answered, but for the id of a new order.
    fn buy(&self, user: i64) -> Expected {
        match self.holds.get(&user) {
            Some(order) => Expected::Already(*order),
            None if self.paused => Expected::Paused,
            None if self.left() <= 0 => Expected::SoldOut,
            None => Expected::New,
        }
    }

    fn state(&self) -> SaleState {
        match (self.paused, self.left()) {
            (true, _) => SaleState::Paused,
            (false, 0) => SaleState::SoldOut,
            _ => SaleState::Open,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Already(i64),
    New,
    Paused,
    SoldOut,
}

/// A shop with a sale of its own on the stage's database.
struct Case<'a> {
    stage: &'a Stage,
    shop: Shop,
    prefix: String,
    admin: UserId,
    sale: VoucherId,
    users: Vec<i64>,
    worker: Option<Consumer>,
    model: Model,
    forged: i64,
    /// Dead letters settled by hand.
    settled: usize,
}

#[test]
fn the_shop_does_what_the_model_does() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let stage = runtime.block_on(Stage::new());
    let cases = 40 * scale();
    let config = Config {
        cases,
        max_shrink_iters: 300,
        failure_persistence: None,
        ..Config::default()
    };
    let (steps, orders, letters) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&(ops(), 1..6_i64), |(ops, stock)| {
        steps.set(steps.get() + ops.len());
        let (sold, settled) = runtime.block_on(run(&stage, stock, ops));
        orders.set(orders.get() + sold);
        letters.set(letters.get() + settled);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    report(
        "model test",
        &format!(
            "{cases} cases, {} operations, {} orders, {} dead letters settled, each as in the model",
            steps.get(),
            orders.get(),
            letters.get()
        ),
    );
}

async fn run(stage: &Stage, stock: i64, ops: Vec<Op>) -> (usize, usize) {
    let mut case = Case::new(stage, stock).await;
    case.check("the beginning").await;
    for op in ops {
        let what = format!("{op:?}");
        case.apply(op).await;
        case.check(&what).await;
    }
    case.come_to_rest().await
}

impl<'a> Case<'a> {
    async fn new(stage: &'a Stage, stock: i64) -> Self {
        // Sales of earlier cases are over, for this shop's keys as well.
        sqlx::query("update voucher set begin_ms = 0, end_ms = 1, released = true")
            .execute(&stage.pool)
            .await
            .expect("updated");
        let mut config = stage.config.clone();
        config.prefix = unique("model");
        (config.redis_connections, config.pg_connections) = (1, 2);
        let prefix = config.prefix.clone();
        let shop = Shop::open(config).await.expect("valid settings");
        shop.wait_until_selling(DEADLINE)
            .await
            .expect("safe ground");
        let admin = stage.admin().await.user_id;
        let form = seckill::VoucherForm {
            title: "Lunch",
            pay_cents: "1",
            value_cents: "2",
            stock: &stock.to_string(),
            begin: "2020-01-01T00:00:00Z",
            end: "2090-01-01T00:00:00Z",
            ..seckill::VoucherForm::default()
        };
        let new = seckill::NewVoucher::parse(&form, 0).expect("a valid form");
        let sale = shop.create_voucher(admin, new).await.expect("created");
        let mut users: Vec<i64> = Vec::new();
        let ghosts = u32::try_from(USERS - GHOSTS).expect("few");
        for user in stage
            .buyers(u32::try_from(GHOSTS).expect("few") + ghosts)
            .await
        {
            users.push(user.user_id.get());
        }
        let case = Self {
            stage,
            shop,
            prefix,
            admin,
            sale: sale.voucher_id,
            users,
            worker: None,
            model: Model {
                total: stock,
                paused: false,
                holds: BTreeMap::new(),
            },
            forged: 0,
            settled: 0,
        };
        sqlx::query("delete from user_account where user_id = any($1)")
            .bind(&case.users[GHOSTS..])
            .execute(&stage.pool)
            .await
            .expect("deleted");
        case
    }

    fn key(&self, rest: &str) -> String {
        format!("{}:{{0}}:{rest}", self.prefix)
    }

    /// A command whose failure (no stream, no group) is nothing here.
    async fn redis(&self, words: &[&str]) {
        let command = CustomCommand::new(words[0], ClusterHash::FirstKey, false);
        let args: Vec<String> = words[1..].iter().map(|word| (*word).to_owned()).collect();
        let _: Result<Value, _> = self.stage.redis.custom(command, args).await;
    }

    async fn apply(&mut self, op: Op) {
        match op {
            Op::Buy(user) => self.buy(self.users[user]).await,
            Op::Consume => self.consume().await,
            Op::CrashHolding(count) => {
                let (orders, name) = (self.key("orders"), unique("dead"));
                let count = count.to_string();
                self.redis(&[
                    "XREADGROUP",
                    "GROUP",
                    "orders",
                    &name,
                    "COUNT",
                    &count,
                    "STREAMS",
                    &orders,
                    ">",
                ])
                .await;
            }
            Op::CrashWorker => drop(self.worker.take()),
            Op::Claim => self.claim().await,
            Op::Heal(user) => self.heal(self.users[user]).await,
            Op::Forge(user) => self.forge(self.users[user]).await,
            Op::Replay(n) => self.replay(n).await,
            Op::Discard(n) => self.discard(n).await,
            Op::AddStock(units) => {
                let added = self
                    .shop
                    .add_stock(self.admin, self.sale, units, None)
                    .await;
                added.expect("added");
                self.model.total += units;
            }
            Op::Pause => {
                self.shop
                    .pause(self.admin, self.sale)
                    .await
                    .expect("paused");
                self.model.paused = true;
            }
            Op::Resume => {
                self.shop
                    .resume(self.admin, self.sale)
                    .await
                    .expect("resumed");
                self.model.paused = false;
            }
            Op::FlushScripts => self.redis(&["SCRIPT", "FLUSH"]).await,
            Op::LoseStream => self.redis(&["DEL", &self.key("orders")]).await,
            Op::LoseGroup => {
                self.redis(&["XGROUP", "DESTROY", &self.key("orders"), "orders"])
                    .await
            }
            Op::LoseDeadLetters => self.redis(&["DEL", &self.key("dead")]).await,
            Op::Reconcile => self.reconcile().await,
        }
    }

    async fn buy(&mut self, user: i64) {
        let expected = self.model.buy(user);
        let id = UserId::new(user).expect("positive");
        let answer = self.shop.buy(id, self.sale, "").await.expect("answered");
        let told = match answer {
            Purchase::Admitted { order_id } => {
                self.model.holds.insert(user, order_id.get());
                Expected::New
            }
            Purchase::AlreadyOrdered { order_id } => Expected::Already(order_id.get()),
            Purchase::Paused => Expected::Paused,
            Purchase::SoldOut => Expected::SoldOut,
            other => panic!("{other:?}"),
        };
        assert_eq!(told, expected);
    }

    async fn consume(&mut self) {
        if self.worker.is_none() {
            let config = ConsumerConfig {
                batch: 3,
                block: Duration::from_millis(1),
                claim_after: Duration::from_millis(40),
                max_attempts: 1,
            };
            let opened = Consumer::open(&self.shop, Lane(0), &unique("worker"), config).await;
            self.worker = Some(opened.expect("a consumer"));
        }
        let worker = self.worker.as_mut().expect("just opened");
        // The first step may only find that there is no group and make one.
        let mut rounds = 0;
        while rounds < 2 {
            match worker.step().await {
                Ok(step) => {
                    assert!(!step.waited, "PostgreSQL is there");
                    rounds += 1;
                }
                // A new consumer's connection may still be on its way.
                Err(Error::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(2)).await,
                Err(error) => panic!("a step failed: {error}"),
            }
        }
    }

    /// Steps until nobody dead holds anything.
    async fn claim(&mut self) {
        let began = Instant::now();
        loop {
            self.consume().await;
            let workers = self.shop.overview().await.workers;
            if !workers
                .iter()
                .any(|worker| !worker.alive && worker.pending > 0)
            {
                return;
            }
            assert!(began.elapsed() < DEADLINE, "not claimed: {workers:?}");
        }
    }

    async fn heal(&self, user: i64) {
        sqlx::query(
            "insert into user_account (user_id, username, username_key) overriding system value
             values ($1, $2, $2) on conflict do nothing",
        )
        .bind(user)
        .bind(unique("healed"))
        .execute(&self.stage.pool)
        .await
        .expect("inserted");
    }

    async fn forge(&mut self, user: i64) {
        self.forged += 1;
        let order = (user * 1_000 + self.forged).to_string();
        let (user, voucher) = (user.to_string(), self.sale.to_string());
        let fields = [
            "v",
            "1",
            "order_id",
            &order,
            "user_id",
            &user,
            "voucher_id",
            &voucher,
            "admitted_ms",
            "5",
        ];
        let stream = self.key("orders");
        let words: Vec<&str> = ["XADD", &stream, "*"].into_iter().chain(fields).collect();
        self.redis(&words).await;
    }

    async fn letters(&self) -> Vec<DeadLetter> {
        let letters = self.shop.dead_letters(None, &Page::first()).await;
        letters.expect("listed").items
    }

    /// The letter's user and order, and whether that user holds this order.
    fn is_held(&self, letter: &DeadLetter) -> (i64, i64, bool) {
        let user = letter.user_id.parse().expect("a whole entry");
        let order = letter.order_id.parse().expect("a whole entry");
        (user, order, self.model.holds.get(&user) == Some(&order))
    }

    async fn replay(&mut self, n: usize) {
        let letters = self.letters().await;
        let Some(letter) = letters.get(n % letters.len().max(1)) else {
            return;
        };
        let (user, order, held) = self.is_held(letter);
        self.settled += 1;
        let settled = self.shop.replay(self.admin, letter.entry_id).await;
        if held {
            assert_eq!(settled.expect("settled"), Settled::Replayed);
        } else if self.model.left() > 0 && !self.model.holds.contains_key(&user) {
            // A forged one becomes an order by an operator's word, and takes its unit.
            assert_eq!(settled.expect("settled"), Settled::Replayed);
            self.model.holds.insert(user, order);
        } else {
            assert!(matches!(settled, Err(Error::Conflict(_))), "{settled:?}");
        }
    }

    async fn discard(&mut self, n: usize) {
        let letters = self.letters().await;
        let Some(letter) = letters.get(n % letters.len().max(1)) else {
            return;
        };
        let (user, _, held) = self.is_held(letter);
        self.settled += 1;
        let settled = self.shop.discard(self.admin, letter.entry_id).await;
        assert_eq!(settled.expect("settled"), Settled::Discarded);
        if held {
            self.model.holds.remove(&user);
        }
    }

    async fn reconcile(&self) {
        let mut reconciler = Reconciler::new(&self.shop);
        let done = reconciler.step().await.expect("both stores answer");
        assert!(!done.skipped && done.drift.is_empty(), "{done:?}");
        assert!(done.loaded.is_empty(), "nothing was lost: {done:?}");
        reconciler.close().await;
    }

    /// What holds after every step.
    async fn check(&self, after: &str) {
        let (model, sale) = (
            &self.model,
            self.shop.sale(self.sale).await.expect("the sale"),
        );
        assert_eq!(
            (sale.total, sale.stock, sale.state),
            (model.total, model.left(), model.state()),
            "after {after}: {model:?}"
        );
        let overview = self.shop.overview().await;
        let figures = overview.sales.iter().find(|s| s.voucher_id == self.sale);
        let figures = figures.expect("it is held");
        assert!(figures.balanced, "after {after}: {figures:?}");
        let rows = self.stage.rows(self.sale).await;
        for (user, order) in &rows {
            assert_eq!(model.holds.get(user), Some(order), "after {after}: a row");
        }
        let rows = i64::try_from(rows.len()).expect("few");
        assert!(rows <= model.total, "after {after}: oversold");
        assert_eq!(figures.confirmed, rows, "after {after}: {figures:?}");
    }

    /// Everything is brought to its end: then exactly the holders have rows. Tells how many, and how many
    /// dead letters were settled.
    async fn come_to_rest(mut self) -> (usize, usize) {
        for user in &self.users[GHOSTS..] {
            self.heal(*user).await;
        }
        let began = Instant::now();
        while self.stage.rows(self.sale).await.len() < self.model.holds.len() {
            assert!(began.elapsed() < DEADLINE, "no rest: {:?}", self.model);
            self.reconcile().await;
            self.claim().await;
            for letter in self.letters().await {
                if self.is_held(&letter).2 {
                    let settled = self.shop.replay(self.admin, letter.entry_id).await;
                    assert_eq!(settled.expect("settled"), Settled::Replayed);
                }
            }
        }
        self.consume().await;
        self.check("the end").await;
        let rows = self.stage.rows(self.sale).await;
        assert_eq!(
            rows.into_iter().collect::<BTreeMap<_, _>>(),
            self.model.holds
        );
        for (user, order) in &self.model.holds {
            let (user, order) = (UserId::new(*user), OrderId::new(*order));
            let found = self
                .shop
                .order(user.expect("positive"), order.expect("positive"));
            found.await.expect("its buyer sees it");
        }
        if let Some(worker) = self.worker.take() {
            worker.close().await;
        }
        self.shop.close().await;
        (self.model.holds.len(), self.settled)
    }
}
