//! What `/metrics` says.

use super::pflag::integer;
use anyhow::{Result, ensure};
use clap::{ArgAction, Args};
use request_metrics::{Measure, Settings};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;

/// What ingress-nginx's names may begin with.
const PREFIX: &str = "nginx_ingress_controller_";

/// What `/metrics` says.
#[derive(Args, Debug)]
#[command(next_help_heading = "Metrics")]
pub(crate) struct Metrics {
    /// Count requests and tell about them at /metrics of the admin server; without it, that is about the process only.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", action = ArgAction::Set)]
    pub(crate) enable_metrics: bool,
    /// Tell hosts apart (label host); only hosts that an Ingress names count.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = true,
        default_missing_value = "true", action = ArgAction::Set)]
    pub(crate) metrics_per_host: bool,
    /// Count hosts that no Ingress names, too, such as those of a wildcard; they get a quarter of
    /// --metrics-series-limit.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", action = ArgAction::Set)]
    pub(crate) metrics_per_undefined_host: bool,
    /// Tell classes of statuses apart (2xx), not statuses.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", action = ArgAction::Set)]
    pub(crate) report_status_classes: bool,
    /// Metrics of requests to leave out, separated by commas, with or without nginx_ingress_controller_ in front.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) exclude_socket_metrics: Vec<String>,
    /// Upper bounds of the times of requests, in seconds.
    #[arg(
        long,
        value_name = "NUMBERS",
        value_delimiter = ',',
        default_value = "0.005,0.01,0.025,0.05,0.1,0.25,0.5,1,2.5,5,10"
    )]
    pub(crate) time_buckets: Vec<f64>,
    /// Upper bounds of request_size and response_size, in bytes.
    #[arg(
        long,
        value_name = "NUMBERS",
        value_delimiter = ',',
        default_value = "10,20,30,40,50,60,70,80,90,100"
    )]
    pub(crate) length_buckets: Vec<f64>,
    /// Upper bounds of bytes_sent, in bytes.
    #[arg(
        long,
        value_name = "NUMBERS",
        value_delimiter = ',',
        default_value = "10,100,1000,10000,100000,1e6,1e7"
    )]
    pub(crate) size_buckets: Vec<f64>,
    /// Combinations of labels at most under which requests are counted; further ones are counted as overflow.
    /// One namespace has as many as it leaves free: half where it is alone. 1 at least.
    #[arg(long, value_name = "N", default_value = "10000", value_parser = series)]
    pub(crate) metrics_series_limit: NonZeroUsize,
    /// Requests of one worker and second that --engine=nginx measures; 10000 at least. The rest is not counted, and the
    /// log says how many those were.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) monitor_max_batch_size: u32,
}

impl Metrics {
    /// What is counted; none if nothing is. Says what is wrong with the flags either way.
    pub(crate) fn settings(&self) -> Result<Option<Settings>> {
        ensure!(
            self.metrics_per_host || !self.metrics_per_undefined_host,
            "--metrics-per-undefined-host needs --metrics-per-host: leave out --metrics-per-host=false, or do not ask for undefined hosts"
        );
        let settings = Settings {
            per_host: self.metrics_per_host,
            undefined_hosts: self.metrics_per_undefined_host,
            status_classes: self.report_status_classes,
            times: bounds("time-buckets", &self.time_buckets)?,
            lengths: bounds("length-buckets", &self.length_buckets)?,
            sizes: bounds("size-buckets", &self.size_buckets)?,
            excluded: self.excluded(),
            most: self.metrics_series_limit.get(),
        };
        Ok(self.enable_metrics.then_some(settings))
    }

    /// Names that mean nothing are said and change nothing, as for ingress-nginx.
    fn excluded(&self) -> BTreeSet<Measure> {
        let mut excluded = BTreeSet::new();
        for name in self.exclude_socket_metrics.iter().map(|name| name.trim()) {
            let short = name.strip_prefix(PREFIX).unwrap_or(name);
            let known = Measure::ALL.into_iter().find(|measure| measure.name() == short);
            if known.is_none() && !name.is_empty() {
                let names = Measure::ALL.map(Measure::name).join(", ");
                tracing::warn!("--exclude-socket-metrics: there is no {name:?}; there are {names}");
            }
            excluded.extend(known);
        }
        excluded
    }
}

