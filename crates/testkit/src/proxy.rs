//! A TCP proxy between the shop and Redis that fails in ways a network does.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What happens to bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// They are forwarded.
    Pass,
    /// They wait.
    Paused,
}

#[derive(Debug)]
struct State {
    mode: watch::Sender<Mode>,
    /// Connections of an earlier number swallow what they get, for ever: half open.
    swallow_before: AtomicU64,
    /// New connections swallow as well.
    blackhole: AtomicBool,
    made: AtomicU64,
    /// The reply to the next request that holds this text is cut off.
    cut: Mutex<Option<String>>,
    cuts: AtomicU64,
    /// Raised to close every connection.
    close: watch::Sender<u64>,
}

/// The proxy; it listens until it is dropped.
pub struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// A proxy before this port of the loopback address.
    pub async fn before(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a free port");
        let address = listener.local_addr().expect("bound");
        let state = Arc::new(State {
            mode: watch::Sender::new(Mode::Pass),
            swallow_before: AtomicU64::new(0),
            blackhole: AtomicBool::new(false),
            made: AtomicU64::new(0),
            cut: Mutex::new(None),
            cuts: AtomicU64::new(0),
            close: watch::Sender::new(0),
        });
        let accepting = tokio::spawn(accept(listener, port, Arc::clone(&state)));
        Self {
            address,
            state,
            accepting,
        }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://{}/0", self.address)
    }

    /// Forwards the next request that holds this text, and cuts the connection instead of its reply.
    pub fn cut_reply_to(&self, text: &str) {
        *self
            .state
            .cut
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(text.to_owned());
    }

    /// How many replies were cut.
    pub fn cuts(&self) -> u64 {
        self.state.cuts.load(Ordering::Acquire)
    }

    /// From now on nothing is forwarded and nothing is closed: both ends believe they are connected.
    pub fn blackhole(&self) {
        self.state.blackhole.store(true, Ordering::Release);
        let all = self.state.made.load(Ordering::Acquire);
        self.state.swallow_before.store(all, Ordering::Release);
    }

    /// New connections are forwarded again; those that were half open stay so.
    pub fn heal(&self) {
        self.state.blackhole.store(false, Ordering::Release);
    }

    /// Bytes wait from now on.
    pub fn pause(&self) {
        self.state.mode.send_replace(Mode::Paused);
    }

    /// Bytes that waited go on.
    pub fn resume(&self) {
        self.state.mode.send_replace(Mode::Pass);
    }

    /// Closes every connection; new ones are taken.
    pub fn close_all(&self) {
        self.state.close.send_modify(|times| *times += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.close_all();
    }
}

async fn accept(listener: TcpListener, port: u16, state: Arc<State>) {
    while let Ok((inner, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        let number = state.made.fetch_add(1, Ordering::AcqRel);
        if state.blackhole.load(Ordering::Acquire) {
            state.swallow_before.fetch_max(number + 1, Ordering::AcqRel);
        }
        tokio::spawn(async move {
            let Ok(outer) = TcpStream::connect(("127.0.0.1", port)).await else {
                return;
            };
            let mut close = state.close.subscribe();
            // The value as it is now has been seen.
            close.mark_unchanged();
            let (from_shop, to_shop) = inner.into_split();
            let (from_redis, to_redis) = outer.into_split();
            let cutting = AtomicBool::new(false);
            tokio::select! {
                () = requests(from_shop, to_redis, number, &state, &cutting) => {}
                () = replies(from_redis, to_shop, number, &state, &cutting) => {}
                _ = close.changed() => {}
            }
        });
    }
}

impl State {
    /// Waits while paused; false when the bytes are to be swallowed.
    async fn may_pass(&self, number: u64) -> bool {
        let mut mode = self.mode.subscribe();
        // The sender lives in this state: it can't be gone.
        let _ = mode.wait_for(|mode| *mode == Mode::Pass).await;
        number >= self.swallow_before.load(Ordering::Acquire)
    }

    fn is_to_be_cut(&self, bytes: &[u8]) -> bool {
        let mut cut = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        let found = cut.as_ref().is_some_and(|text| {
            bytes
                .windows(text.len())
                .any(|window| window == text.as_bytes())
        });
        if found {
            *cut = None;
        }
        found
    }
}

async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    number: u64,
    state: &State,
    cutting: &AtomicBool,
) {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let Ok(n @ 1..) = from.read(&mut bytes).await else {
            return;
        };
        if !state.may_pass(number).await {
            continue;
        }
        if state.is_to_be_cut(&bytes[..n]) {
            cutting.store(true, Ordering::Release);
        }
        if to.write_all(&bytes[..n]).await.is_err() {
            return;
        }
    }
}

async fn replies(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    number: u64,
    state: &State,
    cutting: &AtomicBool,
) {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let Ok(n @ 1..) = from.read(&mut bytes).await else {
            return;
        };
        if !state.may_pass(number).await {
            continue;
        }
        if cutting.load(Ordering::Acquire) {
            // Redis has decided; the shop never hears of it.
            state.cuts.fetch_add(1, Ordering::AcqRel);
            return;
        }
        if to.write_all(&bytes[..n]).await.is_err() {
            return;
        }
    }
}
