//! How much traffic there is: what is counted of requests at two moments, and what lies between them.

use exposition::{AtEndpoint, AtEndpoints, Places, Traffic, Within};
use model::StreamPort;
use request_metrics::{Labels, Measure, Metrics, Part, Reading};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A sample serves all who ask for so long.
const FRESH: Duration = Duration::from_millis(1900);
/// What is older says nothing about now.
const STALE: Duration = Duration::from_secs(60);

/// What layer 4 says.
#[derive(Debug, Default)]
pub struct Ports {
    /// How many sessions each port of TCP and UDP had so far.
    pub sessions: Vec<(StreamPort, u64)>,
    /// What has room for so many.
    pub places: Vec<Places>,
}

/// Asks layer 4.
pub type Sessions = Box<dyn Fn() -> Ports + Send + Sync>;

/// The last sample.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    last: Option<Arc<Sample>>,
}

/// What was counted up to one moment, and since the one before.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) at: Instant,
    pub(crate) traffic: Traffic,
    pub(crate) within: Option<Within>,
    /// Combinations of labels, how many there may be, and requests beyond them.
    pub(crate) series: Option<(usize, usize, u64)>,
    bounds: Vec<f64>,
    places: HashMap<SampleKey, Counted>,
    all: Counted,
    /// How it goes at endpoints, while somebody looks at a route.
    endpoints: Option<Endpoints>,
    /// Sessions of each port of TCP and UDP since it is there, and since the sample before.
    ports: HashMap<StreamPort, (u64, u64)>,
    /// What layer 4 has room for.
    pub(crate) of_ports: Vec<Places>,
    /// Since the sample before.
    pub(crate) span: Option<Duration>,
}

/// What an engine and layer 4 say at one moment.
pub(crate) struct Taken<'a> {
    pub(crate) requests: Option<&'a Arc<Metrics>>,
    pub(crate) traffic: Traffic,
    pub(crate) within: Option<Within>,
    pub(crate) endpoints: Option<AtEndpoints>,
    pub(crate) ports: Ports,
}

/// How it goes at endpoints.
#[derive(Debug)]
struct Endpoints {
    bounds: &'static [f64],
    each: HashMap<SocketAddr, Endpoint>,
}

/// What was counted at one of them, and how much of it is new.
#[derive(Debug)]
struct Endpoint {
    now: AtEndpoint,
    tries: u64,
    errors: u64,
    up_to: Vec<u64>,
}

/// How it goes at an endpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AtOne {
    pub(crate) rate: Option<f64>,
    pub(crate) errors: Option<f64>,
    pub(crate) p50: Option<f64>,
    pub(crate) p99: Option<f64>,
    /// When a try failed last, and why.
    pub(crate) failed: Option<(f64, String)>,
}

/// Where requests were answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SampleKey {
    pub(crate) host: Option<Arc<str>>,
    pub(crate) namespace: Arc<str>,
    pub(crate) ingress: Arc<str>,
    pub(crate) path: Arc<str>,
    pub(crate) service: Arc<str>,
}

/// What was counted at one place, and how much of it is new.
#[derive(Clone, Debug, Default)]
struct Counted {
    now: Counts,
    new: Counts,
    failed: Option<(f64, Arc<str>)>,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    requests: u64,
    errors: u64,
    statuses: BTreeMap<Arc<str>, u64>,
    up_to: Vec<u64>,
}

/// How it goes at one place.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Live {
    pub(crate) requests: u64,
    pub(crate) rate: Option<f64>,
    pub(crate) errors: Option<f64>,
    pub(crate) p50: Option<f64>,
    pub(crate) p99: Option<f64>,
    /// Answers of 500 and more since the place is there, by status.
    pub(crate) failures: BTreeMap<Arc<str>, u64>,
    /// When one was seen last while somebody looked, and its status.
    pub(crate) failed: Option<(f64, Arc<str>)>,
}

impl Samples {
    /// The last sample, while it is fresh.
    pub(crate) fn fresh(&self) -> Option<Arc<Sample>> {
        self.last.clone().filter(|last| last.at.elapsed() < FRESH)
    }

