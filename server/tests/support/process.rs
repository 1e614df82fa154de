//! The real binary as a process of its own, to be stopped and killed.

use std::{net::SocketAddr, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStderr, Command},
    time::timeout,
};

use super::DEADLINE;

/// A running `seckill-server`; killed when dropped.
pub struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
}

impl Process {
    /// Starts the binary with a subcommand and flags, and nothing from the environment.
    pub fn starts(subcommand: &str, flags: &[String]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_seckill-server"))
            .arg(subcommand)
            .args(flags)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary starts");
        let lines = BufReader::new(child.stderr.take().expect("stderr is piped")).lines();
        Self { child, lines }
    }

    /// Reads the log until a line holds `text`, and returns that line.
    pub async fn says(&mut self, text: &str) -> String {
        let found = timeout(DEADLINE, async {
            let mut heard = Vec::new();
            while let Some(line) = self.lines.next_line().await.unwrap() {
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

    /// Asks it to stop, and returns its exit code.
    pub async fn stops(self) -> i32 {
        let pid = self.child.id().expect("it runs").to_string();
        assert!(
            std::process::Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        self.exit_code().await
    }

    /// Kills it as `kill -9` does.
    pub async fn dies(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Waits for its end. Its log is read on, so that it never waits for a reader.
    pub async fn exit_code(mut self) -> i32 {
        let ended = timeout(DEADLINE, async {
            while let Ok(Some(_)) = self.lines.next_line().await {}
            self.child.wait().await.unwrap()
        });
        ended.await.expect("it ends").code().unwrap_or(-1)
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
