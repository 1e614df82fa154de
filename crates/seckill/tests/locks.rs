//! The classical faults of locks on a lease, each with what happens without its cure, and with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fred::prelude::{Builder, Client, ClientLike, Config};
use fred::types::{ClusterHash, CustomCommand, Value};
use futures::future::join_all;
use seckill::lock::{Guard, LONGEST_LEASE, Lease, Lock, Locks, MultiLock, PATIENCE};
use seckill::names::Names;
use seckill::{Error, Reconciler};
use testkit::{DEADLINE, PrivateRedis, Proxy, Stage, eventually, redis_url, unique};

/// Long enough that no test ends by it.
const LONG: Duration = Duration::from_secs(300);
const SHORT: Duration = Duration::from_millis(200);
const NAME: &str = "job";

/// A Redis with a bare connection beside the locks.
struct Scene {
    prefix: String,
    names: Names,
    redis: Client,
    locks: Locks,
}

async fn bare(url: &str) -> Client {
    let redis = Builder::from_config(Config::from_url(url).expect("a Redis URL"))
        .build()
        .expect("a client");
    redis.init().await.expect("Redis answers");
    redis
}

async fn open(url: &str, prefix: &str) -> Locks {
    let locks = Locks::open(url, prefix, Duration::from_secs(10)).expect("valid settings");
    locks.wait_for_redis(DEADLINE).await.expect("Redis answers");
    locks
}

impl Scene {
    async fn new() -> Self {
        Self::at(&redis_url(), &redis_url()).await
    }

    /// The locks go one way, the bare connection another.
    async fn at(locks_url: &str, url: &str) -> Self {
        let prefix = unique("locks");
        Self {
            locks: open(locks_url, &prefix).await,
            names: Names::new(&prefix).expect("valid"),
            redis: bare(url).await,
            prefix,
        }
    }

    /// Another owner, of this process.
    fn owner(&self) -> Lock {
        self.locks.lock(NAME).expect("a valid name")
    }

    fn key(&self) -> String {
        self.names.lock(NAME)
    }

