//! Who is signed in, kept in a Redis database of its own.
//!
//! The layer looks nothing up by itself: a session is fetched when a page or a
//! server function asks for it, unless it was a moment ago, and written when it changed. So that a visit
//! does not cost a write, a session's end is moved at most once a day, by a page.
//! Redis being away is told at once (fail-fast, short timeouts), never waited for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use app::request::{SESSION_USER, SessionUser};
use axum::{extract::Request, middleware::Next, response::Response};
use fred::{
    clients::{Pool, WithOptions},
    prelude::{ClientLike, EventInterface},
    types::config::{
        Config as RedisConfig, ConnectionConfig, Options, PerformanceConfig, ReconnectPolicy,
        TcpConfig, UnresponsiveConfig,
    },
};
use http::{HeaderValue, header};
use tower_sessions::{
    Expiry, Session, SessionManagerLayer,
    cookie::{SameSite, time},
};
use tower_sessions_redis_store::RedisStore;
use tracing::{info, warn};

use crate::session_cache::Remembering;

/// A cookie of this name exists over plain HTTP too.
const PLAIN_NAME: &str = "sid";
/// Browsers take this name only with Secure, Path=/ and no Domain, so no
/// neighbouring host can plant it.
const SECURE_NAME: &str = "__Host-sid";

/// Day (since 1970) on which a session's end was last moved.
const RENEWED: &str = "day";

/// Connections for sessions: each carries many requests at once.
const CONNECTIONS: usize = 4;
const COMMAND_TIMEOUT: Duration = Duration::from_secs(2);
/// Commands that may wait on one connection; beyond it they fail at once.
const WAITING: usize = 10_000;

type Store = RedisStore<WithOptions<Pool>>;

/// The store of sessions and how their cookie looks.
#[derive(Debug, Clone)]
pub struct Sessions {
    pool: Pool,
    expiry: Expiry,
    secure: bool,
    remember: Duration,
}

impl Sessions {
    /// Prepares the connections. They are made, and made again, in the background.
    ///
    /// # Errors
    ///
    /// When the settings are impossible; not when Redis is away.
    pub fn open(redis: &RedisConfig, days: u32, secure: bool) -> Result<Self, fred::error::Error> {
        // A Redis that is away at start is waited for like one that goes away later.
        let config = RedisConfig {
            fail_fast: false,
            ..redis.clone()
        };
        let performance = PerformanceConfig {
            default_command_timeout: COMMAND_TIMEOUT,
            ..Default::default()
        };
        let connection = ConnectionConfig {
            connection_timeout: COMMAND_TIMEOUT,
            internal_command_timeout: COMMAND_TIMEOUT,
            max_command_buffer_len: WAITING,
            // A command in doubt is given up: its caller asks again.
            max_command_attempts: 1,
            unresponsive: UnresponsiveConfig {
                max_timeout: Some(2 * COMMAND_TIMEOUT),
                interval: Duration::from_secs(1),
            },
            tcp: TcpConfig {
                nodelay: Some(true),
                ..Default::default()
            },
            ..Default::default()
        };
        // 0 attempts means without end.
        let policy = ReconnectPolicy::new_exponential(0, 100, 2000, 2);
        let pool = Pool::new(
            config,
            Some(performance),
            Some(connection),
            Some(policy),
            CONNECTIONS,
        )?;
        pool.connect_pool();
        report(&pool);
        Ok(Self {
            pool,
            expiry: Expiry::OnInactivity(time::Duration::days(i64::from(days))),
            secure,
            remember: Duration::ZERO,
        })
    }

    /// The same, with what is looked up for a request remembered for this long.
    pub fn remembering(self, remember: Duration) -> Self {
        Self { remember, ..self }
    }

    /// The layer that gives each request its [`Session`].
    pub fn layer(&self) -> SessionManagerLayer<Remembering<Store>> {
        SessionManagerLayer::new(Remembering::new(self.store(), self.remember))
            .with_name(self.cookie_name())
            .with_secure(self.secure)
            .with_http_only(true)
            .with_same_site(SameSite::Lax)
            .with_path("/")
            .with_expiry(self.expiry)
    }

    /// Signs `user` in without a request, and returns the cookie as `name=value`.
    ///
    /// # Errors
    ///
    /// When Redis does not take the session.
    pub async fn sign_in(
        &self,
        user: &SessionUser,
    ) -> Result<String, tower_sessions::session::Error> {
        let session = Session::new(None, Arc::new(self.store()), Some(self.expiry));
        session.insert(SESSION_USER, user).await?;
        session.save().await?;
        let id = session.id().expect("a saved session has an id");
        Ok(format!("{}={id}", self.cookie_name()))
    }

