//! Every figure the process reports, in one place.
//!
//! Each field is a metric with a sentence and its labels. No label holds a
//! user, an order or anything else that a client chooses: the route is the
//! template of the router, never the path that was asked for.

use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64},
    },
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use seckill::{Overview, Persisted, Purchase, Reconciled, Step};

use crate::process;

/// The content type of [`Metrics::text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Seconds from under a millisecond to ten, for whatever a person waits for.
const SECONDS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// An order may wait for a database that is away, so its scale goes on.
const CONFIRM_SECONDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0,
];

type Count = Counter<u64, AtomicU64>;
type Whole = Gauge<i64, AtomicI64>;
type Real = Gauge<f64, AtomicU64>;

/// `outcome`: the answer to a purchase, as the API words it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

/// `lane`: a number of `SECKILL_LANES`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LaneLabel {
    lane: u16,
}

/// `route`: the router's template; `status`: 2xx, 3xx, 4xx or 5xx.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: String,
    status: &'static str,
}

/// `route`: the router's template.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: String,
}

/// `service`: redis, sessions or postgres.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Service {
    service: &'static str,
}

/// The metrics of one process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    admissions: Family<Outcome, Count>,
    admission_seconds: Histogram,
    persisted: Count,
    duplicates: Count,
    dead_lettered: Count,
    claims: Count,
    confirm_seconds: Histogram,
    in_flight: Family<LaneLabel, Whole>,
    pending: Family<LaneLabel, Whole>,
    pending_oldest: Family<LaneLabel, Real>,
    lag: Family<LaneLabel, Whole>,
    dead: Family<LaneLabel, Whole>,
    stream_length: Family<LaneLabel, Whole>,
    drift: Whole,
    drift_found: Count,
    restored: Count,
    up: Family<Service, Whole>,
    requests: Family<Answered, Count>,
    request_seconds: Family<Route, Histogram>,
    requests_open: Whole,
    overloaded: Count,
    panics: Count,
    sessions_connected: Whole,
}

impl Metrics {
    /// Registers every metric, at zero.
    pub fn new() -> Arc<Self> {
        let metrics = Self {
            registry: Registry::default(),
            admissions: Family::default(),
            admission_seconds: Histogram::new(SECONDS),
            persisted: Count::default(),
            duplicates: Count::default(),
            dead_lettered: Count::default(),
            claims: Count::default(),
            confirm_seconds: Histogram::new(CONFIRM_SECONDS),
            in_flight: Family::default(),
            pending: Family::default(),
            pending_oldest: Family::default(),
            lag: Family::default(),
            dead: Family::default(),
            stream_length: Family::default(),
            drift: Whole::default(),
            drift_found: Count::default(),
            restored: Count::default(),
            up: Family::default(),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            requests_open: Whole::default(),
            overloaded: Count::default(),
            panics: Count::default(),
            sessions_connected: Whole::default(),
        };
        Arc::new(metrics.registered())
    }

    fn registered(mut self) -> Self {
        let mut r = Registry::default();
        // The encoder appends `_total` to every counter.
        r.register(
            "seckill_admissions",
            "Purchases decided, by outcome",
            self.admissions.clone(),
        );
        r.register(
            "seckill_admission_seconds",
            "Time to decide a purchase",
            self.admission_seconds.clone(),
        );
        r.register(
            "seckill_orders_persisted",
            "Orders committed to PostgreSQL by this process",
            self.persisted.clone(),
        );
        r.register(
            "seckill_orders_duplicate",
            "Entries whose order was in PostgreSQL already",
            self.duplicates.clone(),
        );
        r.register(
            "seckill_dead_lettered",
            "Entries given up by this process",
            self.dead_lettered.clone(),
        );
        r.register(
            "seckill_claims",
            "Entries taken over from dead consumers",
            self.claims.clone(),
        );
        r.register(
            "seckill_confirm_seconds",
            "Time from admission to commit",
            self.confirm_seconds.clone(),
        );
        r.register(
            "seckill_in_flight",
            "Orders admitted and not yet acknowledged",
            self.in_flight.clone(),
        );
        r.register(
            "seckill_pending",
            "Entries delivered and not yet acknowledged",
            self.pending.clone(),
        );
        r.register(
            "seckill_pending_oldest_seconds",
            "Age of the oldest pending entry",
            self.pending_oldest.clone(),
        );
        r.register(
            "seckill_lag",
            "Entries not yet delivered; absent while Redis does not know",
            self.lag.clone(),
        );
        r.register(
            "seckill_dead",
            "Dead letters waiting to be settled",
            self.dead.clone(),
        );
        r.register(
            "seckill_stream_length",
            "Entries in the stream",
            self.stream_length.clone(),
        );
        r.register(
            "seckill_drift",
            "Sales whose conservation does not hold; 0 when balanced",
            self.drift.clone(),
        );
        r.register(
            "seckill_drift_found",
            "Rounds of the reconciler that found drift",
            self.drift_found.clone(),
        );
        r.register(
            "seckill_restored",
            "Entries that the reconciler wrote again from marks",
            self.restored.clone(),
        );
        r.register(
            "seckill_up",
            "Whether the service answers: 1 or 0",
            self.up.clone(),
        );
        r.register(
            "http_requests",
            "Requests answered, by route and status class",
            self.requests.clone(),
        );
        r.register(
            "http_request_seconds",
            "Time to answer a request, by route",
            self.request_seconds.clone(),
        );
        r.register(
            "http_requests_open",
            "Requests under way",
            self.requests_open.clone(),
        );
        r.register(
            "http_requests_overloaded",
            "Requests refused because the server was full",
            self.overloaded.clone(),
        );
        r.register(
            "http_panics",
            "Requests whose handler panicked",
            self.panics.clone(),
        );
        r.register(
            "sessions_connections",
            "Open connections to the Redis of the sessions",
            self.sessions_connected.clone(),
        );
        r.register_collector(Box::new(process::Collector));
        for outcome in Purchase::OUTCOMES {
            // Being looked at is what makes it appear, at zero.
            let _ = self.admissions.get_or_create(&Outcome { outcome });
        }
        self.registry = r;
        self
    }

