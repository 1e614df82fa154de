//! Every setting of the process: one environment variable and one flag each.
//!
//! [`Settings`] is what was typed; [`Config`] is what holds after it was
//! checked. Everything else takes a [`Config`] and trusts it, so a setting that
//! is malformed or contradicts another is named at start and nowhere later.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use clap::{Args, ValueEnum};
use fred::types::config::{Config as RedisConfig, ServerConfig};
use ipnet::IpNet;
use seckill::{ConsumerConfig, ShopConfig};

/// The settings as entered. `--help` shows each with its variable and default.
#[derive(Debug, Clone, Args)]
pub struct Settings {
    /// Address that web pages and the API are served on; port 0 takes a free one
    #[arg(
        long,
        env = "SECKILL_ADDR",
        default_value = "127.0.0.1:3000",
        global = true
    )]
    pub addr: SocketAddr,
    /// Address for /livez, /readyz and /metrics of `worker`, which serves nothing without it
    #[arg(long, env = "SECKILL_WORKER_ADDR", global = true)]
    pub worker_addr: Option<SocketAddr>,
    /// URL of PostgreSQL, postgres://user@host:port/database
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, global = true)]
    pub database_url: Option<String>,
    /// URL of the Redis that decides, redis://host:port or redis-cluster://…
    #[arg(long, env = "REDIS_URL", hide_env_values = true, global = true)]
    pub redis_url: Option<String>,
    /// URL of the Redis that holds sessions; by default the next database number of REDIS_URL
    #[arg(long, env = "SESSION_REDIS_URL", hide_env_values = true, global = true)]
    pub session_redis_url: Option<String>,
    /// What every key in Redis begins with
    #[arg(long, env = "SECKILL_PREFIX", default_value = "seckill", global = true)]
    pub prefix: String,
    /// How many lanes new sales are spread over: 1 on one Redis, several on a cluster
    #[arg(long, env = "SECKILL_LANES", default_value_t = 1, global = true)]
    pub lanes: u16,
    /// Order ids that a process leases at a time
    #[arg(long, env = "SECKILL_ID_BLOCK", default_value_t = 1000, global = true)]
    pub id_block: u32,
    /// Connections to Redis for decisions
    #[arg(
        long,
        env = "SECKILL_REDIS_CONNECTIONS",
        default_value_t = 4,
        global = true
    )]
    pub redis_connections: usize,
    /// Connections to PostgreSQL for pages and the console; consumers have their own
    #[arg(
        long,
        env = "SECKILL_POSTGRES_CONNECTIONS",
        default_value_t = 10,
        global = true
    )]
    pub postgres_connections: u32,
    /// Milliseconds after which a purchase that Redis does not answer is refused with 503
    #[arg(
        long,
        env = "SECKILL_BUY_TIMEOUT_MS",
        default_value_t = 2000,
        global = true
    )]
    pub buy_timeout_ms: u64,
    /// Milliseconds that what viewers are shown may be old, one read of Redis per sale serving all of them; 0 asks each time
    #[arg(long, env = "SECKILL_SHOW_MS", default_value_t = 250, value_parser = clap::value_parser!(u64).range(..=10_000), global = true)]
    pub show_ms: u64,
    /// Milliseconds an entry stays idle before another consumer claims it from a dead one
    #[arg(
        long,
        env = "SECKILL_CLAIM_AFTER_MS",
        default_value_t = 5000,
        global = true
    )]
    pub claim_after_ms: u64,
    /// Milliseconds a consumer waits for new entries in one read
    #[arg(long, env = "SECKILL_BLOCK_MS", default_value_t = 1000, global = true)]
    pub block_ms: u64,
    /// Most orders persisted in one transaction
    #[arg(long, env = "SECKILL_BATCH", default_value_t = 256, global = true)]
    pub batch: usize,
    /// Failed tries after which an entry becomes a dead letter
    #[arg(long, env = "SECKILL_MAX_ATTEMPTS", default_value_t = 5, global = true)]
    pub max_attempts: u32,
    /// Milliseconds between two rounds of the reconciler
    #[arg(
        long,
        env = "SECKILL_RECONCILE_MS",
        default_value_t = 1000,
        global = true
    )]
    pub reconcile_ms: u64,
    /// Hours after its end that a sale stays in Redis, so that a late retry still gets its order id
    #[arg(long, env = "SECKILL_HOLD_HOURS", default_value_t = 24, global = true)]
    pub hold_hours: u32,
    /// Proxies whose X-Forwarded-For and request ids are believed: addresses or networks, by comma
    #[arg(
        long,
        env = "SECKILL_TRUSTED_PROXIES",
        value_delimiter = ',',
        global = true
    )]
    pub trusted_proxies: Vec<String>,
    /// Requests served at once; any beyond is answered 503 immediately
    #[arg(
        long,
        env = "SECKILL_MAX_CONCURRENT",
        default_value_t = 2048,
        global = true
    )]
    pub max_concurrent: usize,
    /// Milliseconds after which a request is given up with 503
    #[arg(
        long,
        env = "SECKILL_REQUEST_TIMEOUT_MS",
        default_value_t = 15_000,
        global = true
    )]
    pub request_timeout_ms: u64,
    /// Milliseconds that requests under way have to end after SIGTERM
    #[arg(long, env = "SECKILL_STOP_MS", default_value_t = 10_000, global = true)]
    pub stop_ms: u64,
    /// Folder with the browser's bundles, made by `script/bundle`
    #[arg(long, env = "SECKILL_DIST", default_value = "dist", global = true)]
    pub dist: PathBuf,
    /// Whether the session cookie is for TLS only; `auto` says no on a loopback address
    #[arg(
        long,
        env = "SECKILL_SECURE_COOKIE",
        value_enum,
        default_value = "auto",
        global = true
    )]
    pub secure_cookie: SecureCookie,
    /// Days without a visit after which a session ends
    #[arg(long, env = "SECKILL_SESSION_DAYS", default_value_t = 7, global = true)]
    pub session_days: u32,
    /// How long a process remembers a session that it looked up; 0: not at all. A session that
    /// is ended through another process is recognised for as long
    #[arg(
        long,
        env = "SECKILL_SESSION_CACHE_MS",
        default_value_t = 3000,
        global = true
    )]
    pub session_cache_ms: u64,
    /// Start although Redis or PostgreSQL cannot keep the promise (1 or true)
    #[arg(long = "unsafe", env = "SECKILL_UNSAFE", value_parser = clap::builder::BoolishValueParser::new(),
          num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", global = true)]
    pub unsafe_ground: bool,
    /// What is logged: a level, or targets with levels
    #[arg(long, env = "SECKILL_LOG", default_value = "info", global = true)]
    pub log: String,
}

