//! Tells about problems when they appear and when they are gone, each once, and about what is served. What one
//! namespace makes of it has a bound: a tenant's thousand mistakes are no reason to lose the lines of others.

use crate::Known;
use crate::budget::Budget;
use crate::clock::Moment;
use crate::lines::{SPAN, Shares};
use k8s_openapi::jiff::Timestamp;
use model::{
    Certificate, CertificateId, Changes, Configuration, Kind, Origin, Problem, Severity, UpstreamId,
};
use objects::{ObjectKey, Snapshot};
use std::sync::Arc;
use std::time::Duration;
use tracing::Level;
use translate::{Problems, guards_gone, is_concerned};

/// Lines about changes that are being served at once; then there is one each second.
const SERVED: u32 = 20;

/// The problems that were told.
#[derive(Debug, Default)]
pub(crate) struct Reporter {
    known: Problems,
    told: Shares,
    /// How many Ingresses were said not to be served, and when.
    unserved: Option<(Unserved, Moment)>,
    served: Served,
}

/// How many Ingresses are not served.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Unserved {
    number: usize,
    all: usize,
    /// Those whose class was ours and does not exist.
    without_class: usize,
}

/// How an object is about which something was wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Ours,
    /// It is still there, and others look at it if anybody does.
    NotOurs,
    Gone,
}

impl Reporter {
    /// Logs what is new and what is gone; costs time by what differs.
    pub(crate) fn report(&mut self, known: &Known) {
        let fate = |origin: &Origin| fate(origin, known);
        for (level, line) in self.lines(&known.problems, Moment::now(), fate) {
            tell(level, &line);
        }
    }

    /// Says how many Ingresses are not served, when that is another number, at most once in a `SPAN`: classes that come
    /// and go take their Ingresses with them. It is a warning where none is served, or where classes have gone.
    pub(crate) fn report_unserved(&mut self, known: &Known) {
        let all = known.snapshot.ingresses.len();
        let number = all.saturating_sub(known.served.len());
        let now = Unserved { number, all, without_class: known.without_class };
        if let Some((level, line)) = self.unserved(now, Moment::now()) {
            tell(level, &line);
        }
    }

    fn unserved(&mut self, unserved: Unserved, now: Moment) -> Option<(Level, String)> {
        let Unserved { number, all, without_class } = unserved;
        let (before, since) =
            self.unserved.map_or((Unserved::default(), None), |(before, at)| (before, Some(at)));
        let is_same = number == before.number && without_class == before.without_class;
        // What lost its class was served a moment ago: that does not wait.
        let has_lost = without_class > before.without_class;
        if all == 0 || is_same || since.is_some_and(|since| now < since + SPAN && !has_lost) {
            return None;
        }
        self.unserved = Some((unserved, now));
        if number == 0 {
            return Some((Level::INFO, format!("all {all} Ingresses are served")));
        }
        let level = if number == all || has_lost { Level::WARN } else { Level::INFO };
        let why = match without_class {
            0 => "their class is not ours or does not exist".to_owned(),
            some if some >= number => "their class does not exist".to_owned(),
            some => {
                format!("{some} since their class does not exist, others have one that is not ours")
            }
        };
        let line = format!(
            "{number} of {all} Ingresses are not served: {why}, their namespace is not watched, or they have mistakes; \
             `fairway check` with the same flags says why of each"
        );
        Some((level, line))
    }

    /// Warns of guards that the controller's ConfigMap says no more: a guard that nobody asks for any more is open.
    pub(crate) fn report_gone(&self, before: &Snapshot, now: &Known) {
        let key = now.options.config_map.as_ref();
        let both = key.and_then(|key| {
            Some((key, before.config_maps.get(key)?, now.snapshot.config_maps.get(key)?))
        });
        if let Some((ObjectKey { namespace, name }, before, now)) = both
            && let guards @ [_, ..] = &*guards_gone(before, now)
        {
            let guards = guards.join(", ");
            tracing::warn!(
                "ConfigMap {namespace}/{name} says no more: {guards}: what these guarded is open now"
            );
        }
    }

    /// Warns of upstreams that had endpoints and have none now, and tells of those that have some again.
    pub(crate) fn report_endpoints(
        &mut self,
        before: &Configuration,
        after: &Configuration,
        changes: &Changes,
    ) {
        for (level, line) in self.endpoints(before, after, changes) {
            tell(level, &line);
        }
    }

