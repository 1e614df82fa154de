//! The limit: programs that do what the product does and nothing else, each in a process of its own.
//!
//! The same libraries, the same Redis, the same tables under the same constraints; one cookie,
//! one form, one script, one statement. No sessions, no marks, no epochs, no log, no metrics, no
//! headers: what those cost is the distance that is measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Form, Json, Router};
use fred::clients::{Client, Pool};
use fred::prelude::{ClientLike, Config};
use fred::types::{Builder, ClusterHash, CustomCommand, Value};
use futures::future::join_all;
use http::{HeaderMap, header};
use seckill::{Consumer, ConsumerConfig, Lane, Shop, ShopConfig};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::LimitsError;
use crate::report::say;

/// The variable that hands a process its task; it holds passwords, so no argument does.
pub(super) const TASK: &str = "SECKILL_BARE";
/// As many as the product has.
const CONNECTIONS: usize = 4;
/// As many as the product's consumer takes at a time.
const BATCH: &str = "256";

const BUY: &str = "
local s = redis.call('HMGET', KEYS[1], 'stock', 'begin_ms', 'end_ms')
local earlier = redis.call('HGET', KEYS[2], ARGV[2])
if earlier then return 2 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now >= tonumber(s[3]) then return 4 end
if now < tonumber(s[2]) then return 3 end
if tonumber(s[1]) <= 0 then return 1 end
redis.call('XADD', KEYS[3], '*', 'order_id', ARGV[1], 'user_id', ARGV[2], 'at', string.format('%d', now))
redis.call('HINCRBY', KEYS[1], 'stock', -1)
redis.call('HSET', KEYS[2], ARGV[2], ARGV[1])
return 0";

const PERSIST: &str = "with written as (
    insert into voucher_order (order_id, user_id, voucher_id, state, admitted_ms, settled_ms)
    select o, u, $4, 'confirmed', a, $5 from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as t (o, u, a)
    on conflict do nothing returning 1)
  update voucher set stock = stock - (select count(*) from written) where voucher_id = $4";

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Work {
    /// Answers `POST /api/buy` without asking anybody.
    Post,
    /// Asks one script.
    Script,
    /// The same, and a group's consumer writes batches.
    Whole,
    /// Answers `GET /` with so many bytes.
    Page(usize),
    /// Writes a backlog that is there, and tells how long that took.
    Drain,
    /// The product's consumer does that.
    ProductDrain,
}

/// A process's task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) work: Work,
    pub(super) database_url: String,
    pub(super) redis_url: String,
    pub(super) prefix: String,
    pub(super) voucher: i64,
    /// Entries of a backlog.
    pub(super) entries: usize,
}

impl Task {
    pub(super) fn key(&self, rest: &str) -> String {
        format!("{}:{{bare}}:{}:{rest}", self.prefix, self.voucher)
    }
}

/// Redis, by plain commands on as many connections as the product has.
#[derive(Clone)]
pub(super) struct Redis(Pool);

impl Redis {
    pub(super) async fn open(url: &str) -> Result<Self, LimitsError> {
        let pool = Builder::from_config(Config::from_url(url)?).build_pool(CONNECTIONS)?;
        pool.init().await?;
        Ok(Self(pool))
    }

    /// One of the connections, for a command that blocks.
    fn own(&self) -> Client {
        self.0.next().clone()
    }

    pub(super) async fn call(&self, words: Vec<String>) -> Result<Value, LimitsError> {
        call(&self.own(), words).await
    }

    /// Bytes that Redis uses now.
    pub(super) async fn memory(&self) -> Result<u64, LimitsError> {
        let told = self.call(words(&["INFO", "memory"])).await?;
        let told = told.as_string().unwrap_or_default();
        let line = told
            .lines()
            .find_map(|line| line.strip_prefix("used_memory:"));
        line.and_then(|bytes| bytes.trim().parse().ok())
            .ok_or_else(|| LimitsError::Broken("Redis does not tell its memory".into()))
    }

