//! Accepts connections, and ends them in order at the stop.
//!
//! axum's own loop has no clock, so a client that sends its header a byte a minute
//! would hold a connection for ever, and enough of them every file descriptor. Here
//! a header has a time limit, which also closes connections that idle.

use std::{io, net::SocketAddr, time::Duration};

use axum::{Router, extract::connect_info::ConnectInfo};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tracing::{debug, warn};

/// How long a request's header, and an idle connection's next one, may take.
const HEADER: Duration = Duration::from_secs(30);
/// Pause after the system has refused a connection, for lack of descriptors mostly.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop`; requests under way then have `within` to end.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
    within: Duration,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER);
    let connections = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => connect(&http, &connections, stream, peer, router.clone()),
            Err(error) if of_one_connection(&error) => {}
            Err(error) => {
                warn!(%error, "connections cannot be accepted");
                sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    if timeout(within, connections.shutdown()).await.is_err() {
        warn!("requests that did not end in time are cut off");
    }
}

fn connect(
    http: &http1::Builder,
    all: &GracefulShutdown,
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
) {
    // An answer is one small write: waiting to fill a packet would only delay it.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().oneshot(request)
    });
    let connection = all.watch(http.serve_connection(TokioIo::new(stream), service));
    tokio::spawn(async move {
        // A client that leaves in the middle is everyday business.
        if let Err(error) = connection.await {
            debug!(%error, "a connection ended early");
        }
    });
}

/// Whether the error concerns the connection that was to be, not the listener.
fn of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}