    fn endpoints(
        &mut self,
        before: &Configuration,
        after: &Configuration,
        changes: &Changes,
    ) -> Vec<(Level, String)> {
        let is_served = |all: &Configuration, id: &UpstreamId| {
            let upstream = all.upstreams.get(id)?;
            Some(upstream.external.is_some() || !upstream.endpoints.usable().is_empty())
        };
        let mut lines = Vec::new();
        for id in &changes.upstreams {
            let told = match (is_served(before, id), is_served(after, id)) {
                // What follows hangs on who leads there: a path, a canary, a guard or a TLSRoute.
                (Some(true), Some(false)) => {
                    (Level::WARN, "has lost all its endpoints: paths that lead there answer 503")
                }
                (Some(false), Some(true)) => (Level::INFO, "has an endpoint now"),
                _ => continue,
            };
            let namespace = after.upstreams.get(id).map(|one| one.namespace.clone());
            if self.told.take(namespace.unwrap_or_default()) {
                lines.push((told.0, format!("upstream {id} {}", told.1)));
            }
        }
        lines
    }

    /// Warns of certificates that were taken over and that clients refuse, or will soon.
    pub(crate) fn report_ending(&mut self, now: &Configuration, changes: &Changes) {
        let changed = changes.certificates.iter().filter_map(|id| now.certificates.get(id));
        self.warn_of_ending(changed);
    }

    /// The same of all that are served, whoever changed nothing for long.
    pub(crate) fn report_all_ending(&mut self, now: &Configuration) {
        self.warn_of_ending(now.certificates.values());
    }

    fn warn_of_ending<'a>(&mut self, some: impl Iterator<Item = &'a Arc<Certificate>>) {
        for line in self.ending(some, Timestamp::now().as_second()) {
            tracing::warn!("{line}");
        }
    }

    fn ending<'a>(
        &mut self,
        some: impl Iterator<Item = &'a Arc<Certificate>>,
        now: i64,
    ) -> Vec<String> {
        let ending = some.filter_map(|one| Some((&one.id, one.ending(now)?)));
        let namespace =
            |id: &CertificateId| id.as_str().split('/').next().unwrap_or_default().into();
        let told = ending.filter(|(id, _)| self.told.take(namespace(id)));
        told.map(|(id, what)| format!("Secret {id}: {what}")).collect()
    }

    fn lines(
        &mut self,
        problems: &Problems,
        now: Moment,
        fate: impl Fn(&Origin) -> Fate,
    ) -> Vec<(Level, String)> {
        let untold = self.told.renew(now).unwrap_or_default().into_iter();
        let told = "were not told here in the minute before";
        let mut lines: Vec<_> = untold.map(|untold| closing(untold, told)).collect();
        for (before, now) in self.known.differences(problems) {
            for appeared in now.iter().filter(|problem| !before.contains(problem)) {
                if self.told.take(appeared.origin.namespace.clone()) {
                    lines.push((level(appeared.severity), appeared.to_string()));
                }
            }
            // What goes on in other words is not over.
            let goes_on = |gone: &Problem| {
                now.iter().any(|it| it.key == gone.key && brief(it) == brief(gone))
            };
            for gone in before.iter().filter(|problem| !goes_on(problem)) {
                if self.told.take(gone.origin.namespace.clone()) {
                    lines.push((Level::INFO, over(gone, fate(&gone.origin))));
                }
            }
        }
        // At once, for who reads now.
        let told = "are not told here, nor what follows within a minute";
        lines.extend(self.told.close().into_iter().map(|untold| closing(untold, told)));
        self.known = problems.clone();
        lines
    }
}

fn closing((namespace, left_out): (Arc<str>, usize), told: &str) -> (Level, String) {
    let line = format!(
        "and {left_out} more of namespace {namespace:?} {told}: see its Events, `fairway check`, or the metric \
         fairway_problems"
    );
    (Level::WARN, line)
}

/// What is wrong, without the advice that follows.
fn brief(problem: &Problem) -> &str {
    problem.message.split("; ").next().unwrap_or_default()
}

/// What was wrong; and whether somebody mended it, the object has gone, or it is no longer ours.
fn over(gone: &Problem, fate: Fate) -> String {
    let how = match fate {
        Fate::Ours => "solved",
        Fate::NotOurs => "no longer looked at, since the object is not ours any more",
        Fate::Gone => "over, since the object is gone",
    };
    format!("{how}: {}", Problem { message: brief(gone).to_owned().into(), ..gone.clone() })
}

