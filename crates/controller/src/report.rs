//! Tells about problems when they appear and when they are gone, each once, and about what is served. What one
//! namespace makes of it has a bound: a tenant's thousand mistakes are no reason to lose the lines of others.

use crate::clock::Moment;
use crate::lines::{SPAN, Shares};
use imbl::ordmap::DiffItem;
use model::{Changes, Configuration, Kind, Origin, Problem, Severity, UpstreamId};
use objects::{ObjectKey, Snapshot};
use std::sync::Arc;
use std::time::Duration;
use tracing::Level;
use translate::Problems;

/// The problems that were told.
#[derive(Debug, Default)]
pub(crate) struct Reporter {
    known: Problems,
    told: Shares,
    /// How many Ingresses were said not to be served, and when.
    unserved: Option<(usize, Moment)>,
}

impl Reporter {
    /// Logs what is new and what is gone; costs time by what differs.
    pub(crate) fn report(&mut self, problems: &Problems, snapshot: &Snapshot) {
        let is_there = |origin: &Origin| is_there(origin, snapshot);
        for (level, line) in self.lines(problems, Moment::now(), is_there) {
            match level {
                Level::ERROR => tracing::error!("{line}"),
                Level::WARN => tracing::warn!("{line}"),
                _ => tracing::info!("{line}"),
            }
        }
    }

    /// Says how many Ingresses are not served, when that is another number, at most once in a `SPAN`: classes that come
    /// and go take their Ingresses with them.
    pub(crate) fn report_unserved(&mut self, served: usize, all: usize) {
        if let Some(line) = self.unserved(all.saturating_sub(served), all, Moment::now()) {
            if served == 0 { tracing::warn!("{line}") } else { tracing::info!("{line}") }
        }
    }

    fn unserved(&mut self, number: usize, all: usize, now: Moment) -> Option<String> {
        let (known, since) = self.unserved.map_or((0, None), |(known, at)| (known, Some(at)));
        if number == known || since.is_some_and(|since| now < since + SPAN) {
            return None;
        }
        self.unserved = Some((number, now));
        Some(format!(
            "{number} of {all} Ingresses are not served: their class is not ours or does not exist, their namespace is \
             not watched, or they have mistakes; `fairway check` with the same flags says why of each"
        ))
    }

    /// Warns of upstreams that had endpoints and have none now: their requests are answered 503.
    pub(crate) fn report_lost(
        &mut self,
        before: &Configuration,
        after: &Configuration,
        changes: &Changes,
        snapshot: &Snapshot,
    ) {
        for line in self.lost(before, after, changes, snapshot) {
            tracing::warn!("{line}");
        }
    }

    fn lost(
        &mut self,
        before: &Configuration,
        after: &Configuration,
        changes: &Changes,
        snapshot: &Snapshot,
    ) -> Vec<String> {
        let is_served = |all: &Configuration, id: &UpstreamId| {
            let upstream = all.upstreams.get(id)?;
            Some(upstream.external.is_some() || !upstream.endpoints.usable().is_empty())
        };
        let lost = changes.upstreams.iter().filter(|id| {
            is_served(before, id) == Some(true) && is_served(after, id) == Some(false)
        });
        let mut lines = Vec::new();
        for id in lost {
            if self.told.take(namespace_of(id.as_str(), snapshot)) {
                let line = format!(
                    "upstream {id} has lost all its endpoints: its requests are answered 503"
                );
                lines.push(line);
            }
        }
        lines
    }

    fn lines(
        &mut self,
        problems: &Problems,
        now: Moment,
        is_there: impl Fn(&Origin) -> bool,
    ) -> Vec<(Level, String)> {
        let untold = self.told.renew(now).unwrap_or_default().into_iter();
        let mut lines: Vec<_> = untold.map(closing).collect();
        for item in self.known.by_origin().diff(problems.by_origin()) {
            let (before, now): (&[Problem], &[Problem]) = match &item {
                DiffItem::Add(_, now) => (&[], now),
                DiffItem::Remove(_, before) => (before, &[]),
                DiffItem::Update { old: (_, before), new: (_, now) } => (before, now),
            };
            for appeared in now.iter().filter(|problem| !before.contains(problem)) {
                if self.told.take(appeared.origin.namespace.clone()) {
                    lines.push((level(appeared.severity), appeared.to_string()));
                }
            }
            for gone in before.iter().filter(|problem| !now.contains(problem)) {
                if self.told.take(gone.origin.namespace.clone()) {
                    lines.push((Level::INFO, over(gone, is_there(&gone.origin))));
                }
            }
        }
        // At once, for who reads now.
        lines.extend(self.told.close().into_iter().map(closing));
        self.known = problems.clone();
        lines
    }
}