    /// The same when it no longer falls: what is acknowledged is removed a moment later.
    pub(super) async fn settled_memory(&self) -> Result<u64, LimitsError> {
        let mut before = self.memory().await?;
        loop {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let now = self.memory().await?;
            if now + now / 1_000 >= before {
                return Ok(now);
            }
            before = now;
        }
    }

    /// Removes every key that begins with this.
    pub(super) async fn forget(&self, prefix: &str) -> Result<(), LimitsError> {
        let pattern = format!("{prefix}*");
        let mut cursor = "0".to_owned();
        loop {
            let scan = ["SCAN", &cursor, "MATCH", &pattern, "COUNT", "1000"];
            let mut parts = self.call(words(&scan)).await?.into_array().into_iter();
            cursor = parts
                .next()
                .and_then(|cursor| cursor.as_string())
                .unwrap_or_default();
            for key in parts.next().unwrap_or(Value::Null).into_array() {
                let key = key.as_string().unwrap_or_default();
                self.call(words(&["UNLINK", &key])).await?;
            }
            if cursor == "0" || cursor.is_empty() {
                return Ok(());
            }
        }
    }

    pub(super) async fn quit(&self) {
        // Whether the goodbye arrived changes nothing.
        let _ = self.0.quit().await;
    }
}

async fn call(client: &Client, mut words: Vec<String>) -> Result<Value, LimitsError> {
    let name = words.remove(0);
    let blocks = name == "XREADGROUP";
    let command = CustomCommand::new(name, ClusterHash::FirstKey, blocks);
    Ok(client.custom(command, words).await?)
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

/// The bare decision.
#[derive(Clone)]
pub(super) struct Buy {
    redis: Redis,
    sha: String,
    keys: [String; 3],
    next: Arc<AtomicI64>,
}

impl Buy {
    pub(super) async fn open(redis: Redis, task: &Task) -> Result<Self, LimitsError> {
        // The script has to be known on each connection's server: it is one.
        let sha = redis.call(words(&["SCRIPT", "LOAD", BUY])).await?;
        let sha = sha
            .as_string()
            .ok_or_else(|| LimitsError::Broken("SCRIPT LOAD gave no digest".into()))?;
        Ok(Self {
            redis,
            sha,
            keys: ["sale", "buyers", "orders"].map(|rest| task.key(rest)),
            next: Arc::new(AtomicI64::new(rand::random_range(1..i64::MAX / 2))),
        })
    }

    /// Decides; whether there is an order.
    pub(super) async fn decide(&self, user: i64) -> Result<bool, LimitsError> {
        let [sale, buyers, orders] = &self.keys;
        let order = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let call = [
            "EVALSHA",
            &self.sha,
            "3",
            sale,
            buyers,
            orders,
            &order,
            &user.to_string(),
        ];
        Ok(self.redis.call(words(&call)).await?.as_i64() == Some(0))
    }
}

/// Lays a bare sale anew.
pub(super) async fn lay(redis: &Redis, task: &Task, stock: i64) -> Result<(), LimitsError> {
    for key in ["sale", "buyers", "orders"] {
        redis.call(words(&["DEL", &task.key(key)])).await?;
    }
    let (sale, stock) = (task.key("sale"), stock.to_string());
    let fields = [
        "HSET",
        &sale,
        "stock",
        &stock,
        "begin_ms",
        "0",
        "end_ms",
        "9999999999999",
    ];
    redis.call(words(&fields)).await?;
    let group = [
        "XGROUP",
        "CREATE",
        &task.key("orders"),
        "g",
        "0",
        "MKSTREAM",
    ];
    redis.call(words(&group)).await?;
    Ok(())
}

#[derive(Deserialize)]
struct Ask {
    voucher_id: String,
}

#[derive(Serialize)]
struct Answer {
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    order_id: Option<String>,
}

#[derive(Clone)]
struct Program {
    task: Arc<Task>,
    buy: Option<Buy>,
}

/// Whose the cookie is; it says so itself.
fn user(headers: &HeaderMap) -> Option<i64> {
    let cookies = headers.get(header::COOKIE)?.to_str().ok()?;
    let mut pairs = cookies.split("; ").filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| *name == "user")?.1.parse().ok()
}

