//! What can be said on the command line: the flags of ingress-nginx, and a few of our own.

mod accepted;
mod check;
mod classes;
mod compare;
mod convert;
mod dbg;
#[cfg(test)]
mod documentation;
mod explain;
mod geoip;
mod listen;
mod metrics;
mod mistake;
mod name;
mod object;
mod of_run;
mod pflag;
mod profiling;
mod source;
#[cfg(test)]
mod spellings;
mod status;
mod top;
mod webhook;
mod webhook_certificate;

pub(crate) use check::{Check, FailOn, Format};
pub(crate) use classes::{Classes, TargetPorts};
pub(crate) use compare::{Compare, Report as CompareReport};
pub(crate) use convert::Convert;
pub(crate) use dbg::{Backends, Certs, Dbg, What};
pub(crate) use explain::{Explain, Output};
pub(crate) use geoip::GeoIp;
pub(crate) use listen::{EngineName, Listeners};
pub(crate) use metrics::Metrics;
pub(crate) use name::{means_run, with_command};
pub(crate) use pflag::seconds;
pub(crate) use profiling::Profiling;
pub(crate) use source::Source;
pub(crate) use status::Status;
pub(crate) use top::{By, Top};
pub(crate) use webhook::Webhook;
pub(crate) use webhook_certificate::WebhookCertificate;

use crate::say::note;
use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// An ingress controller for Kubernetes: the drop-in successor to ingress-nginx.
#[derive(Debug, Parser)]
#[command(
    name = "fairway",
    version = crate::version::short(),
    about,
    max_term_width = 100,
    after_help = "Flags without a command mean `run`:
  fairway --manifests ./manifests --http-port 8080

`fairway help run` lists what a controller can be told, `fairway help check` what to do before the move from ingress-nginx."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve what a cluster, or a folder of YAML, says. This is what flags without a command mean, too.
    Run(Box<Run>),
    /// Tell for each Ingress whether it is served as ingress-nginx served it, and why not.
    Check(Box<Check>),
    /// Write objects of the Gateway API for Ingresses, with what they cannot say as comments.
    Convert(Box<Convert>),
    /// Send the same requests to an old and a new controller, and tell where their answers differ.
    Compare(Box<Compare>),
    /// Tell why a request goes where it goes: every decision, with the Ingress and annotation behind it.
    Explain(Box<Explain>),
    /// Show the routes with most requests, errors or latency, live; once, as plain text, where there is no terminal.
    Top(Box<Top>),
    /// Print what a folder of YAML means: the configuration as JSON, its problems on standard error.
    Translate(Box<Translate>),
    /// Ask the Fairway of this container to end, and wait until it has: the preStop hook of a Pod.
    WaitShutdown(WaitShutdown),
    /// Print what the Fairway of this container serves: backends, certificates, hosts and paths.
    Dbg(Dbg),
    /// Make the certificate of the admission webhook, and tell the API server to believe it.
    WebhookCertificate(Box<WebhookCertificate>),
    /// Print what this is: its release, and the commit that it was built from.
    Version,
}

/// Flags of `run`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fairway run --manifests ./manifests --http-port 8080 --https-port 8443
  fairway run --kubeconfig ~/.kube/config \\
    --configmap ingress-nginx/ingress-nginx-controller
  fairway --ingress-class=nginx           # in a Pod: the cluster it runs in

Every flag of ingress-nginx is taken, in every spelling: --flag=value, --flag value, --flag for a switch, --flag=false; \
the last one of a name counts. Those that are not listed here have no effect, which the log says with the reason. \
docs/flags.md has all of them.")]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) classes: Classes,
    #[command(flatten)]
    pub(crate) listeners: Listeners,
    #[command(flatten)]
    pub(crate) geoip: GeoIp,
    #[command(flatten)]
    pub(crate) webhook: Webhook,
    #[command(flatten)]
    pub(crate) status: Status,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
    /// Seconds between SIGTERM and the moment no new connections are taken; /healthz fails at once.
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds, help_heading = "Process")]
    pub(crate) shutdown_grace_period: Duration,
    #[command(flatten)]
    pub(crate) profiling: Profiling,
    /// Threads that serve traffic; by default one for each processor that the cgroup grants.
    #[arg(long, value_name = "N", value_parser = threads, help_heading = "Process")]
    pub(crate) worker_threads: Option<std::num::NonZeroUsize>,
    /// Memory that the process may use, such as 512Mi; by default what its cgroup grants. Near it load is shed.
    #[arg(long, value_name = "SIZE", value_parser = memory, help_heading = "Process")]
    pub(crate) memory_limit: Option<u64>,
    /// Bytes of temporary files that hold request bodies; those of one namespace may have half of them [default: 1Gi].
    #[arg(long, value_name = "SIZE", value_parser = bytes, help_heading = "Process")]
    pub(crate) body_files_limit: Option<u64>,
    /// How much to log: 0 is normal, 2 shows what changes in nginx.conf, 3 tells about each change of endpoints, each
    /// review and each connection that fails, 5 lets nginx tell about each connection. RUST_LOG goes before it.
    #[arg(long, short = 'v', value_name = "LEVEL", default_value_t = 0, help_heading = "Process")]
    pub(crate) v: u8,
    /// How the process writes its own log: text, or an object of JSON for each line.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = log_format, help_heading = "Process")]
    pub(crate) log_format: runtime::log::Format,
    /// Print what this is, and end.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set, help_heading = "Process")]
    pub(crate) version: bool,
    #[command(flatten)]
    pub(crate) accepted: accepted::Accepted,
    /// pflag lets words stand between flags and does nothing with them; `--flag false` for a switch is the usual one.
    #[arg(hide = true)]
    pub(crate) words: Vec<String>,
}

