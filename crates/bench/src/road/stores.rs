//! What contenders stand on: PostgreSQL with two bare tables, Redis by plain commands.

use std::time::Duration;

use fred::clients::Client;
use fred::interfaces::ClientLike;
use fred::types::config::Config;
use fred::types::{Builder, ClusterHash, CustomCommand, Value};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use super::RoadError;

/// The name of the variable that hands a child its scene; it holds passwords, so no argument does.
pub(crate) const SCENE: &str = "SECKILL_ROAD_SCENE";

/// What a process of a contender does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    /// Answers and persists.
    Both,
    /// Answers only.
    Web,
    /// Persists only.
    Worker,
}

/// Where a child process works and as what.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Scene {
    pub(crate) contender: String,
    pub(crate) role: Role,
    pub(crate) database_url: String,
    pub(crate) redis_url: String,
    pub(crate) amqp_url: Option<String>,
    /// What every name in Redis and RabbitMQ begins with.
    pub(crate) prefix: String,
    pub(crate) voucher: i64,
    pub(crate) lease_ms: u64,
}

impl Scene {
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms)
    }

    pub(crate) fn key(&self, rest: &str) -> String {
        format!("{}:{rest}", self.prefix)
    }
}

/// Connections to PostgreSQL.
pub(crate) async fn postgres(url: &str, connections: u32) -> Result<PgPool, RoadError> {
    let pool = PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(Duration::from_secs(60));
    Ok(pool.connect(url).await?)
}

/// One connection to Redis, by plain commands.
#[derive(Clone)]
pub(crate) struct Redis(Client);

impl Redis {
    pub(crate) async fn open(url: &str) -> Result<Self, RoadError> {
        let mut builder = Builder::from_config(Config::from_url(url)?);
        // Messages that a subscriber has not taken yet; above that the oldest are overwritten.
        builder.with_performance_config(|p| p.broadcast_channel_capacity = 65_536);
        let client = builder.build()?;
        client.init().await?;
        Ok(Self(client))
    }

    /// Sends a command given as words.
    pub(crate) async fn call(&self, words: &[&str]) -> Result<Value, RoadError> {
        let name = words.first().copied().unwrap_or_default();
        let blocks = matches!(name, "BLPOP" | "XREAD");
        let command = CustomCommand::new(name, ClusterHash::FirstKey, blocks);
        let rest: Vec<String> = words
            .iter()
            .skip(1)
            .map(|word| (*word).to_owned())
            .collect();
        Ok(self.0.custom(command, rest).await?)
    }

    /// Sends a command whose reply is a text; nil is none.
    pub(crate) async fn text(&self, words: &[&str]) -> Result<Option<String>, RoadError> {
        Ok(self.call(words).await?.as_string())
    }

    /// Loads a script; returns its digest.
    pub(crate) async fn load(&self, script: &str) -> Result<String, RoadError> {
        let sha = self.text(&["SCRIPT", "LOAD", script]).await?;
        sha.ok_or_else(|| RoadError::Broken("SCRIPT LOAD gave no digest".into()))
    }

    /// Commands that the server has carried out so far, those inside scripts too, without those
    /// that connections make about themselves.
    pub(crate) async fn commands(&self) -> Result<u64, RoadError> {
        const OWN: [&str; 8] = [
            "info", "ping", "hello", "client", "config", "select", "auth", "script",
        ];
        let info = self
            .text(&["INFO", "commandstats"])
            .await?
            .unwrap_or_default();
        let calls = info.lines().filter_map(|line| {
            let (name, figures) = line.strip_prefix("cmdstat_")?.split_once(':')?;
            let name = name.split('|').next().unwrap_or(name);
            let calls = figures.strip_prefix("calls=")?.split(',').next()?;
            (!OWN.contains(&name)).then(|| calls.parse::<u64>().ok())?
        });
        Ok(calls.sum())
    }

    /// Deletes every key that begins with this.
    pub(crate) async fn forget(&self, prefix: &str) -> Result<(), RoadError> {
        let pattern = format!("{prefix}*");
        let mut cursor = "0".to_owned();
        loop {
            let page = self
                .call(&["SCAN", &cursor, "MATCH", &pattern, "COUNT", "1000"])
                .await?;
            let parts = page.into_array();
            let keys: Vec<String> = match parts.get(1) {
                Some(keys) => keys
                    .clone()
                    .into_array()
                    .iter()
                    .filter_map(Value::as_string)
                    .collect(),
                None => Vec::new(),
            };
            for key in &keys {
                self.call(&["DEL", key]).await?;
            }
            cursor = parts.first().and_then(Value::as_string).unwrap_or_default();
            if cursor == "0" || cursor.is_empty() {
                return Ok(());
            }
        }
    }

    /// The connection itself, for what is no plain command.
    pub(crate) fn client(&self) -> &Client {
        &self.0
    }

    pub(crate) async fn quit(&self) {
        // Whether the goodbye arrived changes nothing.
        let _ = self.0.quit().await;
    }
}

/// A number for an order that no other order has.
pub(crate) fn order_id() -> i64 {
    rand::random_range(1..i64::MAX)
}

/// Lays the two bare tables anew. Nothing in them guards anything, except, where asked for, the
/// index that makes a consumer idempotent.
pub(crate) async fn lay(
    pool: &PgPool,
    voucher: i64,
    stock: i64,
    unique: bool,
) -> Result<(), RoadError> {
    sqlx::raw_sql(
        "drop table if exists voucher, voucher_order; \
         create table voucher (voucher_id bigint primary key, stock bigint not null, version bigint not null default 0); \
         create table voucher_order (row_id bigint generated always as identity primary key, \
           order_id bigint not null, user_id bigint not null, voucher_id bigint not null); \
         create index on voucher_order (voucher_id, user_id)",
    )
    .execute(pool)
    .await?;
    if unique {
        sqlx::raw_sql("create unique index on voucher_order (user_id, voucher_id)")
            .execute(pool)
            .await?;
    }
    sqlx::query("insert into voucher (voucher_id, stock) values ($1, $2)")
        .bind(voucher)
        .bind(stock)
        .execute(pool)
        .await?;
    Ok(())
}

/// Writes the row of an order.
pub(crate) async fn insert<'e, E: sqlx::PgExecutor<'e>>(
    executor: E,
    order: i64,
    user: i64,
    voucher: i64,
) -> Result<u64, RoadError> {
    let done = sqlx::query(
        "insert into voucher_order (order_id, user_id, voucher_id) values ($1, $2, $3) on conflict do nothing",
    )
    .bind(order)
    .bind(user)
    .bind(voucher)
    .execute(executor)
    .await?;
    Ok(done.rows_affected())
}

/// Writes an order that was decided elsewhere, in one transaction: the row, then the stock of a
/// row really written. Without the unique index every call writes.
pub(crate) async fn record(
    pool: &PgPool,
    order: i64,
    user: i64,
    voucher: i64,
) -> Result<(), RoadError> {
    let mut tx = pool.begin().await?;
    if insert(&mut *tx, order, user, voucher).await? > 0 {
        sqlx::query("update voucher set stock = stock - 1 where voucher_id = $1")
            .bind(voucher)
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await?;
    Ok(())
}