async fn answer(
    State(program): State<Program>,
    headers: HeaderMap,
    Form(ask): Form<Ask>,
) -> Result<Json<Answer>, http::StatusCode> {
    let user = user(&headers).ok_or(http::StatusCode::UNAUTHORIZED)?;
    let voucher: i64 = ask
        .voucher_id
        .parse()
        .map_err(|_| http::StatusCode::BAD_REQUEST)?;
    if voucher != program.task.voucher {
        return Err(http::StatusCode::NOT_FOUND);
    }
    let admitted = match &program.buy {
        Some(buy) => buy
            .decide(user)
            .await
            .map_err(|_| http::StatusCode::SERVICE_UNAVAILABLE)?,
        None => false,
    };
    Ok(Json(Answer {
        outcome: if admitted { "admitted" } else { "sold_out" },
        order_id: admitted.then(|| user.to_string()),
    }))
}

/// Does its task until its standard input ends.
///
/// # Errors
/// When a store can't be reached.
pub async fn child() -> Result<(), LimitsError> {
    let task = std::env::var(TASK)
        .map_err(|_| LimitsError::Broken("this command is for the limits themselves".into()))?;
    let task: Task =
        serde_json::from_str(&task).map_err(|error| LimitsError::Broken(error.to_string()))?;
    match task.work {
        Work::Drain => {
            let redis = Redis::open(&task.redis_url).await?;
            let pool = pool(&task.database_url).await?;
            let begun = Instant::now();
            consume(&redis, &pool, &task, Some(task.entries)).await?;
            say(&format!("{}", begun.elapsed().as_secs_f64()));
            Ok(())
        }
        Work::ProductDrain => product_drain(&task).await,
        Work::Post | Work::Script | Work::Whole | Work::Page(_) => serve(task).await,
    }
}

