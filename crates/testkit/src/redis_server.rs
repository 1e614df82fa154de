//! A Redis of the test's own: killed, started again on the same data, turned into something else.

use std::fs::{self, File};
use std::net::TcpListener as StdListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{DEADLINE, unique};

/// The settings that the promise rests on.
const SAFE: [&str; 10] = [
    "--appendonly",
    "yes",
    "--appendfsync",
    "always",
    "--no-appendfsync-on-rewrite",
    "no",
    "--maxmemory-policy",
    "noeviction",
    "--save",
    "",
];

/// A Redis process on a port of its own; it ends when this is dropped.
pub struct PrivateRedis {
    port: u16,
    folder: PathBuf,
    /// What it is started with besides the safe settings, at every start.
    always: Vec<String>,
    child: Option<Child>,
}

impl PrivateRedis {
    /// A Redis that can keep the promise.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// The same with settings that every start repeats.
    pub async fn start_with(always: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(unique("seckill-redis"));
        fs::create_dir(&folder).expect("a folder of the test's own");
        let mut redis = Self {
            port: free_port(),
            folder,
            always: always.iter().map(|word| (*word).to_owned()).collect(),
            child: None,
        };
        redis.start_again().await;
        redis
    }

    /// A node of a cluster that does not know the others yet.
    pub async fn start_node() -> Self {
        let bus = free_port().to_string();
        let settings = [
            "--cluster-enabled",
            "yes",
            "--cluster-require-full-coverage",
            "no",
            "--cluster-node-timeout",
            "2000",
            "--cluster-port",
            &bus,
        ];
        Self::start_with(&settings).await
    }

    /// Its port on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Starts it again on the same data and port, and waits until it answers.
    pub async fn start_again(&mut self) {
        self.start_as(&[]).await;
    }

    /// Starts it again with other settings, which win over the safe ones.
    pub async fn start_as(&mut self, settings: &[&str]) {
        assert!(self.child.is_none(), "it runs");
        self.spawn(settings);
        let began = Instant::now();
        while !self.answers().await {
            assert!(began.elapsed() < DEADLINE, "Redis does not answer");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Starts it without waiting until it answers.
    pub fn spawn(&mut self, settings: &[&str]) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.join("log"))
            .expect("a log");
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &self.port.to_string()])
            .arg("--dir")
            .arg(&self.folder)
            .args(SAFE)
            .args(&self.always)
            .args(settings)
            .stdin(Stdio::null())
            .stderr(log.try_clone().expect("a log"))
            .stdout(log)
            .spawn()
            .expect("redis-server is installed");
        self.child = Some(child);
    }

    /// `kill -9`; returns when the process is gone.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it is ours");
            child.wait().expect("it is ours");
        }
    }

    async fn answers(&self) -> bool {
        let ask = async {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
            stream.write_all(b"PING\r\n").await?;
            let mut reply = [0; 7];
            stream.read_exact(&mut reply).await?;
            Ok::<_, std::io::Error>(&reply == b"+PONG\r\n")
        };
        matches!(
            tokio::time::timeout(Duration::from_secs(1), ask).await,
            Ok(Ok(true))
        )
    }

    /// Runs a command by `redis-cli`; its answer as text, without the last line break.
    pub fn command(&self, words: &[&str]) -> String {
        let done = Command::new("redis-cli")
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(words)
            .stdin(Stdio::null())
            .output()
            .expect("redis-cli is installed");
        let text = String::from_utf8_lossy(&done.stdout);
        text.trim_end_matches('\n').to_owned()
    }

    /// Copies its data as they are on disk now.
    pub fn copy_data(&self) -> DataCopy {
        let copy = std::env::temp_dir().join(unique("seckill-redis-copy"));
        copy_folder(&self.data(), &copy);
        DataCopy(copy)
    }

    /// Puts a copy in the place of its data; it must not run.
    pub fn put_data(&self, copy: &DataCopy) {
        assert!(self.child.is_none(), "it runs");
        fs::remove_dir_all(self.data()).expect("its own data");
        copy_folder(&copy.0, &self.data());
    }

    fn data(&self) -> PathBuf {
        self.folder.join("appendonlydir")
    }
}

impl Drop for PrivateRedis {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Nothing can be done about a failure here, and a panic would hide the test's own.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Data that a Redis had at some time; deleted when this is dropped.
pub struct DataCopy(PathBuf);

impl Drop for DataCopy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a new folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

/// A free port below those that the system gives to outgoing connections: one of these could
/// take the place of a server that is away.
pub(crate) fn free_port() -> u16 {
    loop {
        let port = 10_000 + rand::random::<u16>() % 10_000;
        if StdListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Three masters that share the slots; what a test kills comes back on the same data.
pub struct PrivateCluster {
    /// Its nodes, each with a third of the slots in their order.
    pub nodes: Vec<PrivateRedis>,
}

impl PrivateCluster {
    /// Starts three masters and waits until each knows all of them.
    pub async fn start() -> Self {
        let mut nodes = Vec::new();
        for _ in 0..3 {
            nodes.push(PrivateRedis::start_node().await);
        }
        let mut create: Vec<String> = vec!["--cluster".into(), "create".into()];
        create.extend(
            nodes
                .iter()
                .map(|node| format!("127.0.0.1:{}", node.port())),
        );
        create.push("--cluster-yes".into());
        let done = Command::new("redis-cli")
            .args(&create)
            .stdin(Stdio::null())
            .output()
            .expect("redis-cli is installed");
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stdout)
        );
        let cluster = Self { nodes };
        cluster.wait().await;
        cluster
    }

    /// Waits until every node says that all is well.
    pub async fn wait(&self) {
        let began = Instant::now();
        let well = |node: &PrivateRedis| {
            let info = node.command(&["CLUSTER", "INFO"]);
            ["cluster_state:ok", "cluster_slots_ok:16384"]
                .iter()
                .all(|line| info.contains(line))
        };
        while !self.nodes.iter().all(well) {
            assert!(began.elapsed() < DEADLINE, "the cluster finds no rest");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Its URL, with every node.
    pub fn url(&self) -> String {
        let others: Vec<String> = self.nodes[1..]
            .iter()
            .map(|node| format!("node=127.0.0.1:{}", node.port()))
            .collect();
        let first = self.nodes[0].port();
        format!("redis-cluster://127.0.0.1:{first}?{}", others.join("&"))
    }
}
