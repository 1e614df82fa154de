//! The process: it serves the site, consumes the queue, or both.
//!
//! [`build`] prepares everything and takes the port; [`Server::run`] works until
//! it is told to stop. Tests do the same on port 0.

use std::{io, net::SocketAddr, sync::Arc};

use app::{AppState, Ground, Snapshot};
use axum::Router;
use seckill::{Overview, Shop};
use tokio::{net::TcpListener, sync::watch, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

mod address;
mod assets;
mod backoff;
pub mod commands;
pub mod config;
mod consumers;
mod edge;
mod forms;
pub mod ground;
mod health;
mod listening;
pub mod logging;
pub mod metrics;
mod migrations;
mod overload;
mod process;
mod reconciling;
mod refusal;
mod request_id;
pub mod router;
mod security;
mod session_cache;
pub mod sessions;
pub mod shutdown;
mod snapshot;

use assets::Assets;
use config::Config;
use edge::Edge;
use health::Health;
use metrics::Metrics;
use sessions::Sessions;

/// Which parts of the work this process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Pages and the API.
    Web,
    /// Consumers and the reconciler.
    Worker,
    /// Both.
    Both,
}

impl Role {
    fn serves(self) -> bool {
        self != Self::Worker
    }

    fn consumes(self) -> bool {
        self != Self::Web
    }
}

