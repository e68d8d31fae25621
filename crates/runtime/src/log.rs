//! Logs of the process itself: text on stderr, times in UTC.

use std::io;
use thiserror::Error;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// Why logging could not start.
#[derive(Debug, Error)]
pub enum LogError {
    /// RUST_LOG was not understood.
    #[error("RUST_LOG={0}: {1}; write for example RUST_LOG=info or RUST_LOG=info,proxy=debug")]
    Filter(String, ParseError),
    /// Somebody was first.
    #[error("logging was started already")]
    Started,
}

/// Starts logging. `verbosity` is the number of `-v` as ingress-nginx has it: up to 2 is `info`, 3 and 4 `debug`,
/// from 5 everything. RUST_LOG, where set, decides instead.
pub fn init(verbosity: u8) -> Result<(), LogError> {
    let filter = filter(std::env::var("RUST_LOG").ok().as_deref(), verbosity)?;
    // Who reads the log may go away; a line that cannot be written is no reason to stop serving, or not to stop.
    tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .try_init()
        .map_err(|_| LogError::Started)
}

fn filter(rust_log: Option<&str>, verbosity: u8) -> Result<EnvFilter, LogError> {
    let directives = match (rust_log.map(str::trim), verbosity) {
        (Some(own), _) if !own.is_empty() => own,
        (_, 0..=2) => "info,kube_client=off,kube_runtime=off",
        // What libraries say at this level drowns what we say.
        (_, 3..=4) => {
            "debug,h2=info,hyper=info,hyper_util=info,kube=info,kube_client=off,kube_runtime=off,rustls=info,tower=info"
        }
        _ => "trace",
    };
    EnvFilter::try_new(directives).map_err(|error| LogError::Filter(directives.to_owned(), error))
}

#[cfg(test)]
mod tests {
    use super::filter;

    fn level(rust_log: Option<&str>, verbosity: u8) -> String {
        let filter = filter(rust_log, verbosity).expect("it is understood");
        filter.max_level_hint().expect("there is a level").to_string()
    }

    #[test]
    fn more_verbosity_says_more() {
        let levels = [0, 2, 3, 4, 5, 9].map(|verbosity| level(None, verbosity));
        assert_eq!(levels, ["info", "info", "debug", "debug", "trace", "trace"]);
    }

    #[test]
    fn rust_log_decides_where_it_is_set() {
        assert_eq!(level(Some("warn"), 5), "warn");
        assert_eq!(level(Some(" "), 0), "info");
    }

    #[test]
    fn a_rust_log_that_is_not_understood_is_named() {
        let error = filter(Some("info,=x=y"), 0).expect_err("this is no filter").to_string();
        assert!(error.starts_with("RUST_LOG=info,=x=y: "), "{error}");
    }
}
