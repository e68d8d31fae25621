//! Flags of ingress-nginx that are taken but have no effect yet (or never will): each is named in the log at start.

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};

/// Names of the flags, and whether a value may follow without `=`.
const FLAGS: &[(&str, Takes)] = &[
    ("tcp-services-configmap", Takes::Value),
    ("udp-services-configmap", Takes::Value),
    ("publish-service", Takes::Value),
    ("publish-status-address", Takes::Value),
    ("election-id", Takes::Value),
    ("election-ttl", Takes::Value),
    ("disable-leader-election", Takes::Switch),
    ("update-status", Takes::Switch),
    ("update-status-on-shutdown", Takes::Switch),
    ("status-update-interval", Takes::Value),
    ("report-node-internal-ip-address", Takes::Switch),
    ("disable-full-test", Takes::Switch),
    ("enable-metrics", Takes::Switch),
    ("metrics-per-host", Takes::Switch),
    ("metrics-per-undefined-host", Takes::Switch),
    ("report-status-classes", Takes::Switch),
    ("exclude-socket-metrics", Takes::Value),
    ("monitor-max-batch-size", Takes::Value),
    ("bucket-factor", Takes::Value),
    ("max-buckets", Takes::Value),
    ("time-buckets", Takes::Value),
    ("length-buckets", Takes::Value),
    ("size-buckets", Takes::Value),
    ("enable-ssl-passthrough", Takes::Switch),
    ("ssl-passthrough-proxy-port", Takes::Value),
    ("enable-ssl-chain-completion", Takes::Switch),
    ("default-server-port", Takes::Value),
    ("status-port", Takes::Value),
    ("stream-port", Takes::Value),
    ("health-check-timeout", Takes::Value),
    ("profiling", Takes::Switch),
    ("profiler-port", Takes::Value),
    ("profiler-address", Takes::Value),
    ("post-shutdown-grace-period", Takes::Value),
    ("sync-period", Takes::Value),
    ("sync-rate-limit", Takes::Value),
    ("dynamic-configuration-retries", Takes::Value),
    ("disable-sync-events", Takes::Switch),
    ("internal-logger-address", Takes::Value),
    ("maxmind-license-key", Takes::Value),
    ("maxmind-mirror", Takes::Value),
    ("maxmind-retries-count", Takes::Value),
    ("maxmind-retries-timeout", Takes::Value),
    ("vmodule", Takes::Value),
    ("logtostderr", Takes::Switch),
    ("alsologtostderr", Takes::Switch),
    ("stderrthreshold", Takes::Value),
    ("log_backtrace_at", Takes::Value),
    ("log_dir", Takes::Value),
    ("log_file", Takes::Value),
    ("log_file_max_size", Takes::Value),
    ("add_dir_header", Takes::Switch),
    ("skip_headers", Takes::Switch),
    ("skip_log_headers", Takes::Switch),
    ("one_output", Takes::Switch),
    ("alsologtostderrthreshold", Takes::Value),
    ("legacy_stderr_threshold_behavior", Takes::Switch),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// `--flag value` or `--flag=value`.
    Value,
    /// `--flag` or `--flag=false`.
    Switch,
}

/// Names of all of them.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FLAGS.iter().map(|(name, _)| *name)
}

/// The flags without effect that were given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accepted {
    pub(crate) given: Vec<&'static str>,
}

impl FromArgMatches for Accepted {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut accepted = Self::default();
        accepted.update_from_arg_matches(matches)?;
        Ok(accepted)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let names = FLAGS.iter().map(|(name, _)| *name);
        self.given = names.filter(|name| matches.contains_id(name)).collect();
        Ok(())
    }
}

impl Args for Accepted {
    fn augment_args(command: Command) -> Command {
        FLAGS.iter().fold(command, |command, (name, takes)| {
            let flag = Arg::new(*name).long(*name).hide(true);
            command.arg(match takes {
                Takes::Value => flag.num_args(1).allow_hyphen_values(true),
                Takes::Switch => {
                    flag.num_args(0..=1).require_equals(true).default_missing_value("true")
                }
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