/// The longest that a session may be remembered, in milliseconds.
const MOST_REMEMBERED_MS: u64 = 30_000;

/// When the session cookie carries Secure and the `__Host-` name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SecureCookie {
    /// On, except on a loopback address.
    Auto,
    /// Always: the site is served over TLS, by a proxy in front.
    On,
    /// Never: the site is plain HTTP.
    Off,
}

/// Settings that passed every check.
#[derive(Clone)]
pub struct Config {
    /// Where web pages and the API are served.
    pub addr: SocketAddr,
    /// Where a `worker` answers health checks, if at all.
    pub worker_addr: Option<SocketAddr>,
    /// How the domain is opened.
    pub shop: ShopConfig,
    /// The Redis of the sessions.
    pub session_redis: RedisConfig,
    /// Days without a visit after which a session ends.
    pub session_days: u32,
    /// How long a session that was looked up is remembered.
    pub session_cache: Duration,
    /// How each consumer works.
    pub consumer: ConsumerConfig,
    /// Time between two rounds of the reconciler.
    pub reconcile: Duration,
    /// Networks whose forwarded headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Requests served at once.
    pub max_concurrent: usize,
    /// Time a request may take.
    pub request_timeout: Duration,
    /// Time that requests under way have to end at the stop.
    pub stop_within: Duration,
    /// Folder of the browser's bundles.
    pub dist: PathBuf,
    /// Whether the site is served over TLS.
    pub secure: bool,
    /// Whether an unsafe ground is accepted.
    pub unsafe_ground: bool,
}

impl fmt::Debug for Config {
    /// Without the URLs, which may hold passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("addr", &self.addr)
            .finish_non_exhaustive()
    }
}

/// What is wrong with the settings, one sentence each.
#[derive(Debug)]
pub struct Contradictions(Vec<String>);

impl fmt::Display for Contradictions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Contradictions {}

