//! The real binary as a process of its own, to be stopped and killed.

use std::{
    net::SocketAddr,
    process::{ExitStatus, Stdio},
};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    sync::mpsc,
    time::timeout,
};

use super::DEADLINE;

/// A Redis that writes nothing to its disk.
pub async fn redis_that_forgets(port: u16) -> Child {
    let port_text = port.to_string();
    let child = Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--port", &port_text])
        .args(["--save", "", "--appendonly", "no"])
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("redis-server is installed");
    super::eventually("Redis listens", || async {
        tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .is_ok()
    })
    .await;
    child
}

/// A running `seckill-server`; killed when dropped.
pub struct Process {
    child: Child,
    /// Read all the time, so that it never waits for a reader of its log.
    lines: mpsc::UnboundedReceiver<String>,
}

impl Process {
    /// Starts the binary with a subcommand and flags, and nothing from the environment.
    pub fn starts(subcommand: &str, flags: &[String]) -> Self {
        Self::starts_with(subcommand, flags, &[])
    }

    /// The same with an environment.
    pub fn starts_with(subcommand: &str, flags: &[String], environment: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_seckill-server"))
            .arg(subcommand)
            .args(flags)
            .env_clear()
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary starts");
        let mut log = BufReader::new(child.stderr.take().expect("stderr is piped")).lines();
        let (tell, lines) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok(Some(line)) = log.next_line().await {
                // A test that has heard enough lets the rest go by.
                let _ = tell.send(line);
            }
        });
        Self { child, lines }
    }

    /// Reads the log until a line holds `text`, and returns that line.
    pub async fn says(&mut self, text: &str) -> String {
        let found = timeout(DEADLINE, async {
            let mut heard = Vec::new();
            while let Some(line) = self.lines.recv().await {
                if line.contains(text) {
                    return line;
                }
                heard.push(line);
            }
            panic!(
                "it ended without saying {text:?} but:\n{}",
                heard.join("\n")
            )
        });
        found
            .await
            .unwrap_or_else(|_| panic!("it did not say {text:?}"))
    }

    /// The address it says that it serves on (needs `--log=info`).
    pub async fn address(&mut self) -> SocketAddr {
        let line = self.says("\"address\":\"").await;
        line.split("\"address\":\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap()
            .parse()
            .unwrap()
    }

    /// Its number, while it runs.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Sends it a signal.
    pub fn signals(&self, name: &str) {
        let sent = std::process::Command::new("kill")
            .args([&format!("-{name}"), &self.pid().to_string()])
            .status();
        assert!(sent.unwrap().success(), "SIG{name}");
    }

    /// Asks it to stop, and returns its exit code.
    pub async fn stops(self) -> i32 {
        self.signals("TERM");
        self.exit_code().await
    }

    /// Kills it as `kill -9` does.
    pub async fn dies(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Waits for its end.
    pub async fn exit_code(mut self) -> i32 {
        self.ends().await.code().unwrap_or(-1)
    }

    /// Waits for its end, and tells how it came.
    pub async fn ends(&mut self) -> ExitStatus {
        let ended = timeout(DEADLINE, self.child.wait()).await;
        ended.expect("it ends").unwrap()
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}
