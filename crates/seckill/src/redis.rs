//! Connections to Redis: how they are opened, how a script is called, how a reply is read.
//!
//! A command is sent once. The client library would send it again after a reconnect; a
//! purchase that is refused and then sent again could be admitted under an id that was given
//! to somebody else. Who calls decides about a retry.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use fred::clients::{Client, Pool, WithOptions};
use fred::interfaces::{ClientLike, ClusterInterface, KeysInterface};
use fred::types::config::{
    Config, ConnectionConfig, Options, PerformanceConfig, ReconnectPolicy, TcpConfig,
};
use fred::types::{Builder, ClusterHash, CustomCommand, Value};
use fred::util::redis_keyslot;

use crate::Error;
use crate::scripts::Script;

/// How long a connection attempt may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a script that works on a whole sale may take.
const SLOW: Duration = Duration::from_secs(60);
/// How often a connection is asked whether it is still there.
const WATCH: Duration = Duration::from_secs(1);
/// How long it may be silent. Longer than Redis lets a script run before it answers "busy".
const SILENCE: Duration = Duration::from_secs(6);
/// Commands that may wait for a connection before new ones are refused.
const BUFFER: usize = 100_000;

/// Connections to one Redis, or to one cluster.
#[derive(Clone)]
pub(crate) struct Redis {
    pool: Pool,
    options: Options,
    /// Scripts that take their time and keep their connection silent meanwhile.
    slow: Arc<AtomicUsize>,
}

/// A builder with this project's policy: reconnect for ever, time out, bound what waits.
pub(crate) fn builder(url: &str, timeout: Duration) -> Result<Builder, fred::error::Error> {
    let mut config = Config::from_url(url)?;
    // A Redis that is away at start is waited for like one that goes away later.
    config.fail_fast = false;
    let mut builder = Builder::from_config(config);
    builder
        .with_connection_config(|c: &mut ConnectionConfig| {
            c.connection_timeout = CONNECT_TIMEOUT;
            c.internal_command_timeout = CONNECT_TIMEOUT;
            c.max_command_attempts = 1;
            c.max_command_buffer_len = BUFFER;
            c.reconnect_on_auth_error = true;
            c.tcp = TcpConfig {
                nodelay: Some(true),
                ..TcpConfig::default()
            };
            c.unresponsive.max_timeout = Some(timeout + Duration::from_secs(3));
            c.unresponsive.interval = Duration::from_secs(1);
        })
        .with_performance_config(|p: &mut PerformanceConfig| p.default_command_timeout = timeout)
        .set_policy(ReconnectPolicy::new_exponential(0, 50, 1_000, 2));
    Ok(builder)
}

impl Redis {
    /// Opens connections that connect by themselves, now and after each loss.
    pub(crate) fn open(
        url: &str,
        connections: usize,
        timeout: Duration,
    ) -> Result<Self, fred::error::Error> {
        let pool = builder(url, timeout)?.build_pool(connections.max(1))?;
        // The handles end with the clients; `quit` is how they end.
        drop(pool.connect_pool());
        let options = Options {
            max_attempts: Some(1),
            timeout: Some(timeout),
            // Without a connection the answer is "unavailable" at once; nothing queues up.
            fail_fast: true,
            ..Options::default()
        };
        let slow = Arc::new(AtomicUsize::new(0));
        for client in pool.clients() {
            tokio::spawn(watch(client.clone(), Arc::downgrade(&slow)));
        }
        Ok(Self {
            pool,
            options,
            slow,
        })
    }

    /// A connection for single commands, with this project's limits.
    pub(crate) fn client(&self) -> WithOptions<Client> {
        self.pool.next_connected().with_options(&self.options)
    }

    /// A connection for each server there is, to ask it about itself: one, or every master of a cluster.
    pub(crate) fn servers(&self) -> Result<Vec<WithOptions<Client>>, Error> {
        let client = self.pool.next_connected();
        if !client.is_clustered() {
            return Ok(vec![self.client()]);
        }
        let known = client.cached_cluster_state();
        let known = known.map(|state| state.unique_primary_nodes());
        let Some(nodes) = known.filter(|nodes| !nodes.is_empty()) else {
            return Err(Error::Unavailable(
                "the cluster's nodes are not known yet".into(),
            ));
        };
        let of_node = |node| {
            let options = Options {
                cluster_node: Some(node),
                ..self.options.clone()
            };
            client.with_options(&options)
        };
        Ok(nodes.into_iter().map(of_node).collect())
    }

    /// Every connection, to watch it.
    pub(crate) fn clients(&self) -> &[Client] {
        self.pool.clients()
    }

    /// Whether there is a connection now.
    pub(crate) fn is_connected(&self) -> bool {
        self.pool.clients().iter().any(ClientLike::is_connected)
    }

    /// Waits until a connection is there, at most this long.
    pub(crate) async fn wait(&self, limit: Duration) -> Result<(), Error> {
        match tokio::time::timeout(limit, self.pool.wait_for_connect()).await {
            Ok(connected) => Ok(connected?),
            Err(late) => Err(Error::Unavailable(late.into())),
        }
    }

    /// Calls a script in one round trip.
    pub(crate) async fn eval(
        &self,
        script: &Script,
        keys: Vec<String>,
        args: Vec<Value>,
    ) -> Result<Value, Error> {
        eval(&self.client(), script, keys, args).await
    }