    /// Takes one.
    pub(crate) fn take(&mut self, taken: Taken<'_>) -> Arc<Sample> {
        let Taken { requests, traffic, within, endpoints, ports } = taken;
        let before = self.last.take().filter(|last| last.at.elapsed() < STALE);
        let mut sample = Sample {
            at: Instant::now(),
            traffic,
            within,
            series: requests.map(|requests| {
                let (series, most) = requests.budget();
                (series, most, requests.overflowed())
            }),
            bounds: Vec::new(),
            places: HashMap::new(),
            all: Counted::default(),
            endpoints: endpoints.map(Endpoints::of),
            ports: ports
                .sessions
                .into_iter()
                .map(|(port, sessions)| (port, (sessions, sessions)))
                .collect(),
            of_ports: ports.places,
            span: before.as_ref().map(|before| before.at.elapsed()),
        };
        if let Some(requests) = requests {
            sample.read(requests);
        }
        if let Some(before) = before {
            sample.since(&before);
        }
        let sample = Arc::new(sample);
        self.last = Some(sample.clone());
        sample
    }
}

impl Sample {
    fn read(&mut self, metrics: &Metrics) {
        let part =
            |measure| metrics.parts().iter().find(move |part: &&Part| part.measure == measure);
        let (counted, timed) = (part(Measure::Requests), part(Measure::RequestDuration));
        self.bounds = timed.map(|part| part.bounds.clone()).unwrap_or_default();
        for series in metrics.series() {
            let up_to = match timed.map(|part| series.read(part)) {
                Some(Reading::Histogram { up_to, .. }) => up_to,
                _ => Vec::new(),
            };
            let requests = match counted.map(|part| series.read(part)) {
                Some(Reading::Count(count)) => count,
                _ => up_to.last().copied().unwrap_or(0),
            };
            let one = Counts::new(&series.labels.status, requests, up_to);
            self.all.now.add(&one);
            self.places.entry(SampleKey::of(&series.labels)).or_default().now.add(&one);
        }
    }

    fn since(&mut self, before: &Self) {
        let mut new = Counts::default();
        for (spot, place) in &mut self.places {
            place.since(before.places.get(spot));
            new.add(&place.new);
        }
        // Not what is more of them all: some may have gone with what was counted there.
        self.all.take(new, Some(&before.all));
        if let (Some(now), Some(before)) = (&mut self.endpoints, &before.endpoints) {
            now.since(before);
        }
        for (port, (sessions, new)) in &mut self.ports {
            // A port that leads elsewhere begins anew.
            let old = before.ports.get(port).map_or(0, |(old, _)| *old);
            *new = sessions.checked_sub(old).unwrap_or(*sessions);
        }
    }

    /// How it goes at an endpoint.
    pub(crate) fn at_endpoint(&self, address: SocketAddr) -> AtOne {
        let Some(endpoints) = &self.endpoints else { return AtOne::default() };
        let seconds = self.span.map(|span| span.as_secs_f64());
        let each = |count: u64| seconds.map(|seconds| count as f64 / seconds);
        let Some(one) = endpoints.each.get(&address) else {
            return AtOne { rate: each(0), errors: each(0), ..AtOne::default() };
        };
        let quantile = |share| quantile(endpoints.bounds, &one.up_to, share);
        AtOne {
            rate: each(one.tries),
            errors: each(one.errors),
            p50: quantile(0.5),
            p99: quantile(0.99),
            failed: one.now.failed.clone(),
        }
    }

    /// How it goes in one place.
    pub(crate) fn at(&self, spot: &SampleKey) -> Live {
        let found = self.places.get(spot).or_else(|| {
            // Without --metrics-per-host, hosts are not told apart.
            self.places.get(&SampleKey { host: None, ..spot.clone() })
        });
        match found {
            Some(place) => self.live(place),
            None => self.live(&Counted::default()),
        }
    }