/// Flags of `wait-shutdown`.
#[derive(Args, Debug)]
#[command(after_help = "As a preStop hook:
  lifecycle: {preStop: {exec: {command: [/wait-shutdown]}}}

Exit codes: 0 it has ended, or there was none; 1 it still ran when the time was over.")]
pub(crate) struct WaitShutdown {
    /// How long to wait at most, in seconds or as a duration such as 5m; without it, until the controller has ended:
    /// what Kubernetes sends when a hook returns would cut off what still runs.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// The process, where several controllers run outside of containers.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) pid: Option<i32>,
}

/// Flags of `translate`.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 nothing worse than warnings; 1 something could not be read; 2 an object has an error, for which it, \
or a part of it, is not served."
)]
pub(crate) struct Translate {
    /// Folders (or files) of YAML or JSON.
    #[arg(required_unless_present = "manifests", value_name = "PATH")]
    pub(crate) paths: Vec<std::path::PathBuf>,
    /// The same, as the other commands have it; may be repeated.
    #[arg(long, value_name = "PATH")]
    pub(crate) manifests: Vec<std::path::PathBuf>,
    #[command(flatten)]
    pub(crate) classes: Classes,
}

/// What the command line says; or else how to end, having said why.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Cli, ExitCode> {
    read(with_command(arguments)).map_err(|error| match mistake::line(&error) {
        Some(line) => {
            note!("fairway: {line}");
            ExitCode::FAILURE
        }
        // What was asked for, or what teaches whoever asked for nothing.
        None => match error.print() {
            Ok(()) if !error.use_stderr() => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        },
    })
}

fn read(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut all = command();
    let matches = all.try_get_matches_from_mut(arguments)?;
    of_run::tell(&all, &matches);
    Cli::from_arg_matches(&matches)
}

fn command() -> clap::Command {
    of_run::passed_over(Cli::command().mut_subcommands(pflag::spelled_freely))
}

/// A number of bytes, as Kubernetes writes them: `536870912`, `512Mi`, `1G`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let units = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("k", 1000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
    ];
    let (number, unit) = units
        .iter()
        .find_map(|(unit, bytes)| text.strip_suffix(unit).map(|number| (number, *bytes)))
        .unwrap_or((text, 1));
    let number: Option<u64> = number.parse().ok().filter(|number| *number > 0);
    number
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| "expected a number of bytes, such as 512Mi or 1G".to_owned())
}

/// Memory for a whole process: who forgets the unit wants more than that.
fn memory(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 16 << 20;
    match bytes(text)? {
        enough @ LEAST.. => Ok(enough),
        few => Err(format!(
            "{few} bytes are less than the program itself takes: write the unit, such as 512Mi"
        )),
    }
}

/// A number of threads.
fn threads(text: &str) -> Result<std::num::NonZeroUsize, String> {
    const MOST: usize = 1024;
    let number = pflag::integer::<u32>(text).ok().and_then(|number| usize::try_from(number).ok());
    number
        .filter(|number| *number <= MOST)
        .and_then(std::num::NonZeroUsize::new)
        .ok_or_else(|| format!("expected a number from 1 to {MOST}"))
}

/// `text` or `json`.
fn log_format(text: &str) -> Result<runtime::log::Format, String> {
    match text {
        "text" => Ok(runtime::log::Format::Text),
        "json" => Ok(runtime::log::Format::Json),
        _ => Err("expected text or json".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{bytes, command, memory};

    /// A terminal's usual width: what is longer is broken anywhere, and can be pasted no more.
    const WIDTH: usize = 80;

    #[test]
    fn examples_fit_into_a_terminal_and_prose_has_no_breaks_of_its_own() {
        let all = command();
        let texts = std::iter::once(&all).chain(all.get_subcommands());
        for text in texts.filter_map(|one| one.get_after_help()).map(ToString::to_string) {
            for example in text.lines().filter(|line| line.starts_with("  ")) {
                assert!(example.chars().count() <= WIDTH, "break it with a \\: {example}");
            }
            // A line of prose is followed by an empty one, by examples, or by nothing.
            let lines: Vec<&str> = text.lines().collect();
            let is_prose = |line: &str| !line.is_empty() && !line.starts_with("  ");
            let broken = lines.windows(2).find(|two| is_prose(two[0]) && is_prose(two[1]));
            assert!(broken.is_none(), "clap breaks lines itself: {broken:?}");
        }
    }

    #[test]
    fn sizes_are_written_as_kubernetes_writes_them() {
        let sizes = ["1000", "512Ki", "64Mi", "2Gi", "1k", "3M", "1G"].map(|text| bytes(text).ok());
        let wanted = [1000, 512 << 10, 64 << 20, 2 << 30, 1000, 3_000_000, 1_000_000_000];
        assert_eq!(sizes, wanted.map(Some));
        for wrong in ["", "0", "-1", "1.5Gi", "Mi", "1Xi", "99999999999Gi", "64 Mi"] {
            assert!(bytes(wrong).is_err(), "{wrong:?}");
        }
        assert!(memory("512").is_err() && memory("512Mi").is_ok());
    }
}
