//! RabbitMQ as the tutorials use it: published after the decision.
//!
//! Publisher confirms and returns, acknowledgement by hand, local retries, an exchange and a
//! queue for what fails, an idempotent consumer. Between decision and publishing stands a process.

use futures::StreamExt;
use futures::future::BoxFuture;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicPublishOptions, BasicQosOptions,
    ConfirmSelectOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, ExchangeKind,
};
use sqlx::PgPool;

use super::scripted::{Handing, Script, parse};
use crate::road::stores::{Scene, postgres, record};
use crate::road::{Answer, Ask, Contender, Ready, RoadError};

/// Messages that the broker hands a consumer before they are acknowledged.
const PREFETCH: u16 = 8;
/// How often a write is tried here before its message goes to the error queue.
const TRIES: u32 = 3;
const ROUTE: &str = "order";

pub(crate) struct Rabbit {
    script: Script,
    pool: PgPool,
    voucher: i64,
    exchange: String,
    orders: String,
    /// It keeps the channels open.
    _connection: Connection,
    publishing: Channel,
    consuming: Channel,
}

impl Rabbit {
    pub(crate) async fn open(scene: &Scene) -> Result<Self, RoadError> {
        let url = scene.amqp_url.as_deref();
        let url = url.ok_or_else(|| RoadError::Broken("no URL of RabbitMQ was given".into()))?;
        let connection = Connection::connect(url, ConnectionProperties::default()).await?;
        let publishing = connection.create_channel().await?;
        publishing
            .confirm_select(ConfirmSelectOptions::default())
            .await?;
        let rabbit = Self {
            script: Script::open(scene, Handing::Process).await?,
            pool: postgres(&scene.database_url, 10).await?,
            voucher: scene.voucher,
            exchange: scene.key("exchange"),
            orders: scene.key("orders"),
            consuming: connection.create_channel().await?,
            publishing,
            _connection: connection,
        };
        rabbit
            .declare(&scene.key("error-exchange"), &scene.key("errors"))
            .await?;
        Ok(rabbit)
    }

    /// Durable exchanges and queues; what is rejected goes to the error exchange.
    async fn declare(&self, error_exchange: &str, errors: &str) -> Result<(), RoadError> {
        let mut dead = FieldTable::default();
        dead.insert(
            "x-dead-letter-exchange".into(),
            AMQPValue::LongString(error_exchange.into()),
        );
        for (exchange, queue, arguments) in [
            (error_exchange, errors, FieldTable::default()),
            (&self.exchange, &self.orders, dead),
        ] {
            let (exchange, queue) = (exchange.to_owned(), queue.to_owned());
            let durable = ExchangeDeclareOptions {
                durable: true,
                ..ExchangeDeclareOptions::default()
            };
            let table = FieldTable::default();
            self.consuming
                .exchange_declare(
                    exchange.as_str().into(),
                    ExchangeKind::Direct,
                    durable,
                    table,
                )
                .await?;
            self.consuming
                .queue_declare(
                    queue.as_str().into(),
                    QueueDeclareOptions::durable(),
                    arguments,
                )
                .await?;
            let (bind, table) = (QueueBindOptions::default(), FieldTable::default());
            self.consuming
                .queue_bind(
                    queue.as_str().into(),
                    exchange.as_str().into(),
                    ROUTE.into(),
                    bind,
                    table,
                )
                .await?;
        }
        Ok(())
    }

    /// Publishes a persistent message and waits for the broker's word; one that no queue took
    /// comes back confirmed *and* returned.
    async fn publish(&self, text: &str) -> Result<(), RoadError> {
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let persistent = BasicProperties::default().with_delivery_mode(2);
        let confirmed = self
            .publishing
            .basic_publish(
                self.exchange.as_str().into(),
                ROUTE.into(),
                options,
                text.as_bytes(),
                persistent,
            )
            .await?
            .await?;
        match confirmed {
            Confirmation::Ack(None) => Ok(()),
            other => Err(RoadError::Broken(format!(
                "the broker did not take an order: {other:?}"
            ))),
        }
    }

    async fn write(&self, body: &[u8]) -> Result<(), RoadError> {
        let (order, user) = parse(&String::from_utf8_lossy(body))?;
        let mut tries = 1;
        loop {
            match record(&self.pool, order, user, self.voucher).await {
                Err(_) if tries < TRIES => tries += 1,
                done => return done,
            }
        }
    }
}

impl Contender for Rabbit {
    fn buy<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<Answer, RoadError>> {
        Box::pin(async move {
            let answer = self.script.decide(ask).await?;
            if let Answer::Accepted(order) = answer {
                self.publish(&format!("{order} {}", ask.user)).await?;
            }
            Ok(answer)
        })
    }

    fn persist(&self, ready: Ready) -> BoxFuture<'_, Result<(), RoadError>> {
        Box::pin(async move {
            self.consuming
                .basic_qos(PREFETCH, BasicQosOptions::default())
                .await?;
            let (options, table) = (BasicConsumeOptions::default(), FieldTable::default());
            let mut deliveries = self
                .consuming
                .basic_consume(self.orders.as_str().into(), "".into(), options, table)
                .await?;
            ready.tell();
            let mut writing = futures::stream::FuturesUnordered::new();
            loop {
                tokio::select! {
                    delivery = deliveries.next() => {
                        let delivery = delivery.ok_or_else(|| RoadError::Broken("the consumer ended".into()))??;
                        writing.push(async move {
                            match self.write(&delivery.data).await {
                                Ok(()) => delivery.ack(BasicAckOptions::default()).await,
                                // To the error exchange.
                                Err(_) => {
                                    let reject = BasicNackOptions { requeue: false, ..BasicNackOptions::default() };
                                    delivery.nack(reject).await
                                }
                            }
                        });
                    }
                    Some(done) = writing.next() => { done?; }
                }
            }
        })
    }
}