    /// How many connections or sessions begin at a port.
    pub(crate) fn at_port(&self, port: &StreamPort) -> Live {
        let (sessions, new) = self.ports.get(port).copied().unwrap_or_default();
        let rate = self.span.map(|span| new as f64 / span.as_secs_f64());
        Live { requests: sessions, rate, ..Live::default() }
    }

    /// How it goes altogether.
    pub(crate) fn all(&self) -> Live {
        self.live(&self.all)
    }

    /// Whether requests are counted.
    pub(crate) fn is_counted(&self) -> bool {
        self.series.is_some()
    }

    fn live(&self, place: &Counted) -> Live {
        let seconds = self.span.filter(|_| self.is_counted()).map(|span| span.as_secs_f64());
        let each = |count: u64| seconds.map(|seconds| count as f64 / seconds);
        let quantile = |share| quantile(&self.bounds, &place.new.up_to, share);
        let failures = place.now.statuses.iter().filter(|(status, _)| status.starts_with('5'));
        Live {
            requests: place.now.requests,
            rate: each(place.new.requests),
            errors: each(place.new.errors),
            p50: quantile(0.5),
            p99: quantile(0.99),
            failures: failures.map(|(status, count)| (status.clone(), *count)).collect(),
            failed: place.failed.clone(),
        }
    }
}

impl Endpoints {
    fn of(all: AtEndpoints) -> Self {
        let each = all.each.into_iter().map(|now| {
            let (address, tries, errors) = (now.address, now.tries, now.errors);
            (address, Endpoint { tries, errors, up_to: now.up_to.clone(), now })
        });
        Self { bounds: all.bounds, each: each.collect() }
    }

    fn since(&mut self, before: &Self) {
        for (address, one) in &mut self.each {
            let Some(before) = before.each.get(address) else { continue };
            // It is counted only while somebody looks: what is less has begun anew.
            if one.now.tries < before.now.tries {
                continue;
            }
            one.tries -= before.now.tries;
            one.errors = one.errors.saturating_sub(before.now.errors);
            let old = &before.now.up_to;
            one.up_to.iter_mut().zip(old).for_each(|(now, old)| *now = now.saturating_sub(*old));
        }
    }
}

impl SampleKey {
    fn of(labels: &Labels) -> Self {
        Self {
            host: labels.host.clone(),
            namespace: labels.namespace.clone(),
            ingress: labels.ingress.clone(),
            path: labels.path.clone(),
            service: labels.service.clone(),
        }
    }
}

impl Counted {
    fn since(&mut self, before: Option<&Self>) {
        self.take(self.now.less(before.map(|before| &before.now)), before);
    }

    fn take(&mut self, new: Counts, before: Option<&Self>) {
        self.new = new;
        let failed =
            self.new.statuses.iter().find(|(status, count)| **count > 0 && status.starts_with('5'));
        let failed = failed.map(|(status, _)| (crate::clock::seconds(), status.clone()));
        self.failed = failed.or_else(|| before.and_then(|before| before.failed.clone()));
    }
}

impl Counts {
    fn new(status: &Arc<str>, requests: u64, up_to: Vec<u64>) -> Self {
        let errors = if status.starts_with('5') { requests } else { 0 };
        Self { requests, errors, statuses: BTreeMap::from([(status.clone(), requests)]), up_to }
    }

    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.errors += other.errors;
        for (status, count) in &other.statuses {
            *self.statuses.entry(status.clone()).or_default() += count;
        }
        self.up_to.resize(self.up_to.len().max(other.up_to.len()), 0);
        self.up_to.iter_mut().zip(&other.up_to).for_each(|(own, more)| *own += more);
    }

    /// What came on top of it. A series may have gone, with which its numbers begin anew.
    fn less(&self, before: Option<&Self>) -> Self {
        let Some(before) = before else { return self.clone() };
        let statuses = self.statuses.iter().map(|(status, count)| {
            let old = before.statuses.get(status).copied().unwrap_or(0);
            (status.clone(), count.saturating_sub(old))
        });
        let old = before.up_to.iter().copied().chain(std::iter::repeat(0));
        Self {
            requests: self.requests.saturating_sub(before.requests),
            errors: self.errors.saturating_sub(before.errors),
            statuses: statuses.collect(),
            up_to: self.up_to.iter().zip(old).map(|(now, old)| now.saturating_sub(old)).collect(),
        }
    }
}

