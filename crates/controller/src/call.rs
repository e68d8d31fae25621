//! One call to the API server, within its time, and what came of it.

use std::time::Duration;

/// What the API server made of a call.
#[derive(Debug)]
pub(crate) enum Called<T> {
    /// It was done.
    Good(T),
    /// It was not, or nobody knows.
    Bad {
        /// The status, if there was an answer.
        code: Option<u16>,
        /// Why not, in one line.
        reason: String,
    },
}

/// Waits for a call no longer than this. A call that is given up takes its connection with it.
pub(crate) async fn ask<T>(
    patience: Duration,
    call: impl Future<Output = kube::Result<T>>,
) -> Called<T> {
    match tokio::time::timeout(patience, call).await {
        Ok(Ok(good)) => Called::Good(good),
        Ok(Err(kube::Error::Api(status))) => {
            let message = status.message.lines().next().unwrap_or_default();
            let reason = format!("{} {}: {message}", status.code, status.reason);
            Called::Bad { code: Some(status.code), reason }
        }
        Ok(Err(error)) => Called::Bad { code: None, reason: kubernetes::deepest(&error) },
        Err(_) => {
            let reason = format!("no answer within {:.1} s", patience.as_secs_f64());
            Called::Bad { code: None, reason }
        }
    }
}

/// What to do about a call that failed with this status, which takes these rights; empty where it is not about rights.
pub(crate) fn remedy(code: Option<u16>, takes: &str) -> String {
    match code {
        Some(401) => "; the token of the ServiceAccount does not count".to_owned(),
        Some(403) => format!("; it takes {takes}"),
        _ => String::new(),
    }
}
