//! Flags of `compare`.

use clap::{ArgGroup, Args, ValueEnum};
use std::path::PathBuf;
use verdict::compare::Target;

/// Flags of `compare`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  fairway compare --old https://192.0.2.10 --new https://192.0.2.20 \\
    --log access.log --log-format '$host \"$request\" $status'
  fairway compare --old https://192.0.2.10 --new https://192.0.2.20 \\
    --har visit.har --report html > report.html
  fairway compare --old http://127.0.0.1:8080 --new http://127.0.0.1:9090 \\
    --requests list.txt --resume state.jsonl

--old and --new say where the controllers are; each request asks them for its own host (Host, and the name in the TLS \
handshake). A list of requests has a line for each: a URL, METHOD URL, or {\"method\": …, \"url\": …, \"headers\": {…}}. \
Requests are sent to the real applications behind both: GET, HEAD and OPTIONS alone, unless you say otherwise.

Exit codes: 0 all are answered alike; 1 something could not be read, or a request could not be compared, or the old side \
could not be reached; 2 some are not answered alike, or the new side failed so often that it was stopped.")]
#[command(group = ArgGroup::new("what").args(["log", "har", "requests"]).required(true).multiple(true))]
pub(crate) struct Compare {
    /// The controller that serves today: scheme, address and port.
    #[arg(long, value_name = "URL")]
    pub(crate) old: Target,
    /// The controller that is to serve.
    #[arg(long, value_name = "URL")]
    pub(crate) new: Target,
    /// Access logs that have the requests, plain or gzip; - is standard input. Their format has to have $host.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Vec<PathBuf>,
    /// The format of the logs as nginx has it.
    #[arg(long, value_name = "FORMAT", requires = "log")]
    pub(crate) log_format: Option<String>,
    /// HAR files that have the requests.
    #[arg(long, value_name = "FILE")]
    pub(crate) har: Vec<PathBuf>,
    /// Lists of requests.
    #[arg(long, value_name = "FILE")]
    pub(crate) requests: Vec<PathBuf>,
    /// Send POST, PUT, DELETE and the like, too: to both, so that what they do is done twice.
    #[arg(long)]
    pub(crate) unsafe_methods: bool,
    /// Send Authorization and Cookie, too, where the requests have them.
    #[arg(long)]
    pub(crate) with_credentials: bool,
    /// Requests a second, to each side.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) rate: u64,
    /// Requests at the same time.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=256))]
    pub(crate) concurrency: u64,
    /// End after so many failures of the new side where the old one does not fail; or after the old side could not be
    /// reached so often.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) stop_after: u64,
    /// A file that keeps what was compared; started again with it, the comparison goes on there.
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
    /// Do not look at certificates.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Speak HTTP/2 to both: over TLS by ALPN, in clear with prior knowledge; HTTP/1.1 otherwise.
    #[arg(long)]
    pub(crate) http2: bool,
    /// Compare the bodies of error answers, too; each controller words its own.
    #[arg(long)]
    pub(crate) strict_body: bool,
    /// What to print.
    #[arg(long, visible_alias = "output", value_enum, default_value_t = Report::Markdown)]
    pub(crate) report: Report,
}

/// What to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Report {
    /// For reading.
    Markdown,
    /// For a browser.
    Html,
    /// For programs; every request is in it.
    Json,
    /// For pipelines: a test case for each request.
    Junit,
}
