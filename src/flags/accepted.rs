//! Flags of ingress-nginx that are taken but have no effect yet (or never will): each is named in the log at start.

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};

/// Names of the flags, and whether a value may follow without `=`.
const FLAGS: &[(&str, Takes)] = &[
    ("disable-full-test", Takes::Switch),
    ("monitor-max-batch-size", Takes::Value),
    ("bucket-factor", Takes::Value),
    ("max-buckets", Takes::Value),
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

/// Those that are ports, with what they are by default (compat/flags.csv).
const PORTS: &[(&str, u16)] = &[
    ("default-server-port", 8181),
    ("profiler-port", 10245),
    ("status-port", 10246),
    ("stream-port", 10247),
    ("ssl-passthrough-proxy-port", 442),
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
    /// Ports that ingress-nginx listened on for itself: no TCP or UDP service has them (compat/behaviour.md section
    /// 18).
    pub(crate) ports: Vec<u16>,
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
        let port = |(name, default): &(&str, u16)| {
            let text = matches.try_get_one::<String>(name).ok().flatten();
            text.and_then(|text| text.parse().ok()).unwrap_or(*default)
        };
        self.ports = PORTS.iter().map(port).collect();
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
