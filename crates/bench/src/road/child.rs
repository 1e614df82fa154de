//! A contender's process: asks come in by standard input, answers go out by standard output.
//!
//! In: `<number> <user> <fault>`. Out: `r` once it is ready, `h <number>` where an ask stands at
//! its fault, `a <number> <answer>`, and, after the end of the input, `s <database statements>`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::oneshot;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::stores::{Role, SCENE, Scene};
use super::{Answer, Ask, Fault, Ready, RoadError, contenders, line};

/// Statements that this process sent to PostgreSQL, COMMIT too; for BEGIN the client library says nothing.
static STATEMENTS: AtomicU64 = AtomicU64::new(0);

/// Counts what the database client says about each statement.
struct Counter;

impl Subscriber for Counter {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "sqlx::query"
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {
        STATEMENTS.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Runs the contender that the environment names, until the input ends.
///
/// # Errors
/// When a store can't be reached, or persisting ended.
pub async fn child() -> Result<(), RoadError> {
    let scene = std::env::var(SCENE)
        .map_err(|_| RoadError::Broken("this command is for the road itself".into()))?;
    let scene: Scene =
        serde_json::from_str(&scene).map_err(|error| RoadError::Broken(error.to_string()))?;
    // Set once per process.
    let _ = tracing::subscriber::set_global_default(Counter);
    let contender = contenders::open(&scene).await?;

    let (ready, is_ready) = oneshot::channel();
    let persisting = Arc::clone(&contender);
    let persists = scene.role != Role::Web;
    let mut work = tokio::spawn(async move {
        if persists {
            persisting.persist(Ready(ready)).await
        } else {
            Ready(ready).tell();
            std::future::pending().await
        }
    });
    if is_ready.await.is_ok() {
        line("r");
    }
    let mut asks = BufReader::new(tokio::io::stdin()).lines();
    loop {
        let next = tokio::select! {
            next = asks.next_line() => next?,
            ended = &mut work => return ended.map_err(|error| RoadError::Broken(error.to_string()))?,
        };
        let Some(text) = next else { break };
        let ask =
            parse(&text, &scene).ok_or_else(|| RoadError::Broken(format!("not an ask: {text}")))?;
        let contender = Arc::clone(&contender);
        tokio::spawn(async move {
            let answer = match contender.buy(&ask).await {
                Ok(answer) => answer,
                Err(error) => {
                    line(&format!("e {error}"));
                    Answer::Failed
                }
            };
            line(&format!("a {} {}", ask.number, answer.words()));
        });
    }
    work.abort();
    line(&format!("s {}", STATEMENTS.load(Ordering::Relaxed)));
    Ok(())
}

fn parse(text: &str, scene: &Scene) -> Option<Ask> {
    let mut words = text.split(' ');
    Some(Ask {
        number: words.next()?.parse().ok()?,
        user: words.next()?.parse().ok()?,
        fault: Fault::parse(words.next()?)?,
        voucher: scene.voucher,
        lease: scene.lease(),
    })
}
