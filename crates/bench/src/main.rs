//! Measures Fairway beside nginx and HAProxy, from the outside, and writes what it measured.

mod control;
mod fairness;
mod flags;
mod idle;
mod instructions;
mod limits;
mod load;
mod machine;
mod measure;
mod peers;
mod probe;
mod process;
mod report;
mod results;
mod scenario;
mod session;
mod soak;
mod tls;
mod viewers;

use std::process::ExitCode;

use clap::Parser;
// The client is of the version of Kubernetes that is named there; built alone, nobody else would name one.
use k8s_openapi as _;

use crate::flags::Flags;

fn main() -> ExitCode {
    match session::run(&Flags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