/// Where in its bucket a share lies, as Prometheus' `histogram_quantile` finds it.
fn quantile(bounds: &[f64], up_to: &[u64], share: f64) -> Option<f64> {
    let all = up_to.last().copied().filter(|all| *all > 0)? as f64;
    let wanted = share * all;
    let at = up_to.iter().position(|count| *count as f64 >= wanted)?;
    let Some(upper) = bounds.get(at).copied() else { return bounds.last().copied() };
    let (lower, below) = match at.checked_sub(1) {
        Some(before) => (bounds[before], up_to[before]),
        None => (0.0, 0),
    };
    let within = (up_to[at] - below) as f64;
    Some(lower + (upper - lower) * (wanted - below as f64) / within.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::{Counted, Counts, Sample, SampleKey, quantile};
    use std::collections::HashMap;
    use std::time::Instant;

    fn counts(status: &str, requests: u64) -> Counts {
        Counts::new(&status.into(), requests, vec![requests / 2, requests])
    }

    #[test]
    fn quantiles_lie_in_their_bucket() {
        let bounds = [0.1, 0.2, 0.4];
        assert_eq!(quantile(&bounds, &[10, 10, 10, 10], 0.5), Some(0.05));
        assert_eq!(quantile(&bounds, &[0, 10, 10, 10], 0.5), Some(0.15000000000000002));
        assert_eq!(quantile(&bounds, &[0, 0, 0, 10], 0.5), Some(0.4), "beyond all bounds");
        assert_eq!(quantile(&bounds, &[0, 0, 0, 0], 0.5), None);
        assert_eq!(quantile(&[], &[], 0.5), None);
    }

    /// A sample with so many requests at each of these Ingresses.
    fn sample(places: &[(&str, u64)]) -> Sample {
        let mut sample = Sample {
            at: Instant::now(),
            traffic: exposition::Traffic { connections: None, processes: Vec::new(), nginx: None },
            within: None,
            series: None,
            bounds: Vec::new(),
            places: HashMap::new(),
            all: Counted::default(),
            endpoints: None,
            ports: HashMap::new(),
            of_ports: Vec::new(),
            span: None,
        };
        for (ingress, requests) in places {
            let empty = || "".into();
            let (namespace, path, service) = (empty(), empty(), empty());
            let ingress = (*ingress).into();
            let key = SampleKey { host: None, namespace, ingress, path, service };
            let now = counts("200", *requests);
            sample.all.now.add(&now);
            sample.places.insert(key, Counted { now, ..Counted::default() });
        }
        sample
    }

    #[test]
    fn a_place_that_goes_takes_nothing_from_what_is_new_at_others() {
        let mut now = sample(&[("stays", 8), ("comes", 2)]);
        now.since(&sample(&[("stays", 5), ("goes", 100)]));
        assert_eq!(now.all.new.requests, 5);
    }

    #[test]
    fn what_is_new_lies_between_two_samples_and_failures_are_remembered() {
        let mut first = Counted { now: counts("200", 10), ..Counted::default() };
        first.now.add(&counts("503", 2));
        first.since(None);
        assert_eq!((first.new.requests, first.new.errors), (12, 2));
        let mut second = Counted { now: counts("200", 16), ..Counted::default() };
        second.now.add(&counts("503", 2));
        second.since(Some(&first));
        assert_eq!((second.new.requests, second.new.errors), (6, 0));
        assert_eq!(second.new.up_to, [3, 6]);
        assert_eq!(second.failed.expect("it was seen").1.as_ref(), "503");
        let mut again = Counted { now: counts("200", 3), ..Counted::default() };
        again.since(Some(&first));
        assert_eq!(again.new.requests, 0, "they began anew");
    }
}