    /// All metrics in the OpenMetrics text format.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(16 * 1024);
        if encode(&mut text, &self.registry).is_err() {
            text.clear();
            // Writing to a String cannot fail; an empty document is still valid.
            let _ = writeln!(text, "# EOF");
        }
        text
    }

    /// One request was answered.
    pub fn answered(&self, route: &str, status: http::StatusCode, seconds: f64) {
        let status = match status.as_u16() {
            200..300 => "2xx",
            300..400 => "3xx",
            400..500 => "4xx",
            _ => "5xx",
        };
        self.requests
            .get_or_create(&Answered {
                route: route.to_owned(),
                status,
            })
            .inc();
        self.request_seconds
            .get_or_create(&Route {
                route: route.to_owned(),
            })
            .observe(seconds);
    }

    /// A request came in; dropping the guard says that it left, however.
    pub fn enter(self: &Arc<Self>) -> Open {
        self.requests_open.inc();
        Open(Arc::clone(self))
    }

    /// A request was refused because the server is full.
    pub fn overloaded(&self) {
        self.overloaded.inc();
    }

    /// A handler panicked.
    pub fn panicked(&self) {
        self.panics.inc();
    }

    /// A consumer did a round.
    pub fn consumed(&self, step: &Step) {
        self.claims.inc_by(step.claimed as u64);
        self.duplicates.inc_by(step.duplicates as u64);
        self.dead_lettered.inc_by(step.dead.len() as u64);
        self.persisted.inc_by(step.persisted.len() as u64);
        for Persisted {
            admitted_ms,
            confirmed_ms,
            ..
        } in &step.persisted
        {
            // Two clocks (Redis and PostgreSQL) may disagree by a little.
            let milliseconds = u32::try_from(confirmed_ms - admitted_ms).unwrap_or(0);
            self.confirm_seconds
                .observe(f64::from(milliseconds) / 1000.0);
        }
    }

    /// The reconciler did a round that was its own.
    pub fn reconciled(&self, round: &Reconciled) {
        self.restored.inc_by(round.restored);
        if !round.drift.is_empty() {
            self.drift_found.inc();
        }
    }

    /// The background snapshot was taken.
    pub fn observed(&self, overview: &Overview) {
        self.reachable("redis", overview.redis);
        self.reachable("postgres", overview.postgres);
        if overview.redis && overview.postgres {
            self.drift.set(whole(
                overview.sales.iter().filter(|sale| !sale.balanced).count() as u64,
            ));
        }
        for lane in &overview.lanes {
            let label = LaneLabel { lane: lane.lane.0 };
            self.in_flight
                .get_or_create(&label)
                .set(whole(lane.in_flight));
            self.pending.get_or_create(&label).set(whole(lane.pending));
            self.dead.get_or_create(&label).set(whole(lane.dead));
            self.stream_length
                .get_or_create(&label)
                .set(whole(lane.stream_length));
            let oldest = u32::try_from(lane.oldest_pending_ms.unwrap_or(0)).unwrap_or(u32::MAX);
            self.pending_oldest
                .get_or_create(&label)
                .set(f64::from(oldest) / 1000.0);
            match lane.lag {
                Some(lag) => {
                    self.lag.get_or_create(&label).set(whole(lag));
                }
                // Unknown is not zero: the series is absent until it is known again.
                None => {
                    self.lag.remove(&label);
                }
            }
        }
    }

    /// Whether `service` answered when it was last asked.
    pub fn reachable(&self, service: &'static str, up: bool) {
        self.up
            .get_or_create(&Service { service })
            .set(i64::from(up));
    }

    /// How many connections the session pool has open.
    pub fn sessions_connected(&self, connections: usize) {
        self.sessions_connected.set(whole(connections as u64));
    }
}

impl app::Observe for Metrics {
    fn purchase(&self, outcome: &'static str, seconds: f64) {
        self.admissions.get_or_create(&Outcome { outcome }).inc();
        self.admission_seconds.observe(seconds);
    }
}

/// A request under way.
#[derive(Debug)]
pub struct Open(Arc<Metrics>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.requests_open.dec();
    }
}

fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