    /// Calls a script that works on a whole sale and may take its time.
    pub(crate) async fn eval_slow(
        &self,
        script: &Script,
        keys: Vec<String>,
        args: Vec<Value>,
    ) -> Result<Value, Error> {
        let options = Options {
            timeout: Some(SLOW),
            ..self.options.clone()
        };
        let _slow = Slow::new(&self.slow);
        eval(
            &self.pool.next_connected().with_options(&options),
            script,
            keys,
            args,
        )
        .await
    }

    /// Whether a key is there.
    pub(crate) async fn exists(&self, key: String) -> Result<bool, Error> {
        let found: i64 = self.client().exists(key).await?;
        Ok(found > 0)
    }

    /// One page of a hash: the next cursor, and fields with their values.
    pub(crate) async fn hscan_page(
        &self,
        key: &str,
        cursor: &str,
        count: u32,
    ) -> Result<Value, Error> {
        let command = CustomCommand::new_static("HSCAN", ClusterHash::FirstKey, false);
        let args: Vec<Value> = vec![
            key.into(),
            cursor.into(),
            "COUNT".into(),
            i64::from(count).into(),
        ];
        Ok(self.client().custom(command, args).await?)
    }

    /// Closes every connection.
    pub(crate) async fn quit(&self) {
        // One that is not connected has nothing to say goodbye to.
        if let Err(error) = self.pool.quit().await {
            tracing::debug!(%error, "closing a connection to Redis");
        }
    }
}

/// Counts a slow script for as long as it lives.
struct Slow(Arc<AtomicUsize>);

impl Slow {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(count))
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Makes a connection anew that no longer answers, until the connections are dropped.
///
/// A half-open connection takes what is written for ever. The client library's own check counts
/// from the last write, so that it never strikes while others keep writing.
async fn watch(client: Client, slow: Weak<AtomicUsize>) {
    let options = Options {
        max_attempts: Some(1),
        timeout: Some(SILENCE),
        fail_fast: true,
        ..Options::default()
    };
    loop {
        tokio::time::sleep(WATCH).await;
        let Some(slow) = slow.upgrade() else { return };
        if slow.load(Ordering::Acquire) > 0 {
            continue;
        }
        drop(slow);
        let asked = client.with_options(&options).ping::<Value>(None).await;
        if asked.is_err_and(|error| matches!(error.kind(), fred::error::ErrorKind::Timeout)) {
            tracing::warn!("a connection to Redis gives no answer; connecting anew");
            if let Err(error) = client.force_reconnection().await {
                tracing::debug!(%error, "connecting anew");
            }
        }
    }
}

/// Calls a script by its digest; where Redis does not know it, by its text.
///
/// After `SCRIPT FLUSH`, a restart or a failover Redis has forgotten it. Sending the text is
/// one step, so that a flush between loading and calling can't get in between.
async fn eval<C: ClientLike + Sync>(
    client: &C,
    script: &Script,
    keys: Vec<String>,
    args: Vec<Value>,
) -> Result<Value, Error> {
    // The slot is that of the first key. The client library takes it from a custom command only
    // as a number; anything else is hashed like a first key, here the digest.
    let slot = keys.first().map_or(0, |key| redis_keyslot(key.as_bytes()));
    let by_digest = CustomCommand::new_static("EVALSHA", ClusterHash::Custom(slot), false);
    let by_text = CustomCommand::new_static("EVAL", ClusterHash::Custom(slot), false);
    let call = |name: &str| {
        let count = i64::try_from(keys.len()).unwrap_or(i64::MAX);
        let mut all: Vec<Value> = Vec::with_capacity(keys.len() + args.len() + 2);
        all.extend([name.into(), count.into()]);
        all.extend(keys.iter().map(|key| Value::from(key.as_str())));
        all.extend(args.iter().cloned());
        all
    };
    match client
        .custom::<Value, Value>(by_digest, call(script.sha1()))
        .await
    {
        Err(error) if error.details().starts_with("NOSCRIPT") => {
            Ok(client.custom(by_text, call(script.source())).await?)
        }
        reply => Ok(reply?),
    }
}

/// A reply that must be a list.
pub(crate) fn list(value: Value) -> Result<Vec<Value>, Error> {
    match value {
        Value::Array(items) => Ok(items),
        Value::Null => Ok(Vec::new()),
        other => Err(Error::impossible(format!(
            "Redis answered {} where a list was due",
            describe(&other)
        ))),
    }
}

/// A part of a reply as text; a nil is empty.
pub(crate) fn text(value: &Value) -> String {
    value.as_string().unwrap_or_default()
}

/// A part of a reply as a number.
pub(crate) fn number(value: &Value) -> Result<i64, Error> {
    let wrong = || {
        Error::impossible(format!(
            "Redis answered {:?} where a number was due",
            text(value)
        ))
    };
    match value {
        Value::Integer(n) => Ok(*n),
        other => text(other).parse().map_err(|_| wrong()),
    }
}

/// A part of a reply as a count; what is below zero is none.
pub(crate) fn count(value: &Value) -> Result<u64, Error> {
    Ok(u64::try_from(number(value)?).unwrap_or(0))
}

fn describe(value: &Value) -> String {
    format!("{:?}", value.kind())
}
