//! How long requests of a rule may take, and how often they are tried.

use model::policy::{Condition, Policy, Retries, RouteFilters};
use objects::gateway::RouteRule;
use std::time::Duration;

/// How long one may take that asks for no bound: the longest that timers are asked for.
const UNBOUNDED: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Tries of a request after the first one at most.
const ATTEMPTS: u32 = 100;

/// Adds how long requests of a rule may take, and how often they are tried.
pub(super) fn bound(does: &mut RouteFilters, policy: &mut Policy, rule: &RouteRule) {
    let said = [rule.request_timeout, rule.backend_timeout];
    [does.time, does.time_of_try] = said.map(|time| time.filter(|time| !time.is_zero()));
    // What the route allows is not cut short by what stands for all.
    let without = said.contains(&Some(Duration::ZERO)).then_some(UNBOUNDED);
    if let Some(allowed) = does.time_of_try.or(does.time).or(without) {
        let timeouts = &mut policy.timeouts;
        (timeouts.read, timeouts.send) = (allowed.max(timeouts.read), allowed.max(timeouts.send));
    }
    let Some(retry) = &rule.retry else {
        // A slow backend is not asked again: that would be for `retry` to say.
        if does.time_of_try.is_some() {
            policy.retries.conditions.remove(&Condition::Timeout);
        }
        return;
    };
    does.pause = retry.backoff;
    let codes = retry.codes.iter().filter(|code| (400..600).contains(*code));
    let conditions = [Condition::Error, Condition::Timeout, Condition::NonIdempotent];
    let conditions = conditions.into_iter().chain(codes.map(|code| Condition::Status(*code)));
    let is_on = retry.attempts > 0;
    policy.retries = Retries {
        conditions: conditions.filter(|_| is_on).collect(),
        tries: retry.attempts.min(ATTEMPTS) + 1,
        timeout: does.time.unwrap_or_default(),
    };
}

#[cfg(test)]
mod tests {
    use super::{UNBOUNDED, bound};
    use model::policy::{Condition, Policy, RouteFilters};
    use objects::gateway::RouteRule;
    use std::time::Duration;

    /// What a rule with these time-outs asks for: of all tries, of each, and how long nothing may come.
    fn of(request: Option<u64>, of_try: Option<u64>) -> (RouteFilters, Policy) {
        let seconds = |time: Option<u64>| time.map(Duration::from_secs);
        let rule = RouteRule {
            matches: Vec::new(),
            filters: Vec::new(),
            backends: Vec::new(),
            request_timeout: seconds(request),
            backend_timeout: seconds(of_try),
            retry: None,
            session: None,
            unread: None,
        };
        let (mut does, mut policy) = (RouteFilters::default(), Policy::default());
        bound(&mut does, &mut policy, &rule);
        (does, policy)
    }

    #[test]
    fn zero_is_no_bound_unless_the_other_one_is() {
        let usual = Policy::default().timeouts.read;
        let seconds = Duration::from_secs;
        for (request, of_try, bounds, reads) in [
            (None, None, [None, None], usual),
            (Some(0), None, [None, None], UNBOUNDED),
            (None, Some(0), [None, None], UNBOUNDED),
            (Some(0), Some(0), [None, None], UNBOUNDED),
            (Some(300), Some(0), [Some(seconds(300)), None], seconds(300)),
            (Some(0), Some(2), [None, Some(seconds(2))], usual),
            (Some(300), Some(2), [Some(seconds(300)), Some(seconds(2))], usual),
        ] {
            let (does, policy) = of(request, of_try);
            assert_eq!([does.time, does.time_of_try], bounds, "{request:?} {of_try:?}");
            let found = [policy.timeouts.read, policy.timeouts.send];
            assert_eq!(found, [reads; 2], "{request:?} {of_try:?}");
            // An endpoint that cannot be reached is nobody's bound.
            let again = policy.retries.conditions.contains(&Condition::Timeout);
            assert_eq!(again, does.time_of_try.is_none(), "{request:?} {of_try:?}");
        }
    }
}