impl Settings {
    /// Checks the settings against each other.
    ///
    /// # Errors
    ///
    /// Every contradiction and malformed value found, not only the first.
    pub fn check(&self) -> Result<Config, Contradictions> {
        let mut wrong = Vec::new();
        let database_url = required(
            &self.database_url,
            "DATABASE_URL",
            "postgres://…",
            &mut wrong,
        );
        let redis_url = required(&self.redis_url, "REDIS_URL", "redis://…", &mut wrong);
        let session_redis = self.session_redis(&redis_url, &mut wrong);
        let trusted_proxies = self.proxies(&mut wrong);
        self.check_numbers(&mut wrong);
        if self.prefix.is_empty() || self.prefix.contains(['{', '}', ' ', '\n']) {
            wrong.push(format!(
                "SECKILL_PREFIX is {:?}: it must be a word without braces, which mark the lane in every key",
                self.prefix
            ));
        }
        let Some(session_redis) = session_redis.filter(|_| wrong.is_empty()) else {
            return Err(Contradictions(wrong));
        };
        let mut shop = ShopConfig::new(&database_url, &redis_url);
        shop.prefix = self.prefix.clone();
        shop.lanes = self.lanes;
        shop.id_block = self.id_block;
        shop.redis_connections = self.redis_connections;
        shop.pg_connections = self.postgres_connections;
        shop.buy_timeout = Duration::from_millis(self.buy_timeout_ms);
        shop.show_for = Duration::from_millis(self.show_ms);
        shop.hold_after_end = Duration::from_secs(u64::from(self.hold_hours) * 3_600);
        shop.allow_unsafe = self.unsafe_ground;
        Ok(Config {
            addr: self.addr,
            worker_addr: self.worker_addr,
            shop,
            session_redis,
            session_days: self.session_days,
            session_cache: Duration::from_millis(self.session_cache_ms),
            consumer: ConsumerConfig {
                batch: self.batch,
                block: Duration::from_millis(self.block_ms),
                claim_after: Duration::from_millis(self.claim_after_ms),
                max_attempts: self.max_attempts,
            },
            reconcile: Duration::from_millis(self.reconcile_ms),
            trusted_proxies,
            max_concurrent: self.max_concurrent,
            request_timeout: Duration::from_millis(self.request_timeout_ms),
            stop_within: Duration::from_millis(self.stop_ms),
            dist: self.dist.clone(),
            secure: match self.secure_cookie {
                SecureCookie::Auto => !self.addr.ip().is_loopback(),
                SecureCookie::On => true,
                SecureCookie::Off => false,
            },
            unsafe_ground: self.unsafe_ground,
        })
    }

    fn check_numbers(&self, wrong: &mut Vec<String>) {
        for (name, value) in [
            ("SECKILL_LANES", u64::from(self.lanes)),
            ("SECKILL_ID_BLOCK", u64::from(self.id_block)),
            ("SECKILL_REDIS_CONNECTIONS", self.redis_connections as u64),
            (
                "SECKILL_POSTGRES_CONNECTIONS",
                u64::from(self.postgres_connections),
            ),
            ("SECKILL_BUY_TIMEOUT_MS", self.buy_timeout_ms),
            ("SECKILL_BLOCK_MS", self.block_ms),
            ("SECKILL_BATCH", self.batch as u64),
            ("SECKILL_MAX_ATTEMPTS", u64::from(self.max_attempts)),
            ("SECKILL_RECONCILE_MS", self.reconcile_ms),
            ("SECKILL_MAX_CONCURRENT", self.max_concurrent as u64),
            ("SECKILL_REQUEST_TIMEOUT_MS", self.request_timeout_ms),
            ("SECKILL_SESSION_DAYS", u64::from(self.session_days)),
        ] {
            if value == 0 {
                wrong.push(format!("{name} is 0: it must be at least 1"));
            }
        }
        if self.session_cache_ms > MOST_REMEMBERED_MS {
            wrong.push(format!(
                "SECKILL_SESSION_CACHE_MS is {}: a session that was ended elsewhere must not live longer than {MOST_REMEMBERED_MS}",
                self.session_cache_ms
            ));
        }
        if self.batch > 10_000 {
            wrong.push(format!(
                "SECKILL_BATCH is {}: one transaction takes at most 10000 orders",
                self.batch
            ));
        }
        if self.claim_after_ms <= self.block_ms {
            wrong.push(format!(
                "SECKILL_CLAIM_AFTER_MS ({}) is not above SECKILL_BLOCK_MS ({}): a consumer waiting for entries would count as dead",
                self.claim_after_ms, self.block_ms
            ));
        }
        if self.buy_timeout_ms >= self.request_timeout_ms {
            wrong.push(format!(
                "SECKILL_BUY_TIMEOUT_MS ({}) is not below SECKILL_REQUEST_TIMEOUT_MS ({}): a purchase would be cut off without its answer",
                self.buy_timeout_ms, self.request_timeout_ms
            ));
        }
        if self.worker_addr == Some(self.addr) && self.addr.port() != 0 {
            wrong.push(format!(
                "SECKILL_WORKER_ADDR and SECKILL_ADDR are both {}: one port has one owner",
                self.addr
            ));
        }
    }

