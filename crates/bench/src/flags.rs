//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Measures Fairway beside nginx and HAProxy and writes what it measured.
///
/// Without a command it measures traffic, idle connections and, from a folder of manifests, the control side.
/// Nothing is changed outside the folder for files and the two results.
#[derive(Debug, Parser)]
#[command(name = "bench")]
pub(crate) struct Flags {
    /// Something else than that.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// What all commands share.
    #[command(flatten)]
    pub(crate) shared: Shared,
}

/// Other things to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The control side with the API server of KUBECONFIG; Fairway gets FAIRWAY_KUBECONFIG
    Cluster {
        /// With HTTPRoutes instead of Ingresses
        #[arg(long)]
        routes: bool,
    },
    /// Instructions per request of Fairway, with valgrind
    Instructions {
        /// How many requests are counted
        #[arg(long, value_name = "N", default_value_t = 5_000)]
        requests: u64,
    },
    /// All kinds of traffic and changes in turns; fails when memory, descriptors or threads grow after the warm-up
    Soak {
        /// For how long
        #[arg(long = "for", value_name = "SECONDS", default_value_t = 3_600)]
        time: u64,
    },
    /// What people cost who look at the page of the admin port; fails above 1 % of a processor
    Viewers {
        /// How many of them look
        #[arg(long, value_name = "N", default_value_t = 10)]
        viewers: usize,
        /// How many routes there are
        #[arg(long, value_name = "N", default_value_t = 10_000)]
        hosts: usize,
    },
    /// Writes the document from the results again
    Report,
    /// Passes on what comes to a port of loopback; what it costs is the floor of the others
    #[command(hide = true)]
    Floor {
        /// The port
        port: u16,
        /// Where it goes
        upstream: SocketAddr,
    },
}

/// What is measured, and where the results go.
#[derive(Debug, Args)]
pub(crate) struct Shared {
    /// The Fairway to measure [default: the one beside this program]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) binary: Option<PathBuf>,
    /// A further flag for Fairway where traffic is measured, such as --flag=--enable-metrics; may be repeated
    #[arg(long, global = true, value_name = "FLAG", allow_hyphen_values = true)]
    pub(crate) flag: Vec<String>,
    /// Measures only this, may be repeated; a wrong name prints all names
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Measures only this proxy, may be repeated: fairway, fairway-nginx, nginx or haproxy
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) peer: Vec<String>,
    /// How often every proxy has its turn, and how often Fairway is started for the control side [default: 3]
    #[arg(long, global = true, value_name = "N", hide_default_value = true)]
    pub(crate) rounds: Option<usize>,
    /// Length of a turn [default: 2]
    #[arg(long, global = true, value_name = "SECONDS")]
    pub(crate) seconds: Option<f64>,
    /// Numbers of Ingresses of the control side, from small to large [default: 1000,5000,10000]
    #[arg(long, global = true, value_name = "N,N", value_delimiter = ',')]
    pub(crate) sizes: Vec<usize>,
    /// Changes whose propagation is measured [default: 100]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) changes: Option<usize>,
    /// Requests per second while changes are made under load
    #[arg(long, global = true, value_name = "N", default_value_t = 10_000.0)]
    pub(crate) rate: f64,
    /// Very short turns, one round, few hosts and changes: says that the bench works, not how fast anything is.
    /// Writes next to the results instead of over them
    #[arg(long, global = true)]
    pub(crate) quick: bool,
    /// The results; what is not measured again stays
    #[arg(long, global = true, value_name = "FILE", default_value = "docs/benchmarks.json")]
    pub(crate) json: PathBuf,
    /// The document made of them
    #[arg(long, global = true, value_name = "FILE", default_value = "docs/benchmarks.md")]
    pub(crate) docs: PathBuf,
    /// A folder for configuration and logs; it is emptied first
    #[arg(long, global = true, value_name = "DIR", default_value = "target/bench")]
    pub(crate) folder: PathBuf,
}
