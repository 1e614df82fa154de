//! The binary: reads the command line, starts logging, and hands over.

use std::process::ExitCode;

use clap::Parser;
use server::commands::{self, Cli};

#[tokio::main]
async fn main() -> ExitCode {
    commands::run(Cli::parse()).await
}
