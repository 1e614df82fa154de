//! The command line: one subcommand for each thing the binary does.
//!
//! What a person asked for goes to standard output, what happened on the way to
//! standard error. Exit codes: 0 done, 1 it could not be done, 2 the settings are
//! wrong.

use std::{
    io::{self, BufRead, IsTerminal, Write},
    process::ExitCode,
};

use app::request::SessionUser;
use clap::{Parser, Subcommand};
use futures::{StreamExt, stream};
use seckill::Shop;

use crate::{
    Role, ServerError, build,
    config::{Config, Settings},
    ground, logging,
    sessions::Sessions,
    shutdown,
};

/// Flash sales that are never oversold: pages, API, queue and console in one binary
#[derive(Debug, Parser)]
#[command(name = "seckill-server", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How.
    #[command(flatten)]
    pub settings: Settings,
}

/// What the binary does.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serves the site and consumes the queue, in one process
    Serve,
    /// Serves the site only
    Web,
    /// Consumes the queue only
    Worker,
    /// Brings PostgreSQL's tables up to date
    Migrate,
    /// Creates an administrator, or gives an account a new password and that role
    ///
    /// The password comes from standard input or from SECKILL_ADMIN_PASSWORD, never from an argument,
    /// which every user of the machine could read.
    CreateAdmin {
        /// Name to sign in with
        name: String,
    },
    /// Says whether Redis and PostgreSQL can keep the promise: exit 0, or 1 and one line per finding
    Check,
    /// Makes signed-in buyers for load tests and prints one session cookie a line
    CreateBuyers {
        /// How many
        #[arg(long)]
        count: u32,
    },
}

/// Why a command could not be done.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error("cannot open the shop: {0}")]
    Open(#[from] seckill::OpenError),
    #[error("{0}")]
    Shop(#[from] seckill::Error),
    #[error("the sessions' Redis does not take them: {0}")]
    Sessions(#[from] tower_sessions::session::Error),
    #[error("the sessions' Redis cannot be reached: {0}")]
    SessionsAway(#[from] fred::error::Error),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("no password: pipe it to standard input or set SECKILL_ADMIN_PASSWORD")]
    NoPassword,
}

/// Does what the command line asks for.
pub async fn run(cli: Cli) -> ExitCode {
    if let Err(error) = logging::start(&cli.settings.log) {
        say(&format!("SECKILL_LOG is malformed: {error}"));
        return ExitCode::from(2);
    }
    let config = match cli.settings.check() {
        Ok(config) => config,
        Err(contradictions) => {
            say(&contradictions.to_string());
            return ExitCode::from(2);
        }
    };
    match command(cli.command, config).await {
        Ok(code) => code,
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

async fn command(command: Command, config: Config) -> Result<ExitCode, CommandError> {
    match command {
        Command::Serve => serve(config, Role::Both).await?,
        Command::Web => serve(config, Role::Web).await?,
        Command::Worker => serve(config, Role::Worker).await?,
        Command::Migrate => {
            let shop = Shop::open(config.shop).await?;
            shop.migrate().await?;
            shop.close().await;
            say("the tables are up to date");
        }
        Command::CreateAdmin { name } => {
            let password = std::env::var("SECKILL_ADMIN_PASSWORD").or_else(|_| read_password())?;
            let shop = Shop::open(config.shop).await?;
            let user = shop.create_admin(&name, &password).await?;
            shop.close().await;
            say(&format!("{} is an administrator", user.username));
        }
        Command::Check => return check(config).await,
        Command::CreateBuyers { count } => create_buyers(config, count).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn serve(config: Config, role: Role) -> Result<(), CommandError> {
    let stop = shutdown::on_signal()?;
    Ok(build(config, role).await?.run(stop).await?)
}

/// A service that is away is a finding here: what cannot be asked is not verified.
async fn check(config: Config) -> Result<ExitCode, CommandError> {
    let shop = Shop::open(config.shop).await?;
    let reach = ground::Reach::of(&shop).await;
    let lines = match shop.ground().await {
        Ok(findings) => ground::lines(&findings),
        Err(_) => vec![reach.sentence()],
    };
    let mut out = io::stdout().lock();
    for line in &lines {
        writeln!(out, "{line}")?;
    }
    Ok(if lines.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Accounts are made in chunks, so that a large count neither holds one
/// transaction for minutes nor stays silent.
async fn create_buyers(config: Config, count: u32) -> Result<(), CommandError> {
    const CHUNK: u32 = 5_000;
    const AT_ONCE: usize = 256;
    let sessions = Sessions::open(&config.session_redis, config.session_days, config.secure)?;
    let shop = Shop::open(config.shop).await?;
    sessions.wait().await?;
    let mut out = io::BufWriter::new(io::stdout());
    let mut made = 0;
    while made < count {
        let users = shop.create_buyers(CHUNK.min(count - made)).await?;
        made += CHUNK.min(count - made);
        let mut cookies = stream::iter(users)
            .map(|user| {
                let sessions = &sessions;
                async move {
                    sessions
                        .sign_in(&SessionUser {
                            user_id: user.user_id,
                            username: user.username,
                        })
                        .await
                }
            })
            .buffered(AT_ONCE);
        while let Some(cookie) = cookies.next().await {
            writeln!(out, "{}", cookie?)?;
        }
        if count > CHUNK {
            say(&format!("{made} of {count} buyers"));
        }
    }
    out.flush()?;
    sessions.close().await;
    shop.close().await;
    Ok(())
}

fn read_password() -> Result<String, CommandError> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        say("password (shown as typed):");
    }
    let mut line = String::new();
    stdin.lock().read_line(&mut line)?;
    let password = line.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        Err(CommandError::NoPassword)
    } else {
        Ok(password.to_owned())
    }
}

/// A line for the person who started the command.
fn say(line: &str) {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(io::stderr(), "{line}");
}
