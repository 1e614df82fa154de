//! Queues behind the script: in the process' memory, a Redis list, publish and subscribe, and a
//! stream without a group.

use fred::interfaces::{EventInterface, PubsubInterface};
use fred::types::Value;
use futures::future::{BoxFuture, try_join_all};
use sqlx::PgPool;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Mutex, mpsc};

use super::scripted::{Handing, Script, parse};
use crate::road::stores::{Redis, Scene, postgres, record};
use crate::road::{Answer, Ask, Contender, Ready, RoadError};

/// Orders that the queue in memory holds before a decision waits for room.
const BOUND: usize = 1_048_576;
/// Consumers that pop from the list.
const POPPING: usize = 8;

pub(crate) struct MemoryQueue {
    script: Script,
    pool: PgPool,
    voucher: i64,
    sender: mpsc::Sender<(i64, i64)>,
    receiver: Mutex<mpsc::Receiver<(i64, i64)>>,
}

impl MemoryQueue {
    pub(crate) async fn open(scene: &Scene) -> Result<Self, RoadError> {
        let (sender, receiver) = mpsc::channel(BOUND);
        Ok(Self {
            script: Script::open(scene, Handing::Process).await?,
            pool: postgres(&scene.database_url, 8).await?,
            voucher: scene.voucher,
            sender,
            receiver: Mutex::new(receiver),
        })
    }
}

impl Contender for MemoryQueue {
    fn buy<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<Answer, RoadError>> {
        Box::pin(async move {
            let answer = self.script.decide(ask).await?;
            if let Answer::Accepted(order) = answer {
                let sent = self.sender.send((order, ask.user)).await;
                sent.map_err(|_| RoadError::Broken("the queue is closed".into()))?;
            }
            Ok(answer)
        })
    }

    fn persist(&self, ready: Ready) -> BoxFuture<'_, Result<(), RoadError>> {
        Box::pin(async move {
            ready.tell();
            let mut receiver = self.receiver.lock().await;
            while let Some((order, user)) = receiver.recv().await {
                record(&self.pool, order, user, self.voucher).await?;
            }
            Ok(())
        })
    }
}

/// What the three ways through Redis share.
struct Behind {
    script: Script,
    pool: PgPool,
    /// A connection of its own: a blocking command stalls whatever is behind it.
    reader: Vec<Redis>,
    voucher: i64,
}

impl Behind {
    async fn open(scene: &Scene, handing: Handing, readers: usize) -> Result<Self, RoadError> {
        Ok(Self {
            script: Script::open(scene, handing).await?,
            pool: postgres(&scene.database_url, 10).await?,
            reader: try_join_all((0..readers).map(|_| Redis::open(&scene.redis_url))).await?,
            voucher: scene.voucher,
        })
    }

    async fn write(&self, text: &str) -> Result<(), RoadError> {
        let (order, user) = parse(text)?;
        record(&self.pool, order, user, self.voucher).await
    }
}

pub(crate) struct ListQueue(Behind);

impl ListQueue {
    pub(crate) async fn open(scene: &Scene) -> Result<Self, RoadError> {
        Behind::open(scene, Handing::List, POPPING).await.map(Self)
    }

    async fn pop(&self, reader: &Redis) -> Result<(), RoadError> {
        loop {
            let popped = reader
                .call(&["BLPOP", &self.0.script.queue, "1"])
                .await?
                .into_array();
            if let Some(text) = popped.get(1).and_then(Value::as_string) {
                self.0.write(&text).await?;
            }
        }
    }
}

impl Contender for ListQueue {
    fn buy<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<Answer, RoadError>> {
        Box::pin(self.0.script.decide(ask))
    }

    fn persist(&self, ready: Ready) -> BoxFuture<'_, Result<(), RoadError>> {
        Box::pin(async move {
            ready.tell();
            try_join_all(self.0.reader.iter().map(|reader| self.pop(reader))).await?;
            Ok(())
        })
    }
}

pub(crate) struct PublishSubscribe(Behind);

