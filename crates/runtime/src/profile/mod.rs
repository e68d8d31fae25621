//! Profiles of the running process, in the format that `go tool pprof` and its relatives read.

mod cpu;
mod format;
mod memory;

use crate::admin::{Admin, Page};
use http::StatusCode;
use std::time::Duration;

/// What is recorded where nobody says how long, and at most.
const USUAL: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(120);

/// Adds `/debug/pprof/profile?seconds=30` and `/debug/pprof/heap`, for this machine alone.
#[must_use]
pub fn pages(admin: Admin) -> Admin {
    admin
        .near("/debug/pprof/profile", |query| {
            let time = seconds(query);
            async move {
                let time = match time {
                    Ok(time) => time,
                    Err(wrong) => return Page::text(StatusCode::BAD_REQUEST, wrong),
                };
                match cpu::record(time).await {
                    Ok(profile) => Page::bytes(profile),
                    Err(error) => Page::text(StatusCode::CONFLICT, format!("{error}\n")),
                }
            }
        })
        .near("/debug/pprof/heap", |_| async {
            match tokio::task::spawn_blocking(memory::snapshot).await {
                Ok(Ok(profile)) => Page::bytes(profile),
                Ok(Err(error)) => Page::failed(&error),
                Err(error) => Page::failed(&error),
            }
        })
}

/// How long to record, as the query has it: `seconds=5`.
fn seconds(query: &str) -> Result<Duration, &'static str> {
    let asked = query.split('&').find_map(|pair| pair.strip_prefix("seconds="));
    let Some(asked) = asked else { return Ok(USUAL) };
    let time = asked.parse().map(Duration::from_secs).unwrap_or_default();
    let is_good = !time.is_zero() && time <= LONGEST;
    is_good.then_some(time).ok_or("seconds is a whole number from 1 to 120\n")
}

#[cfg(test)]
mod tests {
    use super::seconds;
    use std::time::Duration;

    #[test]
    fn a_profile_takes_as_long_as_the_query_says_within_bounds() {
        assert_eq!(seconds(""), Ok(Duration::from_secs(30)));
        assert_eq!(seconds("debug=1&seconds=5"), Ok(Duration::from_secs(5)));
        for bad in ["seconds=", "seconds=0", "seconds=121", "seconds=-1", "seconds=1.5"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