    /// Waits until Redis answers.
    ///
    /// # Errors
    ///
    /// When it does not answer for a reason that waiting will not cure.
    pub async fn wait(&self) -> Result<(), fred::error::Error> {
        self.pool.wait_for_connect().await
    }

    /// How many connections are open.
    pub fn connected(&self) -> usize {
        self.pool
            .clients()
            .iter()
            .filter(|client| client.is_connected())
            .count()
    }

    /// Whether Redis answers.
    pub async fn ping(&self) -> bool {
        self.connected() > 0 && self.pool.ping::<()>(None).await.is_ok()
    }

    /// Closes the connections.
    pub async fn close(&self) {
        // What is left open ends with the process.
        let _ = self.pool.quit().await;
    }

    /// Without a connection a command fails at once; nothing queues up.
    fn store(&self) -> Store {
        let options = Options {
            fail_fast: true,
            max_attempts: Some(1),
            ..Default::default()
        };
        RedisStore::new(self.pool.with_options(&options))
    }

    fn cookie_name(&self) -> &'static str {
        if self.secure { SECURE_NAME } else { PLAIN_NAME }
    }
}

/// Says once that Redis went away and once that it is back.
fn report(pool: &Pool) {
    let Some(client) = pool.clients().first() else {
        return;
    };
    // The client reports every failed attempt; only the change is news.
    let away = Arc::new(AtomicBool::new(false));
    let back = Arc::clone(&away);
    client.on_error(move |(error, _)| {
        if !away.swap(true, Ordering::Relaxed) {
            warn!(%error, "the Redis of the sessions is away; nobody can be recognised until it is back");
        }
        async { Ok(()) }
    });
    client.on_reconnect(move |_| {
        if back.swap(false, Ordering::Relaxed) {
            info!("the Redis of the sessions answers again");
        }
        async { Ok(()) }
    });
}

/// Moves a session's end when a page is visited, at most once a day.
pub async fn renew(request: Request, next: Next) -> Response {
    let session = request.extensions().get::<Session>().cloned();
    let visited = !crate::forms::is_api(request.uri().path());
    let response = next.run(request).await;
    if let Some(session) = session.filter(|session| visited && session.id().is_some())
        && !response.status().is_server_error()
    {
        let today = time::OffsetDateTime::now_utc().unix_timestamp() / 86_400;
        // The page has fetched the session already; a stranger's is left alone.
        if matches!(session.get_value(SESSION_USER).await, Ok(Some(_)))
            && !matches!(session.get::<i64>(RENEWED).await, Ok(Some(day)) if day == today)
        {
            let _ = session.insert(RENEWED, today).await;
        }
    }
    response
}

/// Completes the cookie that ends a session: the session layer leaves out
/// Secure, and without it a browser ignores the removal of a `__Host-` name.
pub async fn complete_removal(mut response: Response) -> Response {
    let unfinished = |value: &HeaderValue| {
        let text = value.as_bytes();
        text.starts_with(b"__Host-sid=;")
    };
    if response
        .headers()
        .get_all(header::SET_COOKIE)
        .iter()
        .any(unfinished)
    {
        let others: Vec<_> = response
            .headers()
            .get_all(header::SET_COOKIE)
            .iter()
            .filter(|value| !unfinished(value))
            .cloned()
            .collect();
        let removal = HeaderValue::from_static(
            "__Host-sid=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure",
        );
        response.headers_mut().insert(header::SET_COOKIE, removal);
        for value in others {
            response.headers_mut().append(header::SET_COOKIE, value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_removal_of_a_host_cookie_is_secure() {
        let mut response = Response::default();
        let headers = response.headers_mut();
        headers.append(
            header::SET_COOKIE,
            HeaderValue::from_static("__Host-sid=; Path=/; Max-Age=0"),
        );
        headers.append(header::SET_COOKIE, HeaderValue::from_static("theme=dark"));
        let response = complete_removal(response).await;
        let cookies: Vec<_> = response
            .headers()
            .get_all(header::SET_COOKIE)
            .iter()
            .collect();
        assert_eq!(cookies.len(), 2);
        assert!(cookies[0].to_str().unwrap().ends_with("; Secure"));
    }
}