    fn session_redis(&self, redis_url: &str, wrong: &mut Vec<String>) -> Option<RedisConfig> {
        if redis_url.is_empty() {
            return None;
        }
        let main = parsed(redis_url, "REDIS_URL", wrong)?;
        let Some(url) = &self.session_redis_url else {
            if matches!(main.server, ServerConfig::Clustered { .. }) {
                wrong.push("SESSION_REDIS_URL is not set: a Redis Cluster has no second database for sessions".into());
                return None;
            }
            let database = main.database.unwrap_or(0).checked_add(1);
            return Some(RedisConfig { database, ..main });
        };
        let sessions = parsed(url, "SESSION_REDIS_URL", wrong)?;
        if sessions.server == main.server
            && sessions.database.unwrap_or(0) == main.database.unwrap_or(0)
        {
            wrong.push("SESSION_REDIS_URL names the same database as REDIS_URL: session keys carry no prefix, so they need one of their own".into());
            return None;
        }
        Some(sessions)
    }

    fn proxies(&self, wrong: &mut Vec<String>) -> Vec<IpNet> {
        let mut networks = Vec::new();
        for entry in self
            .trusted_proxies
            .iter()
            .map(|entry| entry.trim())
            .filter(|entry| !entry.is_empty())
        {
            match entry.parse::<IpNet>().or_else(|_| entry.parse::<IpAddr>().map(IpNet::from)) {
                Ok(network) => networks.push(network),
                Err(_) => wrong.push(format!(
                    "SECKILL_TRUSTED_PROXIES holds {entry:?}: it takes addresses (10.0.0.1) and networks (10.0.0.0/8)"
                )),
            }
        }
        networks
    }
}

fn required(value: &Option<String>, name: &str, form: &str, wrong: &mut Vec<String>) -> String {
    match value.as_deref().map(str::trim) {
        Some(value) if !value.is_empty() => value.to_owned(),
        _ => {
            wrong.push(format!("{name} is not set: it takes {form} (`script/services env` prints that of the private one)"));
            String::new()
        }
    }
}

fn parsed(url: &str, name: &str, wrong: &mut Vec<String>) -> Option<RedisConfig> {
    // The client library takes any scheme for a plain one.
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    if !["redis", "valkey"]
        .iter()
        .any(|known| scheme.starts_with(known))
    {
        wrong.push(format!(
            "{name} is not a Redis URL: it begins with redis://, rediss:// or redis-cluster://"
        ));
        return None;
    }
    // The URL may hold a password, so the message does not repeat it.
    RedisConfig::from_url(url)
        .map_err(|error| wrong.push(format!("{name} is not a Redis URL: {}", error.details())))
        .ok()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        settings: Settings,
    }

    fn check(flags: &[&str]) -> Result<Config, Contradictions> {
        checked("redis://h:1/2", flags)
    }

    fn checked(redis: &str, flags: &[&str]) -> Result<Config, Contradictions> {
        let redis = format!("--redis-url={redis}");
        let urls = ["t", "--database-url=postgres://h/d", &redis];
        Typed::parse_from(urls.iter().chain(flags)).settings.check()
    }

    #[test]
    fn sessions_live_in_the_next_database_by_default() {
        assert_eq!(check(&[]).unwrap().session_redis.database, Some(3));
    }

    #[test]
    fn sessions_in_the_database_of_the_sales_are_refused() {
        let error = check(&["--session-redis-url=redis://h:1/2"]).unwrap_err();
        assert!(error.to_string().contains("same database"), "{error}");
    }

    #[test]
    fn only_a_redis_url_is_one() {
        let error = check(&["--session-redis-url=http://h:1"]).unwrap_err();
        assert!(error.to_string().contains("not a Redis URL"), "{error}");
    }

    #[test]
    fn a_cluster_wants_its_own_place_for_sessions() {
        let error = checked("redis-cluster://h:1", &[]).unwrap_err();
        assert!(
            error.to_string().contains("SESSION_REDIS_URL is not set"),
            "{error}"
        );
    }

    #[test]
    fn every_contradiction_is_named_at_once() {
        let error = check(&[
            "--claim-after-ms=10",
            "--block-ms=10",
            "--batch=0",
            "--trusted-proxies=me",
        ])
        .unwrap_err();
        assert_eq!(error.to_string().lines().count(), 3, "{error}");
    }

    #[test]
    fn the_cookie_is_plain_on_loopback_only() {
        assert!(!check(&[]).unwrap().secure);
        assert!(check(&["--addr=0.0.0.0:80"]).unwrap().secure);
        assert!(
            !check(&["--addr=0.0.0.0:80", "--secure-cookie=off"])
                .unwrap()
                .secure
        );
    }
}
