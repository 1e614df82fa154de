//! The binary: reads the command line, starts logging, and hands over.

use std::process::ExitCode;

use clap::Parser;
use server::commands::{self, Cli};

#[tokio::main]
async fn main() -> ExitCode {
    #[cfg(feature = "failpoints")]
    let _set_by_the_environment = fail::FailScenario::setup();
    commands::run(Cli::parse()).await
}