    async fn command(&self, words: &[&str]) -> Value {
        let command = CustomCommand::new(words[0].to_owned(), ClusterHash::FirstKey, false);
        let args: Vec<String> = words[1..].iter().map(|word| (*word).to_owned()).collect();
        self.redis
            .custom(command, args)
            .await
            .unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    async fn number(&self, words: &[&str]) -> i64 {
        let reply = self.command(words).await;
        reply
            .as_i64()
            .unwrap_or_else(|| panic!("{words:?}: {reply:?}"))
    }

    async fn expire_now(&self) {
        self.command(&["DEL", &self.key()]).await;
    }

    async fn left_ms(&self) -> i64 {
        self.number(&["PTTL", &self.key()]).await
    }

    async fn depths(&self) -> Vec<i64> {
        let depths = self.command(&["HVALS", &self.key()]).await.into_array();
        depths
            .iter()
            .map(|depth| depth.as_i64().expect("a number"))
            .collect()
    }

    /// Until so many owners stand in line.
    async fn in_line(&self, count: i64) {
        let line = self.names.lock_line(NAME);
        eventually("they stand in line", || async {
            (self.number(&["ZCARD", &line]).await == count).then_some(())
        })
        .await;
    }

    /// Until somebody hears whose turn has come.
    async fn heard(&self) {
        let channel = self.names.lock_turns();
        eventually("somebody listens", || async {
            let reply = self.command(&["PUBSUB", "NUMSUB", &channel]).await;
            (reply.into_array().get(1)?.as_i64()? > 0).then_some(())
        })
        .await;
    }
}

async fn take(lock: &Lock, lease: Lease) -> Guard {
    lock.acquire(lease, DEADLINE)
        .await
        .expect("Redis answers")
        .expect("its turn comes")
}

async fn is_free(lock: &Lock) -> bool {
    let guard = lock
        .try_acquire(Lease::Fixed(LONG))
        .await
        .expect("Redis answers");
    match guard {
        Some(guard) => guard.release().await.expect("Redis answers"),
        None => false,
    }
}

/// What is guarded, and remembers the highest fencing number that it has seen.
#[derive(Default)]
struct Fenced {
    highest: u64,
    written: Vec<&'static str>,
}

impl Fenced {
    fn write(&mut self, fence: u64, what: &'static str) -> bool {
        if fence < self.highest {
            return false;
        }
        self.highest = fence;
        self.written.push(what);
        true
    }
}

// An expired holder deletes somebody else's lock.

/// The key of a lock as the first forms know it: a text with the owner's token.
async fn set_if_absent(scene: &Scene, token: &str) -> bool {
    let reply = scene
        .command(&["SET", &scene.key(), token, "NX", "PX", "60000"])
        .await;
    !reply.is_null()
}

#[tokio::test]
async fn delete_without_a_check_lets_a_third_one_in() {
    let scene = Scene::new().await;
    assert!(set_if_absent(&scene, "first").await);
    scene.expire_now().await;
    assert!(set_if_absent(&scene, "second").await);
    // The first one comes to its end, and deletes what it believes its own.
    scene.command(&["DEL", &scene.key()]).await;
    assert!(
        set_if_absent(&scene, "third").await,
        "two hold the lock: the second and the third"
    );
}

#[tokio::test]
async fn a_check_and_a_delete_in_two_steps_let_a_third_one_in() {
    let scene = Scene::new().await;
    assert!(set_if_absent(&scene, "first").await);
    let holder = scene.command(&["GET", &scene.key()]).await;
    assert_eq!(holder.as_str().as_deref(), Some("first"), "it is its own");
    // Between the two steps the lease ends.
    scene.expire_now().await;
    assert!(set_if_absent(&scene, "second").await);
    scene.command(&["DEL", &scene.key()]).await;
    assert!(set_if_absent(&scene, "third").await, "two hold the lock");
}

#[tokio::test]
async fn one_script_deletes_only_what_is_its_own() {
    let scene = Scene::new().await;
    let first = take(&scene.owner(), Lease::Fixed(LONG)).await;
    scene.expire_now().await;
    let second = take(&scene.owner(), Lease::Fixed(LONG)).await;
    assert!(!first.release().await.expect("Redis answers"), "it says so");
    assert!(!is_free(&scene.owner()).await, "the second one holds it");
    assert!(!second.is_lost());
    assert!(second.release().await.expect("Redis answers"));
    assert!(is_free(&scene.owner()).await);
}

#[tokio::test]
async fn a_late_guard_does_not_give_back_what_its_owner_took_again() {
    let scene = Scene::new().await;
    let owner = scene.owner();
    let before = take(&owner, Lease::Fixed(SHORT)).await;
    before.lost().await;
    let after = take(&owner, Lease::Fixed(LONG)).await;
    assert!(after.fence() > before.fence());
    assert!(!before.release().await.expect("Redis answers"));
    assert!(!is_free(&scene.owner()).await);
    assert!(after.release().await.expect("Redis answers"));
}

#[tokio::test]
async fn a_guard_that_is_dropped_gives_the_lock_back() {
    let scene = Scene::new().await;
    drop(take(&scene.owner(), Lease::Renewed(LONG)).await);
    let guard = take(&scene.owner(), Lease::Renewed(LONG)).await;
    assert!(guard.release().await.expect("Redis answers"));
}

// A holder stands still beyond its lease.

/// A process of its own that takes the lock, and then stands still, its watchdog with it.
struct Stopped {
    go_on: std::sync::mpsc::Sender<()>,
    /// After it went on: its fencing number, and whether it saw at once that the lock is lost.
    told: tokio::sync::oneshot::Receiver<(u64, bool, bool)>,
}

async fn stopped_holder(scene: &Scene, lease: Lease) -> Stopped {
    let (go_on, going_on) = std::sync::mpsc::channel();
    let (tell, told) = tokio::sync::oneshot::channel();
    let (has_it, taken) = tokio::sync::oneshot::channel();
    let prefix = scene.prefix.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let locks = open(&redis_url(), &prefix).await;
            let guard = take(&locks.lock(NAME).expect("valid"), lease).await;
            has_it.send(()).expect("the test waits");
            // Not a future: nothing of this runtime runs meanwhile.
            going_on.recv().expect("the test goes on");
            let seen = guard.is_lost();
            let fence = guard.fence();
            let released = guard.release().await.expect("Redis answers");
            tell.send((fence, seen, released)).expect("the test waits");
            locks.close().await;
        });
    });
    taken.await.expect("it takes the lock");
    Stopped { go_on, told }
}