/// A number of series: of none, nothing would be counted but overflow.
fn series(text: &str) -> Result<NonZeroUsize, String> {
    let number = integer::<usize>(text).ok().and_then(NonZeroUsize::new);
    number.ok_or_else(|| {
        "expected a number from 1 on; --enable-metrics=false counts no requests".to_owned()
    })
}

/// Bounds in ascending order; infinity is the last one anyway.
fn bounds(flag: &str, given: &[f64]) -> Result<Vec<f64>> {
    let given = given.strip_suffix(&[f64::INFINITY]).unwrap_or(given);
    let ascend = given.windows(2).all(|pair| pair[0] < pair[1]);
    let possible = given.iter().all(|bound| bound.is_finite() && *bound >= 0.0);
    ensure!(
        ascend && possible,
        "--{flag}: {given:?} are no upper bounds: write numbers from 0 on, each above the one before"
    );
    Ok(given.to_vec())
}

#[cfg(test)]
mod tests {
    use super::Metrics;
    use crate::flags::{read, with_command};
    use clap::{Args, Command, FromArgMatches};
    use request_metrics::Measure;

    fn given(arguments: &[&str]) -> Metrics {
        let command = Metrics::augment_args(Command::new("fairway").no_binary_name(true));
        let matches = command.try_get_matches_from(arguments).expect("flags");
        Metrics::from_arg_matches(&matches).expect("flags")
    }

    fn refusal(arguments: &[&str]) -> String {
        given(arguments).settings().expect_err("a mistake").to_string()
    }

    #[test]
    fn bounds_are_those_of_ingress_nginx_unless_others_are_given() {
        let usual = given(&["--enable-metrics"]).settings().unwrap().expect("enabled");
        assert_eq!((usual.times.len(), usual.lengths.len(), usual.sizes.len()), (11, 10, 7));
        assert_eq!(usual.sizes[6], 1e7);
        let own = given(&["--enable-metrics", "--time-buckets=0.5,1,+Inf"]).settings().unwrap();
        assert_eq!(own.expect("enabled").times, [0.5, 1.0]);
        assert!(given(&["--enable-metrics=false"]).settings().unwrap().is_none());
    }

    #[test]
    fn what_cannot_be_is_one_line_with_the_flag_even_where_nothing_is_counted() {
        let both = refusal(&["--metrics-per-host=false", "--metrics-per-undefined-host"]);
        assert!(
            both.starts_with("--metrics-per-undefined-host needs --metrics-per-host"),
            "{both}"
        );
        for bounds in ["1,1", "2,1", "-1,1", "NaN"] {
            let line = refusal(&[&format!("--size-buckets={bounds}")]);
            assert!(line.starts_with("--size-buckets: ["), "{line}");
        }
    }

    #[test]
    fn a_limit_of_no_series_is_refused() {
        for limit in ["0", "-1", "many"] {
            let arguments = ["fairway".to_owned(), format!("--metrics-series-limit={limit}")];
            let arguments = arguments.into_iter().map(std::ffi::OsString::from);
            let error = read(with_command(arguments)).expect_err("a mistake").to_string();
            assert!(error.contains("expected a number from 1 on"), "{error}");
        }
        assert_eq!(given(&["--metrics-series-limit=1"]).metrics_series_limit.get(), 1);
    }

    #[test]
    fn metrics_are_left_out_with_and_without_the_prefix() {
        let names =
            "--exclude-socket-metrics=requests, nginx_ingress_controller_bytes_sent,nonsense";
        let settings = given(&["--enable-metrics", names]).settings().unwrap().expect("enabled");
        assert_eq!(settings.excluded, [Measure::Requests, Measure::BytesSent].into());
    }
}
