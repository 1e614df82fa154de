//! The command: every contender in turn, the table, the documents.

use std::future::Future;
use std::path::Path;

use super::{Outcome, Road, RoadError, Row, Size, lines, rows, write_pages};
use crate::args;
use crate::report::{say, tell};

/// Runs the road until `interrupted` ends; tells whether every contender was as its row says.
///
/// # Errors
/// When a contender could not be run, or a document not be written.
pub async fn walk(
    args: &args::Road,
    interrupted: impl Future<Output = ()>,
) -> Result<bool, RoadError> {
    let size = Size {
        users: args.users,
        stock: args.stock,
        concurrency: args.concurrency,
        crash_users: args.crash_users,
        lease_ms: args.lease_ms,
    };
    let program = std::env::current_exe()?;
    let road = Road::open(
        program,
        &args.database_url,
        &args.redis_url,
        args.amqp_url.clone(),
        size,
    )
    .await?;
    let outcomes = tokio::select! {
        outcomes = all(&road, args.only.as_deref()) => outcomes,
        () = interrupted => Err(RoadError::Broken("interrupted: clearing away".into())),
    };
    road.close().await?;
    let outcomes = outcomes?;
    lines(&outcomes).iter().for_each(|line| say(line));
    let good = !outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.surprises.is_empty());
    if let Some(folder) = &args.docs {
        documents(folder, &outcomes, &size, good)?;
    }
    say(if good {
        "every contender is as described"
    } else {
        "FAILED: not as described, or none was run"
    });
    Ok(good)
}

async fn all(road: &Road, only: Option<&str>) -> Result<Vec<Outcome>, RoadError> {
    let named = |row: &&Row| only.is_none_or(|text| row.name.contains(text));
    let chosen: Vec<&'static Row> = rows().iter().filter(named).collect();
    let mut outcomes = Vec::with_capacity(chosen.len());
    for (n, row) in chosen.iter().enumerate() {
        if !road.has(row) {
            return Err(RoadError::Broken(format!(
                "{} needs RabbitMQ: set AMQP_URL, or run script/bench road",
                row.name
            )));
        }
        tell(&progress(n, chosen.len(), row.title));
        outcomes.push(road.walk(row).await?);
    }
    Ok(outcomes)
}

/// A bar of contenders that are done, and which one has its turn.
fn progress(done: usize, all: usize, title: &str) -> String {
    const WIDTH: usize = 30;
    let filled = (done * WIDTH / all.max(1)).min(WIDTH);
    let bar = format!("{}{}", "█".repeat(filled), "░".repeat(WIDTH - filled));
    format!("{bar} {} of {all}: {title}", done + 1)
}

/// Only a whole run that is as described becomes a document.
fn documents(
    folder: &Path,
    outcomes: &[Outcome],
    size: &Size,
    good: bool,
) -> Result<(), RoadError> {
    if good && outcomes.len() == rows().len() {
        write_pages(folder, outcomes, size)?;
        say(&format!(
            "written: road.md, road.json and road.svg in {}",
            folder.display()
        ));
    } else {
        tell("no documents are written of a run that is not whole or not as described");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills_as_contenders_are_done() {
        assert_eq!(progress(0, 18, "x").matches('█').count(), 0);
        assert_eq!(progress(9, 18, "x").matches('█').count(), 15);
        assert!(progress(17, 18, "x").ends_with("18 of 18: x"));
    }
}
