//! Flags of `dbg`.

use clap::{Args, Subcommand};

/// Flags of `dbg`.
#[derive(Args, Debug)]
#[command(after_help = "In a Pod, where it is called /dbg, too:
  kubectl exec deployment/ingress-nginx-controller -- /dbg backends list
  kubectl ingress-nginx conf --host shop.example  # its plugin for kubectl")]
pub(crate) struct Dbg {
    #[command(subcommand)]
    pub(crate) what: What,
    /// The admin port of the Fairway that is asked, on this machine; without it that of the one that runs here, else
    /// 10254.
    #[arg(long, value_name = "PORT", global = true)]
    pub(crate) healthz_port: Option<u16>,
    /// Of ingress-nginx's program of this name; without effect.
    #[arg(long, value_name = "PORT", global = true, hide = true)]
    pub(crate) status_port: Option<u16>,
}

/// What is looked at.
#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// The upstreams: Service ports and their endpoints.
    #[command(subcommand)]
    Backends(Backends),
    /// Certificates, without their keys.
    #[command(subcommand)]
    Certs(Certs),
    /// The settings of the process as a whole, as JSON.
    General,
    /// The hosts and their paths, in the order of age: what nginx.conf was asked for.
    Conf,
}

/// Which upstreams.
#[derive(Debug, Subcommand)]
pub(crate) enum Backends {
    /// All of them, as JSON.
    All,
    /// Their names.
    List,
    /// One of them, as JSON.
    Get {
        /// Its name.
        name: String,
    },
}

/// Which certificate.
#[derive(Debug, Subcommand)]
pub(crate) enum Certs {
    /// The chain that clients of a host are given, as PEM.
    Get {
        /// The host.
        host: String,
    },
}
