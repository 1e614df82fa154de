//! A wire between two programs that a test can plug in and pull.

use std::net::SocketAddr;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// Passes connections on for as long as it lives.
pub struct Proxy(tokio::task::JoinHandle<()>);

impl Proxy {
    /// Listens on `port` of this machine and passes on to `target`.
    pub async fn plugged(port: u16, target: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        Self(tokio::spawn(async move {
            let mut wires = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                wires.spawn(async move {
                    if let Ok(mut far) = TcpStream::connect(target).await {
                        let _ = copy_bidirectional(&mut near, &mut far).await;
                    }
                });
            }
        }))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Dropping the task drops the connections with it.
        self.0.abort();
    }
}
