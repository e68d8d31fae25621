//! The binary `fairway`: flags in, tasks wired, nothing else.

mod admin;
mod admin_port;
mod bodies;
mod check;
mod cluster_writes;
mod compare;
mod configuration;
mod convert;
mod counted;
mod dbg;
mod default_class;
mod engines;
mod explain;
mod flags;
mod hook;
mod http_engine;
mod inherited;
mod logs;
mod overload;
mod own_pod;
mod passed_over;
mod ports;
mod reading;
mod replicas;
mod room;
mod run;
mod say;
mod shadow;
mod sources;
mod streams;
mod top;
mod version;
mod webhook_certificate;

use crate::say::note;
use flags::Command;
use std::process::ExitCode;

/// Requests are many small allocations that live shortly, on one thread each: what mimalloc is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match flags::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let outcome = match cli.command {
        Command::Run(flags) => run::run(*flags).map(|()| ExitCode::SUCCESS),
        Command::Translate(flags) => run::translate(&flags),
        Command::Check(flags) => check::run(*flags),
        Command::Convert(flags) => convert::run(*flags),
        Command::Compare(flags) => compare::run(*flags),
        Command::Explain(flags) => explain::run(*flags),
        Command::Top(flags) => top::run(&flags).map(|()| ExitCode::SUCCESS),
        Command::WaitShutdown(flags) => hook::run(&flags).map(|()| ExitCode::SUCCESS),
        Command::Dbg(flags) => dbg::run(&flags).map(|()| ExitCode::SUCCESS),
        Command::WebhookCertificate(flags) => {
            webhook_certificate::run(*flags).map(|()| ExitCode::SUCCESS)
        }
        Command::Version => say::text(version::banner()).map(|()| ExitCode::SUCCESS),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            note!("fairway: {}", line(&error));
            ExitCode::FAILURE
        }
    }
}

/// One line: what was attempted and why it did not work, from the outside in; nothing is said twice.
fn line(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !line.contains(&cause) {
            line.push_str(": ");
            line.push_str(&cause);
        }
    }
    line
}