/// How an object is.
fn fate(origin: &Origin, known: &Known) -> Fate {
    let key = ObjectKey::new(origin.namespace.clone(), origin.name.clone());
    match known.snapshot.ingresses.get(&key).filter(|_| origin.kind == Kind::Ingress) {
        Some(ingress) if is_concerned(ingress, &known.snapshot, &known.options) => Fate::Ours,
        Some(_) => Fate::NotOurs,
        None if is_there(origin, &key, &known.snapshot) => Fate::Ours,
        None => Fate::Gone,
    }
}

/// Whether an object is still there, as far as is known: of a kind that is not listed, or not found by its name, it is
/// taken for granted.
fn is_there(origin: &Origin, key: &ObjectKey, snapshot: &Snapshot) -> bool {
    use objects::Kind::{EndpointSlice, IngressClass, Namespace};
    match objects::Kind::named(origin.kind.name()) {
        None | Some(EndpointSlice | IngressClass | Namespace) => true,
        Some(kind) => snapshot.unlisted.contains(&kind) || snapshot.object(kind, key).is_some(),
    }
}

fn tell(level: Level, line: &str) {
    match level {
        Level::ERROR => tracing::error!("{line}"),
        Level::WARN => tracing::warn!("{line}"),
        _ => tracing::info!("{line}"),
    }
}

fn level(severity: Severity) -> Level {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARN,
        Severity::Notice => Level::INFO,
    }
}

