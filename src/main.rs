//! The binary `fairway`: flags in, tasks wired, nothing else.

mod flags;
mod wire;

use clap::Parser;
use flags::{Cli, Command};
use std::process::ExitCode;

/// Requests are many small allocations that live shortly, on one thread each: what mimalloc is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse_from(flags::with_command(std::env::args_os()));
    let outcome = match cli.command {
        Command::Run(flags) => wire::run(*flags),
        Command::Translate(flags) => wire::translate(&flags),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // One line: what was attempted and why it did not work, from the outside in.
            eprintln!("fairway: {error:#}");
            ExitCode::FAILURE
        }
    }
}
