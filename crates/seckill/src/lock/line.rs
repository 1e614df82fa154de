//! Waiting for a lock: a place in line, and the message that its turn has come.

use std::sync::OnceLock;
use std::time::Duration;

use fred::clients::SubscriberClient;
use fred::interfaces::{ClientLike, EventInterface, PubsubInterface};
use fred::types::Message;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::Lock;
use crate::redis::{self, number};
use crate::scripts::WITHDRAW;

/// How long one in line counts as there without asking again. After that the others go past it.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// How often one in line asks without being told.
const LOOK: Duration = Duration::from_millis(500);
/// How long a subscription that failed rests.
const AGAIN: Duration = Duration::from_secs(1);

/// The connection that hears whose turn has come; made when somebody waits for the first time.
pub(super) struct Turns {
    client: SubscriberClient,
    channel: String,
    listening: OnceLock<()>,
}

impl Turns {
    pub(super) fn new(
        url: &str,
        channel: String,
        timeout: Duration,
    ) -> Result<Self, fred::error::Error> {
        Ok(Self {
            client: redis::builder(url, timeout)?.build_subscriber_client()?,
            channel,
            listening: OnceLock::new(),
        })
    }

    /// Messages from now on; until the subscription stands, and whenever it is cut, there are
    /// none, and one in line looks by itself.
    fn hear(&self) -> Receiver<Message> {
        self.listening.get_or_init(|| {
            let (client, channel) = (self.client.clone(), self.channel.clone());
            // The handles end with the client; `quit` is how it ends.
            drop(client.connect());
            drop(client.manage_subscriptions());
            tokio::spawn(async move {
                while let Err(error) = client.subscribe(channel.as_str()).await {
                    if matches!(error.kind(), fred::error::ErrorKind::Canceled) {
                        return;
                    }
                    tracing::debug!(%error, "nobody hears whose turn has come");
                    tokio::time::sleep(AGAIN).await;
                }
            });
        });
        self.client.message_rx()
    }

    pub(super) async fn close(&self) {
        if self.listening.get().is_some()
            && let Err(error) = self.client.quit().await
        {
            tracing::debug!(%error, "closing a connection to Redis");
        }
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        // The client keeps its connection until it is told.
        if self.listening.get().is_some()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let client = self.client.clone();
            runtime.spawn(async move { client.quit().await });
        }
    }
}

/// A place in line; given up when it is dropped.
pub(super) struct Line {
    lock: Lock,
    heard: Receiver<Message>,
    /// Redis may have a place for it.
    stands: bool,
}

impl Line {
    /// Listens before it asks, so that no turn is missed between the two.
    pub(super) fn join(lock: &Lock) -> Self {
        Self {
            lock: lock.clone(),
            heard: lock.0.locks.0.turns.hear(),
            stands: false,
        }
    }

    /// Redis is asked, and may give it a place.
    pub(super) fn stands(&mut self) {
        self.stands = true;
    }

    /// The lock is held, and the place gone with it.
    pub(super) fn left(&mut self) {
        self.stands = false;
    }

    /// Rests until its turn is called, the lock may be free, or it is time to look.
    pub(super) async fn nap(&mut self, free_in: Duration, limit: Duration) {
        // A lock without an end, and one that is free for somebody else, are looked at in turn.
        let free_in = match free_in {
            Duration::ZERO => LOOK,
            ends => ends + Duration::from_millis(1),
        };
        let called = async {
            loop {
                match self.heard.recv().await {
                    Ok(message)
                        if message.value.as_str().as_deref()
                            == Some(self.lock.token().as_str()) =>
                    {
                        return;
                    }
                    Ok(_) => {}
                    // What was not heard may have been its turn.
                    Err(RecvError::Lagged(_)) => return,
                    Err(RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        // Not called in time is no failure: it looks.
        let _ = tokio::time::timeout(free_in.min(limit).min(LOOK), called).await;
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if !self.stands {
            return;
        }
        // Without a runtime nobody tells Redis; the others go past it after a while.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let lock = self.lock.clone();
        runtime.spawn(async move {
            if let Err(error) = lock.withdraw(&lock.token()).await {
                tracing::debug!(%error, "a place in line ends by itself");
            }
        });
    }
}

impl Lock {
    /// Gives up the place in line of an owner called this; false when it had none.
    pub(super) async fn withdraw(&self, token: &str) -> Result<bool, crate::Error> {
        let (owner, names) = (&self.0, &self.0.locks.0.names);
        let keys = vec![
            names.lock(&owner.name),
            names.lock_line(&owner.name),
            names.lock_waiting(&owner.name),
        ];
        let args = vec![token.into(), names.lock_turns().into()];
        Ok(number(&owner.locks.0.redis.eval(&WITHDRAW, keys, args).await?)? == 1)
    }
}