#[tokio::test]
async fn a_holder_stopped_beyond_its_lease_works_beside_the_next_one_without_a_fence() {
    let scene = Scene::new().await;
    let first = stopped_holder(&scene, Lease::Renewed(SHORT)).await;
    let second = take(&scene.owner(), Lease::Renewed(LONG)).await;
    let mut written = vec!["second"];
    first.go_on.send(()).expect("it waits");
    let _ = first.told.await.expect("it goes on");
    written.push("first");
    assert_eq!(
        written,
        ["second", "first"],
        "the late one has the last word"
    );
    assert!(!second.is_lost());
}

#[tokio::test]
async fn a_holder_stopped_beyond_its_lease_sees_it_and_its_fence_is_refused() {
    let scene = Scene::new().await;
    let first = stopped_holder(&scene, Lease::Renewed(SHORT)).await;
    let second = take(&scene.owner(), Lease::Renewed(LONG)).await;
    let mut fenced = Fenced::default();
    assert!(fenced.write(second.fence(), "second"));
    first.go_on.send(()).expect("it waits");
    let (fence, seen, released) = first.told.await.expect("it goes on");
    assert!(seen, "before it asked anybody");
    assert!(!released, "it gave nothing back");
    assert!(!fenced.write(fence, "first"), "its number is refused");
    assert_eq!(fenced.written, ["second"]);
    assert!(!second.is_lost());
    assert!(!is_free(&scene.owner()).await);
}

// The message that a lock is free is lost.

#[tokio::test]
async fn a_lost_release_message_costs_time_and_not_the_lock() {
    let scene = Scene::new().await;
    let holder = take(&scene.owner(), Lease::Fixed(LONG)).await;
    let waiter = tokio::spawn({
        let owner = scene.owner();
        async move { take(&owner, Lease::Fixed(LONG)).await }
    });
    scene.in_line(1).await;
    // Freed without a word to anybody, long before its time to live.
    scene.expire_now().await;
    let guard = waiter.await.expect("no panic");
    assert!(guard.fence() > holder.fence());
}

#[tokio::test]
async fn a_lock_whose_holder_died_is_taken_when_its_time_to_live_is_over() {
    let scene = Scene::new().await;
    let holder = scene.owner();
    let guard = take(&holder, Lease::Fixed(SHORT)).await;
    let ends = Instant::now() + SHORT;
    let next = take(&scene.owner(), Lease::Fixed(LONG)).await;
    assert!(
        Instant::now() + Duration::from_millis(50) >= ends,
        "not before"
    );
    assert!(guard.is_lost());
    assert!(next.fence() > guard.fence());
}