async fn serve(task: Task) -> Result<(), LimitsError> {
    let task = Arc::new(task);
    let redis = match task.work {
        Work::Script | Work::Whole => Some(Redis::open(&task.redis_url).await?),
        _ => None,
    };
    let buy = match &redis {
        Some(redis) => Some(Buy::open(redis.clone(), &task).await?),
        None => None,
    };
    let mut router = Router::new().route("/api/buy", post(answer));
    if let Work::Page(bytes) = task.work {
        let page = bytes::Bytes::from("x".repeat(bytes));
        let html = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
        router = router.route("/", get(async move || (html, page.clone())));
    }
    let program = Program {
        task: Arc::clone(&task),
        buy,
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    say(&listener.local_addr()?.to_string());
    let writing = async {
        match (&redis, task.work) {
            (Some(redis), Work::Whole) => {
                let pool = pool(&task.database_url).await?;
                consume(redis, &pool, &task, None).await
            }
            _ => std::future::pending().await,
        }
    };
    let ended = async {
        let mut rest = Vec::new();
        // The parent's end of the pipe closes, however it ends.
        let _ = tokio::io::stdin().read_to_end(&mut rest).await;
    };
    tokio::select! {
        served = axum::serve(listener, router.with_state(program)) => served?,
        wrote = writing => wrote?,
        () = ended => {}
    }
    Ok(())
}

async fn pool(url: &str) -> Result<PgPool, LimitsError> {
    Ok(PgPoolOptions::new().max_connections(2).connect(url).await?)
}

/// Reads batches and writes each in one statement, until so many are written.
async fn consume(
    redis: &Redis,
    pool: &PgPool,
    task: &Task,
    mut left: Option<usize>,
) -> Result<(), LimitsError> {
    // A connection of its own: it blocks.
    let client = Builder::from_config(Config::from_url(&task.redis_url)?).build()?;
    client.init().await?;
    let stream = task.key("orders");
    let read = [
        "XREADGROUP",
        "GROUP",
        "g",
        "c",
        "COUNT",
        BATCH,
        "BLOCK",
        "100",
        "STREAMS",
        &stream,
        ">",
    ];
    while left != Some(0) {
        let reply = call(&client, words(&read)).await?;
        let batch = Batch::of(&reply)?;
        if batch.entries.is_empty() {
            continue;
        }
        sqlx::query(PERSIST)
            .bind(&batch.orders)
            .bind(&batch.users)
            .bind(&batch.at)
            .bind(task.voucher)
            .bind(batch.at[0])
            .execute(pool)
            .await?;
        let count = batch.entries.len();
        let (mut ack, mut del) = (words(&["XACK", &stream, "g"]), words(&["XDEL", &stream]));
        ack.extend(batch.entries.iter().cloned());
        del.extend(batch.entries);
        for done in join_all([redis.call(ack), redis.call(del)]).await {
            done?;
        }
        left = left.map(|left| left.saturating_sub(count));
    }
    Ok(())
}

#[derive(Default)]
struct Batch {
    entries: Vec<String>,
    orders: Vec<i64>,
    users: Vec<i64>,
    at: Vec<i64>,
}

impl Batch {
    fn of(reply: &Value) -> Result<Self, LimitsError> {
        let broken = || LimitsError::Broken("XREADGROUP answered in another form".into());
        let mut batch = Self::default();
        // Nothing in time, or one stream with its entries: a map in one protocol, pairs in the other.
        let entries = match reply.clone() {
            Value::Null => return Ok(batch),
            Value::Map(streams) => streams.inner().into_values().next(),
            Value::Array(streams) => match streams.into_iter().next() {
                Some(Value::Array(mut pair)) => pair.pop(),
                _ => None,
            },
            _ => None,
        };
        for entry in entries.ok_or_else(broken)?.into_array() {
            let mut parts = entry.into_array().into_iter();
            let (Some(id), Some(fields)) = (parts.next(), parts.next()) else {
                return Err(broken());
            };
            batch.entries.push(id.as_string().ok_or_else(broken)?);
            let fields = fields.into_array();
            let number = |name: &str| {
                let at = fields
                    .iter()
                    .position(|field| field.as_str().as_deref() == Some(name))?;
                fields.get(at + 1)?.as_i64()
            };
            batch.orders.push(number("order_id").ok_or_else(broken)?);
            batch.users.push(number("user_id").ok_or_else(broken)?);
            batch.at.push(number("at").ok_or_else(broken)?);
        }
        Ok(batch)
    }
}

/// The product's consumer on a backlog of its own, in the same kind of process.
async fn product_drain(task: &Task) -> Result<(), LimitsError> {
    let shop = shop(task, CONNECTIONS).await?;
    let mut consumer = Consumer::open(&shop, Lane(0), "limits", ConsumerConfig::default()).await?;
    let begun = Instant::now();
    let mut left = task.entries;
    while left > 0 {
        match consumer.step().await {
            Ok(step) => left = left.saturating_sub(step.persisted.len()),
            // Its connection is being made.
            Err(error) if error.is_transient() => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => return Err(error.into()),
        }
        if begun.elapsed() > Duration::from_secs(120) {
            return Err(LimitsError::Broken(format!("{left} entries were left")));
        }
    }
    say(&format!("{}", begun.elapsed().as_secs_f64()));
    shop.close().await;
    Ok(())
}

/// The product's domain on a new database, whose tables it makes.
pub(super) async fn migrated(task: &Task) -> Result<Shop, LimitsError> {
    let mut config = ShopConfig::new(&task.database_url, &task.redis_url);
    config.prefix.clone_from(&task.prefix);
    let shop = Shop::open(config).await?;
    shop.wait_for_redis(Duration::from_secs(60)).await?;
    shop.migrate().await?;
    Ok(shop)
}

/// The product's domain on a task's stores.
pub(super) async fn shop(task: &Task, connections: usize) -> Result<Shop, LimitsError> {
    const PATIENCE: Duration = Duration::from_secs(60);
    let mut config = ShopConfig::new(&task.database_url, &task.redis_url);
    config.prefix.clone_from(&task.prefix);
    config.redis_connections = connections;
    config.buy_timeout = Duration::from_secs(10);
    let shop = Shop::open(config).await?;
    shop.wait_for_redis(PATIENCE).await?;
    shop.wait_until_selling(PATIENCE).await?;
    Ok(shop)
}