/// The namespace of the Service that an upstream is named after, `namespace-service-port`; empty where it has none.
fn namespace_of(id: &str, snapshot: &Snapshot) -> Arc<str> {
    let dashes: Vec<usize> = id.match_indices('-').map(|(at, _)| at).collect();
    let pairs = dashes
        .iter()
        .enumerate()
        .flat_map(|(index, first)| dashes[index + 1..].iter().map(|second| (*first, *second)));
    let keys = pairs.map(|(first, second)| ObjectKey::new(&id[..first], &id[first + 1..second]));
    let mut known = keys.filter(|key| snapshot.services.contains_key(key));
    known.next().map(|key| key.namespace).unwrap_or_default()
}

fn closing((namespace, left_out): (Arc<str>, usize)) -> (Level, String) {
    let line = format!(
        "and {left_out} more of namespace {namespace:?}, which are not told here: see its Events, `fairway check`, \
         or the metric fairway_problems"
    );
    (Level::WARN, line)
}

/// What was wrong, without the advice that followed; and whether somebody mended it, or the object has gone.
fn over(gone: &Problem, is_there: bool) -> String {
    let brief = gone.message.split("; ").next().unwrap_or_default().to_owned();
    let how = if is_there { "solved" } else { "over, since the object is gone" };
    format!("{how}: {}", Problem { message: brief.into(), ..gone.clone() })
}

/// Whether an object is still there; of kinds that hardly ever go, it is taken for granted.
fn is_there(origin: &Origin, snapshot: &Snapshot) -> bool {
    let key = ObjectKey::new(origin.namespace.clone(), origin.name.clone());
    let has_route = |kind| snapshot.http_routes.contains_key(&(kind, key.clone()));
    match origin.kind {
        Kind::Ingress => snapshot.ingresses.contains_key(&key),
        Kind::Service => snapshot.services.contains_key(&key),
        Kind::Secret => snapshot.secrets.contains_key(&key),
        Kind::ConfigMap => snapshot.config_maps.contains_key(&key),
        Kind::Gateway => snapshot.gateways.contains_key(&key),
        Kind::HttpRoute => has_route(objects::Kind::HttpRoute),
        Kind::GrpcRoute => has_route(objects::Kind::GrpcRoute),
        Kind::IngressClass
        | Kind::EndpointSlice
        | Kind::Namespace
        | Kind::GatewayClass
        | Kind::ListenerSet
        | Kind::TcpRoute
        | Kind::UdpRoute
        | Kind::TlsRoute
        | Kind::BackendTlsPolicy
        | Kind::ReferenceGrant
        | Kind::File => true,
    }
}

fn level(severity: Severity) -> Level {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARN,
        Severity::Notice => Level::INFO,
    }
}

/// Says that changes are being served: where nothing but endpoints changed, which happens all the time, to those only
/// who want to know more.
pub(crate) fn served(generation: u64, changes: &Changes, translated: Duration, applied: Duration) {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    macro_rules! tell {
        ($level:ident) => {
            tracing::$level!(
                generation,
                changed_hosts = changes.servers.len() + changes.routes.len(),
                changed_upstreams = changes.upstreams.len(),
                changed_certificates = changes.certificates.len(),
                changed_settings = changes.global,
                translated_us = micros(translated),
                applied_us = micros(applied),
                "changes are being served"
            )
        };
    }
    let endpoints_only = changes.servers.is_empty()
        && changes.routes.is_empty()
        && changes.listeners.is_empty()
        && changes.tls_routes.is_empty()
        && changes.certificates.is_empty()
        && !changes.global;
    if endpoints_only { tell!(debug) } else { tell!(info) }
}

#[cfg(test)]
mod tests {
    use super::{Reporter, SPAN, is_there};
    use crate::clock::Moment;
    use crate::lines::LINES;