#[tokio::test]
async fn a_waiter_whose_subscription_is_cut_gets_the_lock_all_the_same() {
    let redis = PrivateRedis::start().await;
    let scene = Scene::at(&redis.url(), &redis.url()).await;
    let holder = take(&scene.owner(), Lease::Fixed(LONG)).await;
    let waiter = tokio::spawn({
        let owner = scene.owner();
        async move { take(&owner, Lease::Fixed(LONG)).await }
    });
    scene.in_line(1).await;
    scene.heard().await;
    let cut = scene.number(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    assert!(cut > 0, "it listened");
    assert!(holder.release().await.expect("Redis answers"));
    drop(waiter.await.expect("no panic"));
    // And it listens again.
    scene.heard().await;
}

#[tokio::test]
async fn a_waiter_is_woken_by_the_message_and_does_not_spin() {
    let redis = PrivateRedis::start().await;
    let scene = Scene::at(&redis.url(), &redis.url()).await;
    let asked = || async {
        let stats = redis.command(&["INFO", "commandstats"]);
        let evals = stats
            .lines()
            .find(|line| line.starts_with("cmdstat_evalsha:"));
        evals
            .and_then(|line| line.split(['=', ',']).nth(1))
            .and_then(|calls| calls.parse::<u64>().ok())
            .unwrap_or(0)
    };
    // The subscription stands from the first one that waits on.
    let holder = take(&scene.owner(), Lease::Fixed(LONG)).await;
    scene.heard().await;
    let waiter = tokio::spawn({
        let owner = scene.owner();
        async move { take(&owner, Lease::Fixed(LONG)).await }
    });
    scene.in_line(1).await;
    let (before, began) = (asked().await, Instant::now());
    // Over several of its own looks: this is the pause that is measured.
    tokio::time::sleep(PATIENCE).await;
    let looks = asked().await - before;
    let most = began.elapsed().as_millis() / 500 + 2;
    assert!(u128::from(looks) <= most, "{looks} looks, {most} are due");

    // Told, it asks at once: looks of its own would take ten seconds for as many.
    let line = scene.names.lock_line(NAME);
    let first = scene.command(&["ZRANGE", &line, "0", "0"]).await;
    let token = first.into_array()[0].as_string().expect("a token");
    let began = Instant::now();
    for _ in 0..20 {
        let before = asked().await;
        let channel = scene.names.lock_turns();
        scene.command(&["PUBLISH", &channel, &token]).await;
        eventually("it looks", || async {
            (asked().await > before).then_some(())
        })
        .await;
    }
    assert!(began.elapsed() < Duration::from_secs(5), "it was woken");
    assert!(holder.release().await.expect("Redis answers"));
    drop(waiter.await.expect("no panic"));
}

#[tokio::test]
async fn waiting_ends_at_its_limit() {
    let scene = Scene::new().await;
    let _holder = take(&scene.owner(), Lease::Fixed(LONG)).await;
    let began = Instant::now();
    let limit = Duration::from_millis(700);
    let none = scene
        .owner()
        .acquire(Lease::Fixed(LONG), limit)
        .await
        .expect("Redis answers");
    assert!(none.is_none());
    assert!(began.elapsed() >= limit);
    scene.in_line(0).await;
}

// Fair enough that nobody starves.

#[tokio::test(flavor = "multi_thread")]
async fn waiters_get_the_lock_in_the_order_of_coming() {
    let scene = Scene::new().await;
    let holder = take(&scene.owner(), Lease::Renewed(LONG)).await;
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut waiters = Vec::new();
    for number in 0..8 {
        let (owner, order) = (scene.owner(), Arc::clone(&order));
        waiters.push(tokio::spawn(async move {
            let guard = take(&owner, Lease::Renewed(LONG)).await;
            order.lock().expect("no panic").push(number);
            guard.release().await.expect("Redis answers")
        }));
        scene.in_line(number + 1).await;
    }
    assert!(!is_free(&scene.owner()).await, "nobody goes past the line");
    assert!(holder.release().await.expect("Redis answers"));
    for released in join_all(waiters).await {
        assert!(released.expect("no panic"));
    }
    let order = order.lock().expect("no panic").clone();
    assert_eq!(order, (0..8).collect::<Vec<i64>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_starves_beside_those_who_come_again_and_again() {
    let scene = Scene::new().await;
    let inside = Arc::new(AtomicU32::new(0));
    // Six owners who take it again as soon as they gave it back, thirty times each.
    let workers = (0..6).map(|_| {
        let (owner, inside) = (scene.owner(), Arc::clone(&inside));
        tokio::spawn(async move {
            let mut longest = Duration::ZERO;
            for _ in 0..30 {
                let began = Instant::now();
                let guard = take(&owner, Lease::Renewed(LONG)).await;
                longest = longest.max(began.elapsed());
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                assert!(guard.release().await.expect("Redis answers"));
            }
            longest
        })
    });
    for longest in join_all(workers).await {
        let longest = longest.expect("no panic");
        assert!(longest < DEADLINE / 2, "one waited {longest:?}");
    }
}

#[tokio::test]
async fn a_waiter_that_goes_away_gives_up_its_place() {
    let scene = Scene::new().await;
    let holder = take(&scene.owner(), Lease::Fixed(LONG)).await;
    let gone = tokio::spawn({
        let owner = scene.owner();
        async move { take(&owner, Lease::Fixed(LONG)).await }
    });
    scene.in_line(1).await;
    gone.abort();
    scene.in_line(0).await;
    assert!(holder.release().await.expect("Redis answers"));
    assert!(is_free(&scene.owner()).await);
}

#[tokio::test]
async fn a_waiter_whose_process_died_is_gone_past_after_a_while() {
    let scene = Scene::new().await;
    // Its place, as a process leaves it that was killed in line.
    let holder = take(&scene.owner(), Lease::Fixed(LONG)).await;
    let dead = scene.owner();
    let mut stands = Box::pin(dead.acquire(Lease::Fixed(LONG), LONG));
    // Once, and then neither polled nor dropped.
    assert!(futures::poll!(&mut stands).is_pending());
    scene.in_line(1).await;
    assert!(holder.release().await.expect("Redis answers"));
    let next = take(&scene.owner(), Lease::Fixed(LONG)).await;
    assert!(next.release().await.expect("Redis answers"));
    std::mem::forget(stands);
}

// Reentry.

#[tokio::test]
async fn without_reentry_an_owner_waits_for_itself() {
    let scene = Scene::new().await;
    let (outer, inner) = (scene.owner(), scene.owner());
    let _held = take(&outer, Lease::Fixed(LONG)).await;
    let again = inner
        .acquire(Lease::Fixed(LONG), SHORT)
        .await
        .expect("Redis answers");
    assert!(again.is_none(), "another owner of the same process waits");
}

#[tokio::test]
async fn the_same_owner_enters_again_and_the_last_one_out_gives_it_back() {
    let scene = Scene::new().await;
    let owner = scene.owner();
    let outer = take(&owner, Lease::Fixed(Duration::from_secs(60))).await;
    let inner = take(&owner.clone(), Lease::Fixed(LONG)).await;
    assert_eq!(scene.depths().await, [2]);
    assert_eq!(inner.fence(), outer.fence(), "one acquisition");
    assert!(scene.left_ms().await > 60_000, "its expiry is renewed");
    assert!(outer.release().await.expect("Redis answers"));
    assert_eq!(scene.depths().await, [1]);
    assert!(!is_free(&scene.owner()).await, "one is still inside");
    assert!(inner.release().await.expect("Redis answers"));
    assert!(is_free(&scene.owner()).await);
}

#[tokio::test]
async fn counting_down_renews_the_expiry() {
    let scene = Scene::new().await;
    let owner = scene.owner();
    let outer = take(&owner, Lease::Fixed(Duration::from_secs(60))).await;
    let inner = take(&owner, Lease::Fixed(LONG)).await;
    scene.command(&["PEXPIRE", &scene.key(), "5000"]).await;
    assert!(inner.release().await.expect("Redis answers"));
    assert!(scene.left_ms().await > 5_000);
    assert!(outer.release().await.expect("Redis answers"));
}

#[tokio::test]
async fn an_entry_whose_answer_is_lost_counts_once() {
    let redis = PrivateRedis::start().await;
    let proxy = Proxy::before(redis.port()).await;
    let scene = Scene::at(&proxy.url(), &redis.url()).await;
    let owner = scene.owner();
    let outer = take(&owner, Lease::Fixed(LONG)).await;
    proxy.cut_reply_to(&scene.names.lock_line(NAME));
    let inner = owner.try_acquire(Lease::Fixed(LONG)).await;
    assert_eq!(proxy.cuts(), 1, "it was said, and not heard");
    let inner = match inner {
        // Asked again by the client, on a new connection.
        Ok(guard) => guard.expect("its own lock"),
        Err(error) => {
            assert!(matches!(error, Error::Unavailable(_)), "{error}");
            take(&owner, Lease::Fixed(LONG)).await
        }
    };
    assert_eq!(scene.depths().await, [2], "and not three");
    assert!(inner.release().await.expect("Redis answers"));
    assert!(outer.release().await.expect("Redis answers"));
    assert!(is_free(&scene.owner()).await, "nothing is left of it");
}

#[tokio::test]
async fn a_lock_whose_first_answer_is_lost_is_not_left_held() {
    let redis = PrivateRedis::start().await;
    let proxy = Proxy::before(redis.port()).await;
    let scene = Scene::at(&proxy.url(), &redis.url()).await;
    let owner = scene.owner();
    proxy.cut_reply_to(&scene.names.lock_line(NAME));
    let answer = owner.try_acquire(Lease::Fixed(LONG)).await;
    assert_eq!(proxy.cuts(), 1);
    // Asked again by the client, or given back: in no case held by one that does not know it.
    match answer {
        Ok(guard) => {
            let guard = guard.expect("its own lock");
            assert_eq!(scene.depths().await, [1]);
            assert!(guard.release().await.expect("Redis answers"));
        }
        Err(error) => assert!(matches!(error, Error::Unavailable(_)), "{error}"),
    }
    let other = take(&scene.owner(), Lease::Fixed(LONG)).await;
    assert!(other.release().await.expect("Redis answers"));
}

// The watchdog.

#[tokio::test]
async fn the_watchdog_renews_for_as_long_as_the_guard_lives_and_stops_with_it() {
    let scene = Scene::new().await;
    let lease = Duration::from_secs(3);
    let guard = take(&scene.owner(), Lease::Renewed(lease)).await;
    let mut before = scene.left_ms().await;
    let mut rises = 0;
    let began = Instant::now();
    while rises < 3 {
        assert!(began.elapsed() < DEADLINE, "nobody renews it");
        tokio::time::sleep(Duration::from_millis(20)).await;
        let now = scene.left_ms().await;
        assert!(now > 0, "never without a holder");
        // Two thirds are left when it is renewed, less what a busy machine takes.
        rises += u32::from(now > before + 200);
        before = now;
    }
    assert!(began.elapsed() >= lease, "it outlives its lease");
    assert!(!guard.is_lost());
    assert!(guard.release().await.expect("Redis answers"));
    // A watchdog that went on would renew what the next one holds, or make it anew.
    let next = take(&scene.owner(), Lease::Fixed(lease)).await;
    next.lost().await;
    eventually("nobody renews it", || async {
        (scene.left_ms().await == -2).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_fixed_lease_is_renewed_by_nobody() {
    let scene = Scene::new().await;
    let guard = take(&scene.owner(), Lease::Fixed(Duration::from_millis(600))).await;
    let mut before = scene.left_ms().await;
    loop {
        let now = scene.left_ms().await;
        if now == -2 {
            break;
        }
        assert!(now <= before, "it only falls");
        before = now;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(guard.is_lost(), "not later than Redis");
    assert!(!guard.renew().await.expect("Redis answers"));
}

#[tokio::test]
async fn a_holder_sees_that_the_lock_is_lost() {
    let scene = Scene::new().await;
    let guard = take(&scene.owner(), Lease::Renewed(Duration::from_secs(3))).await;
    assert!(!guard.is_lost());
    scene.expire_now().await;
    let began = Instant::now();
    guard.lost().await;
    assert!(guard.is_lost());
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "by the watchdog, before the lease is over"
    );
    assert!(!guard.release().await.expect("Redis answers"));
}

#[tokio::test]
async fn a_holder_that_cannot_reach_redis_counts_the_lock_as_lost_at_its_end() {
    let redis = PrivateRedis::start().await;
    let proxy = Proxy::before(redis.port()).await;
    let scene = Scene::at(&proxy.url(), &redis.url()).await;
    let lease = Duration::from_secs(1);
    let guard = take(&scene.owner(), Lease::Renewed(lease)).await;
    proxy.blackhole();
    guard.lost().await;
    // It knew not later than Redis gave the lock to somebody else.
    proxy.heal();
    assert!(guard.is_lost());
    let locks = open(&redis.url(), &scene.prefix).await;
    let next = take(&locks.lock(NAME).expect("valid"), Lease::Fixed(LONG)).await;
    assert!(next.fence() > guard.fence());
}

// A primary is lost before its replica had the lock.

/// A primary with a replica that hears nothing from it from now on.
async fn primary_and_deaf_replica() -> (PrivateRedis, PrivateRedis, Proxy) {
    let primary = PrivateRedis::start().await;
    let proxy = Proxy::before(primary.port()).await;
    let port = proxy_port(&proxy);
    let replica = PrivateRedis::start_with(&["--replicaof", "127.0.0.1", &port]).await;
    primary.command(&["SET", "before", "1"]);
    eventually("the replica follows", || async {
        (replica.command(&["GET", "before"]) == "1").then_some(())
    })
    .await;
    proxy.pause();
    (primary, replica, proxy)
}

fn proxy_port(proxy: &Proxy) -> String {
    let url = proxy.url();
    let port = url
        .trim_end_matches("/0")
        .rsplit(':')
        .next()
        .expect("a port");
    port.to_owned()
}

#[tokio::test]
async fn a_primary_lost_before_its_replica_had_the_lock_gives_it_to_two() {
    let (mut primary, replica, _proxy) = primary_and_deaf_replica().await;
    let prefix = unique("locks");
    let before = open(&primary.url(), &prefix).await;
    let first = take(&before.lock(NAME).expect("valid"), Lease::Fixed(LONG)).await;
    primary.kill();
    replica.command(&["REPLICAOF", "NO", "ONE"]);
    let after = open(&replica.url(), &prefix).await;
    let second = take(&after.lock(NAME).expect("valid"), Lease::Fixed(LONG)).await;
    assert!(!first.is_lost(), "the first one can't know");
    // The cure on one server: the number, which rises by Redis' clock though the last one is forgotten.
    let mut fenced = Fenced::default();
    assert!(fenced.write(second.fence(), "second"));
    assert!(!fenced.write(first.fence(), "first"));
}

#[tokio::test]
async fn a_multi_lock_outlives_a_primary_lost_before_its_replica_had_the_lock() {
    let (mut primary, replica, _proxy) = primary_and_deaf_replica().await;
    let (second, third) = (PrivateRedis::start().await, PrivateRedis::start().await);
    let prefix = unique("locks");
    let open_all = async |first: &PrivateRedis| {
        vec![
            open(&first.url(), &prefix).await,
            open(&second.url(), &prefix).await,
            open(&third.url(), &prefix).await,
        ]
    };
    let holder = MultiLock::new(&open_all(&primary).await, NAME).expect("valid");
    let held = holder
        .acquire(Lease::Fixed(LONG), DEADLINE)
        .await
        .expect("they answer")
        .expect("free");
    primary.kill();
    replica.command(&["REPLICAOF", "NO", "ONE"]);
    let servers = open_all(&replica).await;
    let other = MultiLock::new(&servers, NAME).expect("valid");
    let none = other
        .acquire(Lease::Fixed(LONG), Duration::from_secs(1))
        .await
        .expect("they answer");
    assert!(none.is_none(), "two servers still know who has it");
    assert!(!held.is_lost());
    let freed = servers[0].lock(NAME).expect("valid");
    let guard = take(&freed, Lease::Fixed(LONG)).await;
    assert!(guard.release().await.expect("it answers"), "given back");
}

// The multi-lock itself.

async fn three() -> Vec<Scene> {
    vec![Scene::new().await, Scene::new().await, Scene::new().await]
}

fn over(scenes: &[Scene]) -> MultiLock {
    let locks: Vec<Locks> = scenes.iter().map(|scene| scene.locks.clone()).collect();
    MultiLock::new(&locks, NAME).expect("valid")
}

#[tokio::test]
async fn a_multi_lock_is_held_on_all_or_on_none() {
    let scenes = three().await;
    let third = take(&scenes[2].owner(), Lease::Fixed(LONG)).await;
    let began = Instant::now();
    let limit = Duration::from_secs(1);
    let none = over(&scenes)
        .acquire(Lease::Renewed(LONG), limit)
        .await
        .expect("they answer");
    assert!(none.is_none());
    assert!(began.elapsed() >= limit, "it waited for the third");
    for scene in &scenes[..2] {
        let guard = take(&scene.owner(), Lease::Fixed(LONG)).await;
        assert!(guard.release().await.expect("it answers"), "given back");
    }
    assert!(third.release().await.expect("it answers"));

    let all = over(&scenes)
        .acquire(Lease::Renewed(LONG), DEADLINE)
        .await
        .expect("they answer")
        .expect("free");
    assert_eq!(all.fences().len(), 3);
    for scene in &scenes {
        assert!(!is_free(&scene.owner()).await);
    }
    assert!(all.release().await.expect("they answer"));
    for scene in &scenes {
        assert!(is_free(&scene.owner()).await);
    }
}

#[tokio::test]
async fn a_multi_lock_has_its_whole_lease_everywhere_after_the_last_one() {
    let scenes = three().await;
    let lease = Duration::from_secs(6);
    let third = take(&scenes[2].owner(), Lease::Fixed(Duration::from_secs(3))).await;
    let all = over(&scenes)
        .acquire(Lease::Fixed(lease), DEADLINE)
        .await
        .expect("they answer")
        .expect("the third one's lease ends");
    assert!(third.is_lost());
    // The first one was taken three seconds earlier.
    let mut left = Vec::new();
    for scene in &scenes {
        left.push(scene.left_ms().await);
    }
    let apart = left[0].abs_diff(left[2]);
    assert!(apart < 2_000, "{left:?}: reset after the last one");
    assert!(!all.is_lost());
    scenes[1].expire_now().await;
    assert!(!all.renew().await.expect("they answer"), "one has lost it");
    assert!(all.is_lost());
    assert!(!all.release().await.expect("they answer"));
    assert!(is_free(&scenes[0].owner()).await);
}

#[tokio::test]
async fn a_multi_lock_waits_for_a_silent_server_no_longer_than_its_limit() {
    let redis = PrivateRedis::start().await;
    let proxy = Proxy::before(redis.port()).await;
    let mut scenes = vec![
        Scene::new().await,
        Scene::at(&proxy.url(), &redis.url()).await,
    ];
    proxy.blackhole();
    let began = Instant::now();
    let answer = over(&scenes)
        .acquire(Lease::Renewed(LONG), Duration::from_secs(1))
        .await;
    assert!(!matches!(answer, Ok(Some(_))), "not held");
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "the limit is over the whole"
    );
    let guard = take(&scenes[0].owner(), Lease::Fixed(LONG)).await;
    assert!(guard.release().await.expect("it answers"), "given back");
    scenes.clear();
}

// What is wrong from the start.

#[tokio::test]
async fn names_and_leases_that_are_none_are_refused() {
    let scene = Scene::new().await;
    let long = "n".repeat(201);
    for name in ["", "a{b", "a}b", "a\nb", long.as_str()] {
        let refused = scene.locks.lock(name);
        assert!(matches!(refused, Err(Error::Invalid(_))), "{name:?}");
    }
    for lease in [Duration::ZERO, LONGEST_LEASE + Duration::from_millis(1)] {
        for lease in [Lease::Fixed(lease), Lease::Renewed(lease)] {
            let refused = scene.owner().try_acquire(lease).await;
            assert!(matches!(refused, Err(Error::Invalid(_))), "{lease:?}");
        }
    }
    assert!(matches!(MultiLock::new(&[], NAME), Err(Error::Invalid(_))));
}

#[tokio::test]
async fn other_names_and_prefixes_are_other_locks() {
    let scene = Scene::new().await;
    let _held = take(&scene.owner(), Lease::Fixed(LONG)).await;
    let other = scene.locks.lock("another").expect("valid");
    assert!(is_free(&other).await);
    let elsewhere = Scene::new().await;
    assert!(is_free(&elsewhere.owner()).await);
}

// The product's own use.

#[tokio::test]
async fn of_two_reconcilers_one_works_and_the_other_takes_over() {
    let stage = Stage::new().await;
    let other = stage.another().await;
    let (mut first, mut second) = (Reconciler::new(&stage.shop), Reconciler::new(&other));
    assert!(!first.step().await.expect("both stores answer").skipped);
    assert!(second.step().await.expect("both stores answer").skipped);
    let waiting = tokio::spawn(async move {
        let turn = second.turn(DEADLINE).await.expect("Redis answers");
        (turn, second)
    });
    let line = Names::new(&stage.config.prefix)
        .expect("valid")
        .lock_line("reconcile");
    eventually("it stands in line", || async {
        (stage.redis_command(&["ZCARD", &line]).await.as_i64() == Some(1)).then_some(())
    })
    .await;
    first.close().await;
    let (turn, mut second) = waiting.await.expect("no panic");
    assert!(turn, "it takes over");
    assert!(!second.step().await.expect("both stores answer").skipped);
    let mut late = Reconciler::new(&stage.shop);
    assert!(late.step().await.expect("both stores answer").skipped);
}