/// Why the process cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Redis or PostgreSQL cannot keep the promise.
    #[error(transparent)]
    Ground(#[from] ground::Unsafe),
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, #[source] io::Error),
    /// A URL that nothing can be opened with.
    #[error("cannot open the shop: {0}")]
    Open(#[from] seckill::OpenError),
    /// The same, for sessions.
    #[error("cannot open the sessions: {0}")]
    Sessions(#[source] fred::error::Error),
}

/// A process that is ready to run.
pub struct Server {
    role: Role,
    config: Config,
    shop: Shop,
    metrics: Arc<Metrics>,
    sessions: Option<Sessions>,
    snapshot: watch::Sender<Arc<Snapshot>>,
    ground: watch::Sender<Arc<Ground>>,
    web: Option<(TcpListener, Router)>,
    looked: bool,
}

/// Prepares a process: connections, ground, port, routes.
///
/// Redis or PostgreSQL being away is no error: the process comes up, says so, and
/// keeps trying.
///
/// # Errors
///
/// When the ground is unsafe or the port is taken.
pub async fn build(config: Config, role: Role) -> Result<Server, ServerError> {
    let metrics = Metrics::new();
    let shop = Shop::open(config.shop.clone()).await?;
    let reach = ground::Reach::of(&shop).await;
    let (ground, accepted) = watch::channel(Arc::new(Ground {
        accepted: config.unsafe_ground,
        findings: Vec::new(),
    }));
    let looked = ground::look(&shop, &ground).await?;
    if !looked {
        warn!("{}", reach.sentence());
    }
    let sessions = role
        .serves()
        .then(|| Sessions::open(&config.session_redis, config.session_days, config.secure));
    let sessions = sessions.transpose().map_err(ServerError::Sessions)?;
    let sessions = sessions.map(|sessions| sessions.remembering(config.session_cache));
    if let Some(sessions) = &sessions
        && timeout(ground::CONNECT, sessions.wait()).await.is_err()
        && reach.redis
    {
        warn!("the Redis of the sessions is away: nobody can be recognised until it is back");
    }
    let (snapshot, seen) = watch::channel(Arc::new(nothing_seen()));
    let health = Health {
        shop: shop.clone(),
        sessions: sessions.clone(),
        metrics: metrics.clone(),
    };
    let edge = Arc::new(Edge::new(&config, metrics.clone()));
    let web = match (&sessions, config.worker_addr) {
        (Some(sessions), _) => {
            let assets = Assets::open(&config.dist);
            let state = AppState {
                shop: shop.clone(),
                snapshot: seen,
                ground: accepted,
                bundles: Arc::new(assets.bundles()),
                secure: config.secure,
                staff: app::staff::Staff::default(),
                observe: metrics.clone(),
            };
            Some((
                listen(config.addr).await?,
                router::site(state, sessions, assets, health, edge),
            ))
        }
        (None, Some(addr)) => Some((listen(addr).await?, router::worker(health, edge))),
        (None, None) => None,
    };
    Ok(Server {
        role,
        config,
        shop,
        metrics,
        sessions,
        snapshot,
        ground,
        web,
        looked,
    })
}

impl Server {
    /// Where the process listens, if it does.
    pub fn address(&self) -> Option<SocketAddr> {
        self.web
            .as_ref()
            .and_then(|(listener, _)| listener.local_addr().ok())
    }

    /// The domain, for tests that look behind the answers.
    pub fn shop(&self) -> &Shop {
        &self.shop
    }

    /// The sessions, if the process serves pages.
    pub fn sessions(&self) -> Option<&Sessions> {
        self.sessions.as_ref()
    }

    /// Works until `stop`, then ends in order: no new requests, requests under way
    /// and batches in hand finished, connections closed.
    ///
    /// # Errors
    ///
    /// When the ground turns out unsafe or the listener breaks; the process has
    /// ended in order all the same.
    pub async fn run(self, stop: CancellationToken) -> Result<(), ServerError> {
        let mut tasks = JoinSet::new();
        if let Some(address) = self.address() {
            info!(%address, role = ?self.role, "serving");
        }
        self.start_ground(&mut tasks, &stop);
        self.start_work(&mut tasks, &stop);
        if let Some((listener, router)) = self.web {
            tasks.spawn(always_ok(listening::serve(
                listener,
                router,
                stop.clone(),
                self.config.stop_within,
            )));
        }
        let mut outcome = Ok(());
        while let Some(ended) = tasks.join_next().await {
            // One part that fails ends the others in order.
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(fault)) => {
                    stop.cancel();
                    outcome = Err(fault);
                }
                Err(panic) => {
                    error!(error = %panic, "a part of the process ended by a panic");
                    stop.cancel();
                }
            }
        }
        if let Some(sessions) = &self.sessions {
            sessions.close().await;
        }
        self.shop.close().await;
        info!("stopped");
        outcome
    }

    /// Looks at the ground when it could not be looked at yet, and at migrations.
    fn start_ground(&self, tasks: &mut JoinSet<Result<(), ServerError>>, stop: &CancellationToken) {
        let (shop, told, looked, stop) = (
            self.shop.clone(),
            self.ground.clone(),
            self.looked,
            stop.clone(),
        );
        tasks.spawn(async move {
            if !looked {
                ground::watch(&shop, &told, &stop).await?;
            }
            tokio::select! {
                () = migrations::warn_if_missing(&shop) => {}
                () = stop.cancelled() => {}
            }
            ground::keep_looking(&shop, &told, &stop).await;
            Ok(())
        });
    }

    fn start_work(&self, tasks: &mut JoinSet<Result<(), ServerError>>, stop: &CancellationToken) {
        let (shop, metrics) = (self.shop.clone(), self.metrics.clone());
        tasks.spawn(always_ok(snapshot::run(
            shop.clone(),
            metrics.clone(),
            self.snapshot.clone(),
            stop.clone(),
        )));
        if self.role.consumes() {
            let consumer = self.config.consumer.clone();
            tasks.spawn(always_ok(consumers::run(
                shop.clone(),
                consumer,
                metrics.clone(),
                stop.clone(),
            )));
            tasks.spawn(always_ok(reconciling::run(
                shop,
                self.config.reconcile,
                metrics,
                stop.clone(),
            )));
        }
    }
}

async fn always_ok(work: impl Future<Output = ()>) -> Result<(), ServerError> {
    work.await;
    Ok(())
}

async fn listen(addr: SocketAddr) -> Result<TcpListener, ServerError> {
    TcpListener::bind(addr)
        .await
        .map_err(|error| ServerError::Listen(addr, error))
}

/// What pages show before the first snapshot.
fn nothing_seen() -> Snapshot {
    let overview = Overview {
        lanes: Vec::new(),
        sales: Vec::new(),
        redis: false,
        postgres: false,
        workers: Vec::new(),
        at_ms: 0,
    };
    Snapshot {
        overview,
        pending: Vec::new(),
        dead: Vec::new(),
    }
}
