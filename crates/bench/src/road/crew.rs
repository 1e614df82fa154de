//! The parent's side of a contender's processes: starting, asking, killing, ending in order.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::stores::{Role, SCENE, Scene};
use super::{Answer, Fault, RoadError};
use crate::report::tell;

/// How long a process may take until it is ready.
const START: Duration = Duration::from_secs(90);

/// What is waited for of an ask.
#[derive(Default)]
struct Waiting {
    answer: Option<oneshot::Sender<Answer>>,
    held: Option<oneshot::Sender<()>>,
}

type Waits = Arc<Mutex<HashMap<u64, Waiting>>>;

/// One process.
pub(crate) struct Member {
    child: Child,
    input: mpsc::UnboundedSender<String>,
    waits: Waits,
    /// Ends with the process; gives the statements that it counted.
    reader: JoinHandle<u64>,
    numbers: AtomicU64,
}

/// An ask that was sent.
pub(crate) struct Sent {
    answer: oneshot::Receiver<Answer>,
    held: oneshot::Receiver<()>,
}

impl Sent {
    /// The answer; none when the process is gone.
    pub(crate) async fn answer(self) -> Option<Answer> {
        self.answer.await.ok()
    }

    /// Waits until it stands at its fault; tells whether it does.
    pub(crate) async fn held(&mut self) -> bool {
        (&mut self.held).await.is_ok()
    }
}

impl Member {
    /// Starts this program as a process of the contender, and waits until it is ready.
    pub(crate) async fn start(
        program: &Path,
        scene: &Scene,
        role: Role,
    ) -> Result<Self, RoadError> {
        let scene = Scene {
            role,
            ..scene.clone()
        };
        let text =
            serde_json::to_string(&scene).map_err(|error| RoadError::Broken(error.to_string()))?;
        let mut child = Command::new(program)
            .arg("road-child")
            .env(SCENE, text)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .process_group(0)
            .spawn()?;
        let broken = || RoadError::Broken("a pipe is missing".into());
        let stdin = child.stdin.take().ok_or_else(broken)?;
        let stdout = child.stdout.take().ok_or_else(broken)?;
        let (waits, (ready, is_ready)) = (Waits::default(), oneshot::channel());
        let reader = tokio::spawn(read(
            BufReader::new(stdout),
            Arc::clone(&waits),
            ready,
            scene.contender.clone(),
        ));
        let (input, lines) = mpsc::unbounded_channel();
        tokio::spawn(write(stdin, lines));
        let started = tokio::time::timeout(START, is_ready).await;
        if !matches!(started, Ok(Ok(()))) {
            return Err(RoadError::Broken(format!(
                "a process of {} did not start",
                scene.contender
            )));
        }
        Ok(Self {
            child,
            input,
            waits,
            reader,
            numbers: AtomicU64::new(0),
        })
    }

    /// Sends an ask.
    pub(crate) fn send(&self, user: i64, fault: Fault) -> Sent {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let ((answering, answer), (holding, held)) = (oneshot::channel(), oneshot::channel());
        let waiting = Waiting {
            answer: Some(answering),
            held: Some(holding),
        };
        self.waits
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(number, waiting);
        // To a process that is gone nothing goes, and nothing comes back.
        let _ = self
            .input
            .send(format!("{number} {user} {}\n", fault.word()));
        if self.reader.is_finished() {
            self.waits
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clear();
        }
        Sent { answer, held }
    }

    /// Kills it with SIGKILL.
    pub(crate) async fn kill(mut self) -> Result<(), RoadError> {
        self.child.kill().await?;
        // Whatever it had said is read to the end.
        let _ = self.reader.await;
        Ok(())
    }

    /// Ends it in order; returns the statements that it sent to PostgreSQL.
    pub(crate) async fn end(mut self) -> Result<u64, RoadError> {
        drop(self.input);
        let status = self.child.wait().await?;
        let statements = self.reader.await.unwrap_or(0);
        if status.success() {
            Ok(statements)
        } else {
            Err(RoadError::Broken(format!("a process ended with {status}")))
        }
    }
}

async fn write(mut stdin: ChildStdin, mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(mut text) = lines.recv().await {
        while let Ok(more) = lines.try_recv() {
            text.push_str(&more);
        }
        // One that was killed does not read.
        if stdin.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(
    stdout: BufReader<tokio::process::ChildStdout>,
    waits: Waits,
    ready: oneshot::Sender<()>,
    name: String,
) -> u64 {
    let (mut lines, mut ready, mut statements, mut errors) = (stdout.lines(), Some(ready), 0, 0);
    while let Ok(Some(text)) = lines.next_line().await {
        let (kind, rest) = text.split_once(' ').unwrap_or((&text, ""));
        match kind {
            "r" => drop(ready.take().map(|ready| ready.send(()))),
            "s" => statements = rest.parse().unwrap_or(0),
            "e" if errors < 3 => {
                errors += 1;
                tell(&format!("{name}: {rest}"));
            }
            "h" => {
                let mut waits = waits.lock().unwrap_or_else(PoisonError::into_inner);
                let waiting = rest
                    .parse()
                    .ok()
                    .and_then(|number: u64| waits.get_mut(&number));
                let held = waiting.and_then(|waiting| waiting.held.take());
                let _ = held.map(|held| held.send(()));
            }
            "a" => {
                let (number, words) = rest.split_once(' ').unwrap_or((rest, ""));
                let number = number.parse().unwrap_or(u64::MAX);
                let waiting = waits
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(&number);
                let answer = waiting
                    .and_then(|waiting| waiting.answer)
                    .zip(Answer::parse(words));
                let _ = answer.map(|(waits, answer)| waits.send(answer));
            }
            _ => {}
        }
    }
    // Nobody answers those any more.
    waits.lock().unwrap_or_else(PoisonError::into_inner).clear();
    statements
}

/// The processes of a contender: some that answer, and perhaps one that persists.
pub(crate) struct Crew {
    pub(crate) web: Vec<Member>,
    pub(crate) worker: Option<Member>,
}

impl Crew {
    /// Starts `webs` processes that answer and, if `apart`, one that persists; else each does both.
    pub(crate) async fn start(
        program: &Path,
        scene: &Scene,
        webs: usize,
        apart: bool,
    ) -> Result<Self, RoadError> {
        let worker = match apart {
            true => Some(Member::start(program, scene, Role::Worker).await?),
            false => None,
        };
        let role = if apart { Role::Web } else { Role::Both };
        let mut web = Vec::with_capacity(webs);
        for _ in 0..webs {
            web.push(Member::start(program, scene, role).await?);
        }
        Ok(Self { web, worker })
    }

    /// The process that the n-th ask goes to.
    pub(crate) fn nth(&self, n: usize) -> &Member {
        &self.web[n % self.web.len()]
    }

    /// Kills all of them with SIGKILL.
    pub(crate) async fn kill(self) -> Result<(), RoadError> {
        for member in self.web.into_iter().chain(self.worker) {
            member.kill().await?;
        }
        Ok(())
    }

    /// Ends all in order; returns the statements of all.
    pub(crate) async fn end(self) -> Result<u64, RoadError> {
        let mut statements = 0;
        for member in self.web.into_iter().chain(self.worker) {
            statements += member.end().await?;
        }
        Ok(statements)
    }
}
