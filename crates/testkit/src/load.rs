//! Buyers and workers that go on while a test breaks what they stand on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use seckill::{Consumer, ConsumerConfig, Error, Lane, Purchase, Reconciler, Shop, User, VoucherId};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::{DEADLINE, unique};

/// Pause of a buyer before the button is pressed again, and of a worker after a failure.
const AGAIN: Duration = Duration::from_millis(20);

/// How many times the size that a fault's test has in CI (`SECKILL_FAULTS_SCALE`, 1).
pub fn scale() -> u32 {
    let text = std::env::var("SECKILL_FAULTS_SCALE").unwrap_or_default();
    text.parse().unwrap_or(1).max(1)
}

/// Consumers of every lane and a reconciler, as a process runs them.
pub struct Workers {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts consumers for these lanes, `each` of them, and one reconciler.
    pub async fn start(shop: &Shop, lanes: &[Lane], each: usize) -> Self {
        let stop = watch::Sender::new(false);
        let mut tasks = Vec::new();
        for lane in lanes {
            for _ in 0..each {
                let config = ConsumerConfig {
                    block: Duration::from_millis(100),
                    claim_after: Duration::from_millis(1_000),
                    ..ConsumerConfig::default()
                };
                let consumer = Consumer::open(shop, *lane, &unique("worker"), config)
                    .await
                    .expect("a consumer");
                tasks.push(tokio::spawn(consume(consumer, stop.subscribe())));
            }
        }
        tasks.push(tokio::spawn(reconcile(
            Reconciler::new(shop),
            stop.subscribe(),
        )));
        Self { stop, tasks }
    }

    /// Waits until every lane is empty and nothing is in flight.
    pub async fn drained(&self, shop: &Shop) {
        let began = Instant::now();
        loop {
            let overview = shop.overview().await;
            let lanes = overview
                .lanes
                .iter()
                .all(|lane| lane.pending == 0 && lane.stream_length == 0);
            let sales = overview.sales.iter().all(|sale| sale.in_flight == 0);
            if lanes && sales && !overview.lanes.is_empty() {
                return;
            }
            assert!(began.elapsed() < DEADLINE, "not drained: {overview:?}");
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Stops all in order; fails if one of them did.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        for task in self.tasks {
            task.await.expect("no worker failed");
        }
    }
}

async fn consume(mut consumer: Consumer, stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        match consumer.step().await {
            Ok(step) if !step.waited => {}
            Ok(_) => tokio::time::sleep(AGAIN).await,
            Err(error) if error.is_transient() => tokio::time::sleep(AGAIN).await,
            Err(error) => panic!("a step failed: {error}"),
        }
    }
    consumer.close().await;
}

async fn reconcile(mut reconciler: Reconciler, stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        match reconciler.step().await {
            Ok(_) => {}
            Err(error) if error.is_transient() => {}
            Err(error) => panic!("the reconciler failed: {error}"),
        }
        tokio::time::sleep(AGAIN * 5).await;
    }
    reconciler.close().await;
}

/// What a crowd was told so far.
#[derive(Debug, Default)]
struct Told {
    /// (voucher, user) → the order id that the buyer was given.
    orders: Mutex<HashMap<(i64, i64), i64>>,
    acknowledged: AtomicUsize,
    unavailable: AtomicU64,
    closed: AtomicU64,
    sold_out: AtomicU64,
    /// Answers that contradicted an earlier one, and errors that no client may see.
    wrong: Mutex<Vec<String>>,
    slowest_us: AtomicU64,
    give_up: AtomicBool,
}

/// Buyers that press the button until they have an order or it is sold out.
pub struct Crowd {
    told: Arc<Told>,
    tasks: Vec<JoinHandle<()>>,
}

/// What a crowd was told in all.
#[derive(Debug)]
pub struct Outcome {
    /// (voucher, user) → order id.
    pub orders: HashMap<(i64, i64), i64>,
    /// Answers "unavailable".
    pub unavailable: u64,
    /// Answers "paused" or "not loaded".
    pub closed: u64,
    /// Answers "sold out".
    pub sold_out: u64,
    /// The answer that took longest.
    pub slowest: Duration,
}

