//! `seckill-bench`: makes buyers, drives a sale over real HTTP, measures it, and audits.
//!
//! It never shares a process with the server: it sees what a browser sees, and for the audit
//! reads PostgreSQL and, through the domain, Redis. What it was told is kept in a ledger, so
//! that nobody's word is taken for an order but the database's.

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use bench::args::{self, Cli, Command, Place};
use bench::audit;
use bench::ledger::Ledger;
use bench::limits;
use bench::report::{self, Report, say, tell};
use bench::road;
use bench::scenario::{self, ScenarioError, Stage};
use bench::site::{self, Site};
use bench::viewers;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let command = cli.command.unwrap_or(Command::Buy(cli.buy));
    let threads = match &command {
        Command::Buy(args::Buy { place, .. })
        | Command::OneUser(args::OneUser { place, .. })
        | Command::Window(args::Window { place, .. })
        | Command::Viewers(args::Viewers { place, .. })
        | Command::Limits(args::Limits { place, .. }) => place.threads,
        Command::Audit(_) => 1,
        Command::Road(_) | Command::RoadChild | Command::Bare => 2,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads.into())
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => {
            let done = runtime.block_on(until_interrupted(&command));
            // A read of standard input that is under way would keep it alive.
            runtime.shutdown_background();
            done
        }
        Err(error) => Err(error.to_string()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            tell(&error);
            ExitCode::FAILURE
        }
    }
}

/// Runs a command and prints what it found; tells whether every check passed.
async fn until_interrupted(command: &Command) -> Result<bool, String> {
    let (report, json) = match command {
        Command::Audit(audit) => {
            let report = tokio::select! {
                report = scenario::audit(audit) => report.map_err(|error| error.to_string())?,
                () = interrupted() => return Err("interrupted".into()),
            };
            (report, &audit.json)
        }
        Command::Buy(args::Buy { place, .. })
        | Command::OneUser(args::OneUser { place, .. })
        | Command::Window(args::Window { place, .. })
        | Command::Viewers(args::Viewers { place, .. }) => {
            (staged(command, place).await?, &place.json)
        }
        Command::Road(args) => {
            let walked = road::walk(args, interrupted()).await;
            return walked.map_err(|error| error.to_string());
        }
        Command::Limits(args) => return limited(args).await,
        Command::Bare => {
            let ended = limits::child().await;
            return ended.map(|()| true).map_err(|error| error.to_string());
        }
        Command::RoadChild => {
            let ended = road::child().await;
            return ended.map(|()| true).map_err(|error| error.to_string());
        }
    };
    concluded(report, json.as_deref())
}

/// Plays a scenario, and clears away what was made for it, however it ends.
async fn staged(command: &Command, place: &Place) -> Result<Report, String> {
    let mut site = Site::of(place).map_err(|error| error.to_string())?;
    let played = tokio::select! {
        played = played(command, place, &mut site) => played.map_err(|error| error.to_string()),
        () = interrupted() => Err("interrupted: clearing away".into()),
    };
    if let Some(left) = site.close().await {
        tell(&left);
    }
    played
}

/// Measures how near the product is to the limit, and clears away what was made for it.
async fn limited(args: &args::Limits) -> Result<bool, String> {
    let mut site = Site::of(&args.place).map_err(|error| error.to_string())?;
    let measured = tokio::select! {
        measured = async {
            site.start().await.map_err(|error| error.to_string())?;
            limits::measure(&mut site, args).await.map_err(|error| error.to_string())
        } => measured,
        () = interrupted() => Err("interrupted: clearing away".into()),
    };
    if let Some(left) = site.close().await {
        tell(&left);
    }
    measured
}

async fn played(
    command: &Command,
    place: &Place,
    site: &mut Site,
) -> Result<Report, ScenarioError> {
    let ledger = Ledger::create(&site::ledger_path(place.ledger.as_deref(), &site.folder))?;
    site.start().await?;
    say(&format!(
        "{}, ledger {}",
        site.origin,
        ledger.path().display()
    ));
    if let Command::Viewers(args) = command {
        return viewers::watch(site, args).await;
    }
    let mut stage = Stage::set(site, place, ledger).await?;
    let report = match command {
        Command::Buy(args) => stage.buy(args).await?,
        Command::OneUser(args) => stage.one_user(args).await?,
        Command::Window(args) => stage.window(args).await?,
        Command::Viewers(_)
        | Command::Audit(_)
        | Command::Road(_)
        | Command::RoadChild
        | Command::Limits(_)
        | Command::Bare => unreachable!("they have no stage"),
    };
    stage.clear().await;
    Ok(report)
}

fn concluded(mut report: Report, json: Option<&Path>) -> Result<bool, String> {
    report.passed = audit::passed(&report.checks);
    say("audit");
    report::audit_lines(&report.checks)
        .iter()
        .for_each(|line| say(line));
    say(if report.passed { "passed" } else { "FAILED" });
    if let Some(path) = json {
        report::write_json(path, &report)
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(report.passed)
}

/// Ends when the program is asked to, by Ctrl-C or SIGTERM.
async fn interrupted() {
    let term = signal(SignalKind::terminate());
    let Ok(mut term) = term else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = term.recv() => {}
    }
}