    #[test]
    fn ingresses_that_are_not_served_are_counted_once_a_minute() {
        let (mut reporter, now) = (Reporter::default(), Moment::now());
        assert_eq!(reporter.unserved(0, 3, now), None);
        assert!(reporter.unserved(3, 3, now).is_some_and(|line| line.starts_with("3 of 3")));
        assert_eq!(reporter.unserved(2, 3, now), None);
        assert_eq!(reporter.unserved(3, 3, now + SPAN), None);
        assert!(reporter.unserved(0, 3, now + SPAN).is_some());
    }
    use model::{
        Changes, Configuration, Endpoints, Kind, Origin, Problem, Severity, Upstream, UpstreamId,
    };
    use objects::Snapshot;
    use std::sync::Arc;
    use std::time::Duration;
    use translate::Problems;

    /// Problems of so many Ingresses of a namespace.
    fn of(namespace: &str, count: usize) -> Vec<Problem> {
        let problem = |number: usize| Problem {
            origin: Origin::new(Kind::Ingress, namespace, format!("i{number:04}")),
            key: None,
            severity: Severity::Error,
            message: "it is broken; mend it".to_owned().into(),
        };
        (0..count).map(problem).collect()
    }

    fn texts(reporter: &mut Reporter, problems: &[Problem], now: Moment) -> Vec<String> {
        let problems = Problems::default().with(problems);
        reporter.lines(&problems, now, |_| true).into_iter().map(|(_, line)| line).collect()
    }

    #[test]
    fn a_tenant_with_a_thousand_mistakes_has_a_minute_s_share_of_the_log_and_others_theirs() {
        let (mut reporter, start) = (Reporter::default(), Moment::now());
        let all = [of("bad", 1000), of("good", 2)].concat();
        let first = texts(&mut reporter, &all, start);
        assert_eq!(first.len(), LINES + 2 + 1);
        assert_eq!(first.iter().filter(|line| line.contains("good/")).count(), 2);
        let closing = first.last().expect("a line");
        assert!(closing.starts_with("and 940 more of namespace \"bad\","), "{closing}");
        let fewer = [of("bad", 500), of("good", 1)].concat();
        let second = texts(&mut reporter, &fewer, start + SPAN / 2);
        assert_eq!(second, ["solved: Ingress good/i0001: it is broken"], "it was said already");
        let third = texts(&mut reporter, &fewer, start + SPAN);
        assert_eq!(third.len(), 1, "{third:?}");
        assert!(third[0].starts_with("and 500 more of namespace \"bad\","), "{third:?}");
        let fourth = texts(&mut reporter, &of("bad", 501), start + SPAN + Duration::from_secs(1));
        assert_eq!(fourth.len(), 2, "a new minute: {fourth:?}");
    }

    #[test]
    fn an_upstream_that_loses_all_its_endpoints_is_told_once() {
        let with = |endpoints: Endpoints| {
            let id = UpstreamId::new("shop-web-80");
            let (endpoints, external) = (Arc::new(endpoints), None);
            let upstream = Upstream { id: id.clone(), endpoints, external, namespace: "".into() };
            let mut all = Configuration::default();
            all.upstreams.insert(id, Arc::new(upstream));
            all
        };
        let address = "192.0.2.1:80".parse().expect("an address");
        let full = with(Endpoints { ready: vec![address], ..Endpoints::default() });
        let empty = with(Endpoints::default());
        let changes =
            Changes { upstreams: vec![UpstreamId::new("shop-web-80")], ..Changes::default() };
        let (mut reporter, snapshot) = (Reporter::default(), Snapshot::default());
        let mut lost =
            |before: &_, after: &_| reporter.lost(before, after, &changes, &snapshot).len();
        assert_eq!((lost(&full, &empty), lost(&empty, &empty), lost(&empty, &full)), (1, 0, 0));
        assert_eq!((0..2 * LINES).map(|_| lost(&full, &empty)).sum::<usize>(), LINES - 1);
    }

    #[test]
    fn a_problem_is_told_once_and_once_that_it_is_gone() {
        let (mut reporter, now) = (Reporter::default(), Moment::now());
        assert_eq!(
            texts(&mut reporter, &of("a", 1), now),
            ["Ingress a/i0000: it is broken; mend it"]
        );
        assert!(texts(&mut reporter, &of("a", 1), now).is_empty());
        assert_eq!(texts(&mut reporter, &[], now), ["solved: Ingress a/i0000: it is broken"]);
        texts(&mut reporter, &of("a", 1), now);
        let nobody = |origin: &Origin| is_there(origin, &Snapshot::default());
        let lines = reporter.lines(&Problems::default(), now, nobody);
        let gone = "over, since the object is gone: Ingress a/i0000: it is broken";
        assert_eq!(lines[0].1, gone);
    }
}
