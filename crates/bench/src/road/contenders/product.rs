//! The product's own path: the domain crate's admission, its consumer and its reconciler.

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use seckill::{
    Consumer, ConsumerConfig, Error, Lane, Purchase, Reconciler, Shop, ShopConfig, UserId,
    VoucherId,
};

use crate::road::stores::Scene;
use crate::road::{Answer, Ask, Contender, Fault, Ready, RoadError};

/// How long a process may take until it sells, and a purchase until it is decided.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause before a call is made again, and between the reconciler's rounds.
const AGAIN: Duration = Duration::from_millis(50);

/// The product's settings on a scene's stores.
pub(crate) fn config(database_url: &str, redis_url: &str, prefix: &str) -> ShopConfig {
    let mut config = ShopConfig::new(database_url, redis_url);
    config.prefix = prefix.to_owned();
    config.buy_timeout = Duration::from_secs(10);
    config
}

pub(crate) struct Product {
    shop: Shop,
    voucher: VoucherId,
}

impl Product {
    pub(crate) async fn open(scene: &Scene) -> Result<Self, RoadError> {
        let config = config(&scene.database_url, &scene.redis_url, &scene.prefix);
        let shop = Shop::open(config).await?;
        shop.wait_for_redis(PATIENCE).await?;
        shop.wait_until_selling(PATIENCE).await?;
        Ok(Self {
            shop,
            voucher: id(scene.voucher)?,
        })
    }

    async fn consume(&self, ready: Ready) -> Result<(), RoadError> {
        let config = ConsumerConfig {
            block: Duration::from_millis(200),
            claim_after: Duration::from_secs(2),
            ..ConsumerConfig::default()
        };
        let name = format!("road-{:016x}", rand::random::<u64>());
        let mut consumer = Consumer::open(&self.shop, Lane(0), &name, config).await?;
        ready.tell();
        loop {
            match consumer.step().await {
                Ok(step) if !step.waited => {}
                Ok(_) => tokio::time::sleep(AGAIN).await,
                Err(error) if error.is_transient() => tokio::time::sleep(AGAIN).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn reconcile(&self) -> Result<(), RoadError> {
        let mut reconciler = Reconciler::new(&self.shop);
        loop {
            match reconciler.step().await {
                Ok(_) => {}
                Err(error) if error.is_transient() => {}
                Err(error) => return Err(error.into()),
            }
            tokio::time::sleep(AGAIN * 20).await;
        }
    }
}

impl Contender for Product {
    fn buy<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<Answer, RoadError>> {
        Box::pin(async move {
            let (user, began): (UserId, _) = (id(ask.user)?, Instant::now());
            let purchase = loop {
                match self.shop.buy(user, self.voucher, "").await {
                    Err(Error::Unavailable(_)) if began.elapsed() < PATIENCE => {
                        tokio::time::sleep(AGAIN).await
                    }
                    purchase => break purchase?,
                }
            };
            ask.at(Fault::Crash).await;
            Ok(match purchase {
                Purchase::Admitted { order_id } => Answer::Accepted(order_id.get()),
                Purchase::AlreadyOrdered { order_id } => Answer::Already(Some(order_id.get())),
                Purchase::SoldOut => Answer::SoldOut,
                other => {
                    return Err(RoadError::Broken(format!(
                        "the sale is {}",
                        other.outcome()
                    )));
                }
            })
        })
    }

    fn persist(&self, ready: Ready) -> BoxFuture<'_, Result<(), RoadError>> {
        Box::pin(async move {
            tokio::try_join!(self.consume(ready), self.reconcile())?;
            Ok(())
        })
    }
}

/// A number as an id of the product's.
pub(crate) fn id<T: std::str::FromStr>(number: i64) -> Result<T, RoadError> {
    let id = number.to_string().parse();
    id.map_err(|_| RoadError::Broken(format!("{number} is no id")))
}