impl Crowd {
    /// Sends these buyers, each once through `vouchers` in turn, `at_once` of them at a time.
    pub fn start(
        shops: &[Shop],
        vouchers: &[VoucherId],
        buyers: Vec<User>,
        at_once: usize,
    ) -> Self {
        let told = Arc::new(Told::default());
        let buyers = Arc::new(buyers);
        let next = Arc::new(AtomicUsize::new(0));
        let tasks = (0..at_once)
            .map(|i| {
                let shop = shops[i % shops.len()].clone();
                let vouchers = vouchers.to_vec();
                let (told, buyers, next) =
                    (Arc::clone(&told), Arc::clone(&buyers), Arc::clone(&next));
                tokio::spawn(async move {
                    loop {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        let Some(buyer) = buyers.get(n) else { return };
                        press(&shop, vouchers[n % vouchers.len()], buyer, &told).await;
                        if told.give_up.load(Ordering::Acquire) {
                            return;
                        }
                    }
                })
            })
            .collect();
        Self { told, tasks }
    }

    /// Buyers that were told an order id so far.
    pub fn acknowledged(&self) -> usize {
        self.told.acknowledged.load(Ordering::Acquire)
    }

    /// Refusals "unavailable" so far.
    pub fn unavailable(&self) -> u64 {
        self.told.unavailable.load(Ordering::Acquire)
    }

    /// Whether every buyer is done.
    pub fn is_done(&self) -> bool {
        self.tasks.iter().all(JoinHandle::is_finished)
    }

    /// Waits until so many more buyers hold an order, or all are done.
    pub async fn more(&self, count: usize) {
        let goal = self.acknowledged() + count;
        let began = Instant::now();
        while self.acknowledged() < goal && !self.is_done() {
            assert!(began.elapsed() < DEADLINE, "the sale does not go on");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Nobody presses any more.
    pub fn give_up(&self) {
        self.told.give_up.store(true, Ordering::Release);
    }

    /// Waits for all of them; fails if one got an answer that must not be.
    pub async fn end(self) -> Outcome {
        for task in self.tasks {
            tokio::time::timeout(DEADLINE, task)
                .await
                .unwrap_or_else(|_| panic!("a buyer got no end"))
                .expect("no buyer failed");
        }
        let wrong = self
            .told
            .wrong
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        assert!(
            wrong.is_empty(),
            "{} wrong answers, the first: {}",
            wrong.len(),
            wrong[0]
        );
        let orders = self
            .told
            .orders
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Outcome {
            orders: orders.clone(),
            unavailable: self.told.unavailable.load(Ordering::Acquire),
            closed: self.told.closed.load(Ordering::Acquire),
            sold_out: self.told.sold_out.load(Ordering::Acquire),
            slowest: Duration::from_micros(self.told.slowest_us.load(Ordering::Acquire)),
        }
    }
}

/// One buyer: again after every "not now", and once more after an order, which must be the same.
async fn press(shop: &Shop, voucher: VoucherId, buyer: &User, told: &Told) {
    let key = (voucher.get(), buyer.user_id.get());
    let (mut held, mut checked) = (None, false);
    while !told.give_up.load(Ordering::Acquire) {
        let began = Instant::now();
        let answer = shop.buy(buyer.user_id, voucher, "").await;
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        told.slowest_us.fetch_max(took, Ordering::AcqRel);
        match answer {
            Ok(Purchase::Admitted { order_id } | Purchase::AlreadyOrdered { order_id }) => {
                let first = *held.get_or_insert(order_id);
                if first != order_id {
                    told.wrong(format!("{key:?} held {first} and was told {order_id}"));
                }
                if checked || order_id.get() % 8 != 0 {
                    break;
                }
                checked = true;
            }
            Ok(Purchase::SoldOut) => {
                told.sold_out.fetch_add(1, Ordering::AcqRel);
                break;
            }
            Ok(Purchase::Paused | Purchase::NotLoaded) => {
                told.closed.fetch_add(1, Ordering::AcqRel);
                if held.is_some() {
                    break;
                }
                tokio::time::sleep(AGAIN).await;
            }
            Ok(other) => return told.wrong(format!("{key:?}: {other:?}")),
            Err(Error::Unavailable(_)) => {
                told.unavailable.fetch_add(1, Ordering::AcqRel);
                if held.is_some() {
                    break;
                }
                tokio::time::sleep(AGAIN).await;
            }
            Err(error) => return told.wrong(format!("{key:?}: {error:?}")),
        }
    }
    if let Some(order) = held {
        told.orders
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, order.get());
        told.acknowledged.fetch_add(1, Ordering::AcqRel);
    }
}

impl Told {
    fn wrong(&self, what: String) {
        self.wrong
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(what);
    }
}
