//! The server's binary: its commands, and a server of this run's own.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use crate::args::Stores;
use crate::client::{Call, Connection, Origin};

/// How long a server may take until it is ready.
const START: Duration = Duration::from_secs(60);
/// How long it may take to end in order.
const STOP: Duration = Duration::from_secs(20);
/// Lines of its log that are shown when it does not start.
const LOG_SHOWN: usize = 10;

/// Why the binary did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// It can't be run.
    #[error("{path} cannot be run: {source}")]
    Run {
        /// Which binary.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A command failed.
    #[error("`seckill-server {command}` failed ({status}):\n{said}")]
    Command {
        /// Which.
        command: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// What it said.
        said: String,
    },
    /// It was started and is not ready.
    #[error("the server {what}; its log ends with:\n{log}")]
    Start {
        /// What it did instead.
        what: String,
        /// The end of its log.
        log: String,
    },
}

/// The binary with the settings of a site.
#[derive(Debug, Clone)]
pub struct Binary {
    path: PathBuf,
    stores: Stores,
    /// Its log level, and days that sessions last, are this run's own business only when the server is.
    own: bool,
    /// Settings of this run.
    settings: Vec<(String, String)>,
}

impl Binary {
    /// The binary at this path, or beside this program.
    pub fn new(path: Option<&Path>, stores: &Stores, own: bool) -> Self {
        let beside = || {
            let program = std::env::current_exe().unwrap_or_default();
            program.with_file_name("seckill-server")
        };
        Self {
            path: path.map_or_else(beside, Path::to_owned),
            stores: stores.clone(),
            own,
            settings: Vec::new(),
        }
    }

    /// The same with these settings instead of those before.
    pub fn set(&mut self, settings: &[(&str, &str)]) {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        self.settings = settings.iter().map(owned).collect();
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command
            .env("DATABASE_URL", &self.stores.database_url)
            .env("REDIS_URL", &self.stores.redis_url)
            .env("SECKILL_PREFIX", &self.stores.prefix)
            .envs(self.settings.iter().cloned())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            // Ctrl-C is for this program, which then ends the server in order.
            .process_group(0);
        if self.own {
            // Sessions carry no prefix: those of a run go by themselves.
            command.env("SECKILL_SESSION_DAYS", "1");
        }
        command
    }

    fn unusable(&self) -> impl FnOnce(io::Error) -> ServerError + '_ {
        |source| ServerError::Run {
            path: self.path.clone(),
            source,
        }
    }

    /// Runs a command to its end; returns what it printed.
    ///
    /// # Errors
    /// When it can't be run or fails.
    pub async fn run(
        &self,
        name: &'static str,
        args: &[&str],
        input: &str,
    ) -> Result<String, ServerError> {
        let mut command = self.command();
        command
            .arg(name)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(self.unusable())?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that does not read its input has closed it.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        let output = child.wait_with_output().await.map_err(self.unusable())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(ServerError::Command {
                command: name,
                status: output.status,
                said,
            });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Starts `serve` on a free loopback port, its log in this file, and waits until it is ready.
    ///
    /// # Errors
    /// When it can't be run, ends, or is not ready in time.
    pub async fn serve(&self, log: &Path) -> Result<Server, ServerError> {
        let address = free_address().map_err(self.unusable())?;
        let lines = File::create(log).map_err(self.unusable())?;
        let mut command = self.command();
        command
            .arg("serve")
            .env("SECKILL_ADDR", &address)
            .stdout(Stdio::null())
            .stderr(lines);
        let child = command.spawn().map_err(self.unusable())?;
        let origin = Origin::of(&address).expect("a socket's address is an authority");
        let mut server = Server { child, origin };
        match server.ready().await {
            Ok(()) => Ok(server),
            Err(what) => Err(ServerError::Start {
                what,
                log: end_of(log),
            }),
        }
    }
}

/// A server that this program started; killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Where it listens.
    pub origin: Origin,
}

impl Server {
    /// Its process; none when it has ended.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    async fn ready(&mut self) -> Result<(), String> {
        let (begun, mut connection) = (Instant::now(), Connection::to(&self.origin));
        while begun.elapsed() < START {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("ended ({status})"));
            }
            match connection.send(&Call::get("/readyz")).await {
                Ok(answer) if answer.status.is_success() => return Ok(()),
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        Err(format!("is not ready after {} s", START.as_secs()))
    }

    /// Asks it to end in order, and ends it if it does not.
    pub async fn stop(mut self) {
        if let Some(id) = self.child.id() {
            let asked = Command::new("kill")
                .args(["-TERM", &id.to_string()])
                .status()
                .await;
            if asked.is_ok_and(|status| status.success())
                && tokio::time::timeout(STOP, self.child.wait()).await.is_ok()
            {
                return;
            }
        }
        // It has ended already, or has to.
        let _ = self.child.kill().await;
    }
}

/// An address that was free a moment ago.
fn free_address() -> io::Result<String> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.to_string())
}

fn end_of(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_SHOWN)..].join("\n")
}