impl PublishSubscribe {
    pub(crate) async fn open(scene: &Scene) -> Result<Self, RoadError> {
        Behind::open(scene, Handing::Channel, 1).await.map(Self)
    }
}

impl Contender for PublishSubscribe {
    fn buy<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<Answer, RoadError>> {
        Box::pin(self.0.script.decide(ask))
    }

    fn persist(&self, ready: Ready) -> BoxFuture<'_, Result<(), RoadError>> {
        Box::pin(async move {
            let reader = self
                .0
                .reader
                .first()
                .ok_or_else(|| RoadError::Broken("no reader".into()))?;
            let mut messages = reader.client().message_rx();
            // The client library's own buffer is bounded and overwrites: it is emptied at once.
            let (sender, mut heard) = mpsc::unbounded_channel();
            let listening = tokio::spawn(async move {
                loop {
                    match messages.recv().await {
                        Ok(message)
                            if sender
                                .send(message.value.as_string().unwrap_or_default())
                                .is_ok() => {}
                        // What was overwritten, nobody hears.
                        Err(RecvError::Lagged(_)) => {}
                        Ok(_) | Err(RecvError::Closed) => return,
                    }
                }
            });
            reader
                .client()
                .subscribe(self.0.script.queue.clone())
                .await?;
            ready.tell();
            while let Some(text) = heard.recv().await {
                self.0.write(&text).await?;
            }
            listening.abort();
            Err(RoadError::Broken("the subscription ended".into()))
        })
    }
}

/// A stream read without a group: where a reader is, it alone knows.
pub(crate) struct StreamFrom {
    behind: Behind,
    from: &'static str,
}

impl StreamFrom {
    pub(crate) async fn open(scene: &Scene, from: &'static str) -> Result<Self, RoadError> {
        let behind = Behind::open(scene, Handing::Stream, 1).await?;
        Ok(Self { behind, from })
    }

    /// Where reading begins: at the start, or behind the last entry there is now.
    async fn begin(&self, reader: &Redis) -> Result<String, RoadError> {
        if self.from != "$" {
            return Ok(self.from.to_owned());
        }
        let last = reader
            .call(&[
                "XREVRANGE",
                &self.behind.script.queue,
                "+",
                "-",
                "COUNT",
                "1",
            ])
            .await?;
        let entry = last.into_array().into_iter().next().map(Value::into_array);
        let id = entry.and_then(|entry| entry.first().and_then(Value::as_string));
        Ok(id.unwrap_or_else(|| "0".to_owned()))
    }
}

impl Contender for StreamFrom {
    fn buy<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<Answer, RoadError>> {
        Box::pin(self.behind.script.decide(ask))
    }

    fn persist(&self, ready: Ready) -> BoxFuture<'_, Result<(), RoadError>> {
        Box::pin(async move {
            let reader = self
                .behind
                .reader
                .first()
                .ok_or_else(|| RoadError::Broken("no reader".into()))?;
            let mut last = self.begin(reader).await?;
            ready.tell();
            loop {
                let words = [
                    "XREAD",
                    "COUNT",
                    "64",
                    "BLOCK",
                    "1000",
                    "STREAMS",
                    &self.behind.script.queue,
                    &last,
                ];
                let reply = reader.call(&words).await?;
                for (id, text) in entries(reply) {
                    self.behind.write(&text).await?;
                    last = id;
                }
            }
        })
    }
}

/// Entries of the one stream that was read, as (id, order); in RESP2 a list of [name, entries].
fn entries(reply: Value) -> Vec<(String, String)> {
    let stream = reply.into_array().into_iter().next().map(Value::into_array);
    let list = stream
        .and_then(|stream| stream.into_iter().nth(1))
        .map(Value::into_array);
    let entry = |entry: Value| {
        let parts = entry.into_array();
        let fields = parts.get(1)?.clone().into_array();
        Some((parts.first()?.as_string()?, fields.get(1)?.as_string()?))
    };
    list.unwrap_or_default()
        .into_iter()
        .filter_map(entry)
        .collect()
}