impl Reporter {
    /// Says that changes are being served: where nothing but endpoints changed, which happens all the time, to those
    /// only who want to know more. Of many in a row not each has a line: the next line says how many had none.
    pub(crate) fn served(
        &mut self,
        generation: u64,
        changes: &Changes,
        translated: Duration,
        applied: Duration,
    ) {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        macro_rules! tell {
            ($level:ident, $untold:expr) => {
                tracing::$level!(
                    generation,
                    changed_hosts = changes.servers.len() + changes.routes.len(),
                    such_as = such_as(changes),
                    changed_upstreams = changes.upstreams.len(),
                    changed_certificates = changes.certificates.len(),
                    changed_settings = changes.global,
                    translated_us = micros(translated),
                    applied_us = micros(applied),
                    untold = $untold,
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
        let untold = if endpoints_only { None } else { self.served.line(Moment::now()) };
        match untold {
            None => tell!(debug, None::<u64>),
            Some(untold) => tell!(info, (untold > 0).then_some(untold)),
        }
    }
}

/// The first of the hosts that changed: a name is what somebody looks for who wonders what happened.
fn such_as(changes: &Changes) -> Option<String> {
    const NAMED: usize = 3;
    let hosts = changes.servers.iter().map(ToString::to_string);
    let hosts = hosts.chain(changes.routes.iter().map(ToString::to_string));
    let named: Vec<String> = hosts.take(NAMED).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// Lines about changes that are being served.
#[derive(Debug)]
struct Served {
    lines: Budget,
    untold: u64,
}

impl Default for Served {
    fn default() -> Self {
        Self { lines: Budget::new(SERVED, 1.0, Moment::now()), untold: 0 }
    }
}

impl Served {
    /// How many had no line since the last one, if there may be one.
    fn line(&mut self, now: Moment) -> Option<u64> {
        if self.lines.take(now).is_err() {
            self.untold += 1;
            return None;
        }
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::{Fate, Reporter, SERVED, SPAN, Served, Unserved, fate};
    use crate::Known;
    use crate::clock::Moment;
    use crate::lines::LINES;
    use model::{
        Certificate, CertificateId, Changes, Configuration, Endpoints, Kind, Origin, PrivateKey,
        Problem, Severity, Upstream, UpstreamId,
    };
    use std::sync::Arc;
    use std::time::Duration;
    use tracing::Level;
    use translate::Problems;

    #[test]
    fn of_many_changes_in_a_row_one_a_second_is_told_and_how_many_were_not() {
        let (mut served, now) = (Served::default(), Moment::now());
        let told = (0..1000).filter(|_| served.line(now) == Some(0)).count();
        assert_eq!(told, SERVED as usize);
        let later = now + Duration::from_secs(1);
        assert_eq!(served.line(later), Some(1000 - u64::from(SERVED)));
        assert_eq!(served.line(later), None);
    }

    #[test]
    fn ingresses_that_are_not_served_are_counted_once_a_minute() {
        let (mut reporter, now) = (Reporter::default(), Moment::now());
        let mut unserved =
            |number, now| reporter.unserved(Unserved { number, all: 3, without_class: 0 }, now);
        assert_eq!(unserved(0, now), None);
        let (level, line) = unserved(3, now).expect("a line");
        assert!(line.starts_with("3 of 3"), "{line}");
        assert_eq!(level, Level::WARN);
        assert_eq!(unserved(2, now), None);
        assert_eq!(unserved(3, now + SPAN), None);
        assert!(unserved(0, now + SPAN).is_some());
    }

    #[test]
    fn ingresses_that_lose_their_class_are_warned_of_at_once() {
        let (mut reporter, now) = (Reporter::default(), Moment::now());
        let mut unserved = |number, without_class| {
            let line = reporter.unserved(Unserved { number, all: 41, without_class }, now);
            line.map(|(level, line)| (level, line.contains("since their class does not exist")))
        };
        assert_eq!(unserved(1, 0), Some((Level::INFO, false)));
        assert_eq!(unserved(40, 39), Some((Level::WARN, true)));
        assert_eq!(unserved(40, 39), None);
        assert_eq!(unserved(1, 0), None, "good news can wait");
    }

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
        reporter.lines(&problems, now, |_| Fate::Ours).into_iter().map(|(_, line)| line).collect()
    }

    #[test]
    fn a_tenant_with_a_thousand_mistakes_has_a_minute_s_share_of_the_log_and_others_theirs() {
        let (mut reporter, start) = (Reporter::default(), Moment::now());
        let all = [of("bad", 1000), of("good", 2)].concat();
        let first = texts(&mut reporter, &all, start);
        assert_eq!(first.len(), LINES + 2 + 1);
        assert_eq!(first.iter().filter(|line| line.contains("good/")).count(), 2);
        let closing = first.last().expect("a line");
        assert!(closing.starts_with("and 940 more of namespace \"bad\" are"), "{closing}");
        let fewer = [of("bad", 500), of("good", 1)].concat();
        let second = texts(&mut reporter, &fewer, start + SPAN / 2);
        assert_eq!(second, ["solved: Ingress good/i0001: it is broken"], "it was said already");
        let third = texts(&mut reporter, &fewer, start + SPAN);
        assert_eq!(third.len(), 1, "{third:?}");
        assert!(third[0].starts_with("and 500 more of namespace \"bad\" were"), "{third:?}");
        let fourth = texts(&mut reporter, &of("bad", 501), start + SPAN + Duration::from_secs(1));
        assert_eq!(fourth.len(), 2, "a new minute: {fourth:?}");
    }

    #[test]
    fn an_upstream_that_loses_all_its_endpoints_is_told_once_and_so_is_one_that_has_some() {
        let with = |endpoints: Endpoints, namespace: &str| {
            let id = UpstreamId::new("shop-web-80");
            let (endpoints, external) = (Arc::new(endpoints), None);
            let namespace = namespace.into();
            let upstream = Upstream { id: id.clone(), endpoints, external, namespace };
            let mut all = Configuration::default();
            all.upstreams.insert(id, Arc::new(upstream));
            all
        };
        let address = "192.0.2.1:80".parse().expect("an address");
        let full = with(Endpoints { ready: vec![address], ..Endpoints::default() }, "shop");
        let empty = with(Endpoints::default(), "shop");
        let other_empty = with(Endpoints::default(), "shop-web");
        let changes =
            Changes { upstreams: vec![UpstreamId::new("shop-web-80")], ..Changes::default() };
        let mut reporter = Reporter::default();
        let mut told = |before: &_, after: &_| reporter.endpoints(before, after, &changes);
        let [(level, line)] = &told(&full, &empty)[..] else { panic!("it is told") };
        assert!(*level == Level::WARN && line.contains("shop-web-80 has lost all"), "{line}");
        assert!(told(&empty, &empty).is_empty());
        let [(Level::INFO, line)] = &told(&empty, &full)[..] else { panic!("it is told") };
        assert_eq!(line, "upstream shop-web-80 has an endpoint now");
        assert_eq!((0..2 * LINES).map(|_| told(&full, &empty).len()).sum::<usize>(), LINES - 2);
        assert_eq!(told(&full, &other_empty).len(), 1, "the lines of whose Service it is");
    }

    #[test]
    fn a_certificate_is_told_that_is_taken_over_and_has_ended_or_ends_soon() {
        const NOW: i64 = 1_000_000_000;
        let days = [("shop/old", -2), ("shop/soon", 3), ("shop/good", 90)];
        let mut all = Configuration::default();
        for (id, days) in days {
            let id = CertificateId::new(id);
            let (chain, key, names) = (Vec::new(), PrivateKey(Vec::new()), Vec::new().into());
            let not_after = NOW + days * 86_400 + 1;
            let certificate = Certificate { id: id.clone(), chain, key, names, not_after };
            all.certificates.insert(id, Arc::new(certificate));
        }
        let told = Reporter::default().ending(all.certificates.values(), NOW);
        assert_eq!(
            told,
            [
                "Secret shop/old: its certificate ended 1 day ago, clients refuse it; renew it",
                "Secret shop/soon: its certificate ends in 3 days; renew it"
            ]
        );
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
        let nobody = |origin: &Origin| fate(origin, &Known::default());
        let lines = reporter.lines(&Problems::default(), now, nobody);
        let gone = "over, since the object is gone: Ingress a/i0000: it is broken";
        assert_eq!(lines[0].1, gone);
    }

    #[test]
    fn what_was_wrong_with_an_object_of_any_kind_that_is_gone_is_over_and_not_solved() {
        let origin = |kind| Origin::new(kind, "a", "x");
        let text = "
{apiVersion: gateway.networking.k8s.io/v1, kind: TLSRoute, metadata: {namespace: a, name: x}, spec: {}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: ListenerSet, metadata: {namespace: a, name: x}, spec: {}}
";
        let snapshot = objects::snapshot_of([(std::path::Path::new("a.yaml"), text)]);
        let there = Known { snapshot, ..Known::default() };
        let mut unlisted = Known::default();
        for kind in [Kind::TlsRoute, Kind::ListenerSet] {
            assert!(matches!(fate(&origin(kind), &there), Fate::Ours), "{kind:?}");
            assert!(matches!(fate(&origin(kind), &unlisted), Fate::Gone), "{kind:?}");
            let listed = objects::Kind::named(kind.name()).expect("a kind of the API");
            unlisted.snapshot.unlisted.insert(listed);
            assert!(matches!(fate(&origin(kind), &unlisted), Fate::Ours), "{kind:?}");
        }
        for kind in [Kind::File, Kind::IngressClass, Kind::Namespace] {
            assert!(matches!(fate(&origin(kind), &Known::default()), Fate::Ours), "{kind:?}");
        }
    }

    #[test]
    fn what_is_not_ours_any_more_and_what_goes_on_in_other_words_is_not_called_solved() {
        let (mut reporter, now) = (Reporter::default(), Moment::now());
        texts(&mut reporter, &of("a", 1), now);
        let mut known = Known::default();
        let [meta, class] = ["{namespace: a, name: i0000}", "{name: nginx}"];
        let text = format!(
            "{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {meta}, spec: {{ingressClassName: nginx}}}}"
        );
        known.snapshot = objects::snapshot_of([(std::path::Path::new("a.yaml"), text.as_str())]);
        let lines = reporter.lines(&Problems::default(), now, |origin| fate(origin, &known));
        let lost = "no longer looked at, since the object is not ours any more: Ingress a/i0000: it is broken";
        assert_eq!(lines[0].1, lost);
        let class = format!(
            "{text}\n---\n{{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {class}, spec: {{controller: k8s.io/ingress-nginx}}}}"
        );
        known.snapshot = objects::snapshot_of([(std::path::Path::new("a.yaml"), class.as_str())]);
        texts(&mut reporter, &of("a", 1), now);
        let mut other = of("a", 1);
        other[0].message = "it is broken; mend it soon".to_owned().into();
        assert_eq!(
            texts(&mut reporter, &other, now),
            ["Ingress a/i0000: it is broken; mend it soon"]
        );
        let lines = reporter.lines(&Problems::default(), now, |origin| fate(origin, &known));
        assert_eq!(lines[0].1, "solved: Ingress a/i0000: it is broken");
    }
}
