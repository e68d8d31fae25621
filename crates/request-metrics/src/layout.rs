//! What is measured of each request, and in which cell it is counted.

use super::Settings;
use super::series::Cells;
use std::time::Duration;

/// What is measured of each request (compat/metrics.csv).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// That it was there.
    Requests,
    /// The time from its head to the last byte of its answer.
    RequestDuration,
    /// The time to connect to the upstream.
    ConnectDuration,
    /// The time to the head of the upstream's answer.
    HeaderDuration,
    /// The time to the end of the upstream's answer.
    ResponseDuration,
    /// Bytes that came from the client.
    RequestSize,
    /// Bytes that went to the client.
    ResponseSize,
    /// The same, with other bounds.
    BytesSent,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Requests,
        Self::RequestDuration,
        Self::ConnectDuration,
        Self::HeaderDuration,
        Self::ResponseDuration,
        Self::RequestSize,
        Self::ResponseSize,
        Self::BytesSent,
    ];

    /// The name of its metric, without the prefix.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::RequestDuration => "request_duration_seconds",
            Self::ConnectDuration => "connect_duration_seconds",
            Self::HeaderDuration => "header_duration_seconds",
            Self::ResponseDuration => "response_duration_seconds",
            Self::RequestSize => "request_size",
            Self::ResponseSize => "response_size",
            Self::BytesSent => "bytes_sent",
        }
    }

    /// What one of it is in units of its metric: times are counted in nanoseconds.
    fn unit(self) -> f64 {
        match self {
            Self::RequestDuration
            | Self::ConnectDuration
            | Self::HeaderDuration
            | Self::ResponseDuration => 1e-9,
            Self::Requests | Self::RequestSize | Self::ResponseSize | Self::BytesSent => 1.0,
        }
    }

    fn bounds(self, settings: &Settings) -> &[f64] {
        match self {
            Self::Requests => &[],
            Self::RequestDuration
            | Self::ConnectDuration
            | Self::HeaderDuration
            | Self::ResponseDuration => &settings.times,
            Self::RequestSize | Self::ResponseSize => &settings.lengths,
            Self::BytesSent => &settings.sizes,
        }
    }
}

/// What was seen of one request. Nothing is said of an upstream where there was none, or more than one try: nginx has
/// no single number then either.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observed {
    /// From the head of the request to the last byte of the answer.
    pub took: Duration,
    /// Until the connection to the upstream stood.
    pub connect: Option<Duration>,
    /// Until the head of the upstream's answer was there.
    pub header: Option<Duration>,
    /// Until the upstream's answer was over.
    pub response: Option<Duration>,
    /// Bytes that came from the client.
    pub received: u64,
    /// Bytes that went to the client.
    pub sent: u64,
}

impl Observed {
    fn value(&self, measure: Measure) -> Option<u64> {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match measure {
            Measure::Requests => Some(1),
            Measure::RequestDuration => Some(nanoseconds(self.took)),
            Measure::ConnectDuration => self.connect.map(nanoseconds),
            Measure::HeaderDuration => self.header.map(nanoseconds),
            Measure::ResponseDuration => self.response.map(nanoseconds),
            Measure::RequestSize => Some(self.received),
            Measure::ResponseSize | Measure::BytesSent => Some(self.sent),
        }
    }
}

/// One measure among the cells of a series: a sum, then one cell for each bound and one for what exceeds them all.
#[derive(Debug)]
pub struct Part {
    /// What is measured.
    pub measure: Measure,
    /// Its upper bounds; none: a counter.
    pub bounds: Vec<f64>,
    /// The same in the units that are counted.
    limits: Vec<u64>,
    at: usize,
}

impl Part {
    /// Where its sum is.
    pub(super) fn sum(&self) -> usize {
        self.at
    }

    /// Where its buckets are; none for a counter.
    pub(super) fn buckets(&self) -> std::ops::Range<usize> {
        let count = if self.measure == Measure::Requests { 0 } else { self.limits.len() + 1 };
        self.at + 1..self.at + 1 + count
    }

    /// What one of it is in units of its metric.
    pub(super) fn unit(&self) -> f64 {
        self.measure.unit()
    }
}

/// The cells of every series.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) parts: Vec<Part>,
    pub(super) cells: usize,
}

impl Layout {
    pub(super) fn new(settings: &Settings) -> Self {
        let mut layout = Self { parts: Vec::new(), cells: 0 };
        for measure in Measure::ALL.into_iter().filter(|one| !settings.excluded.contains(one)) {
            let bounds = measure.bounds(settings).to_vec();
            // Whole numbers are counted, so rounding down moves none of them over a bound in bytes.
            let limit = |bound: &f64| {
                if measure.unit() < 1.0 {
                    (bound / measure.unit()).round() as u64
                } else {
                    bound.floor() as u64
                }
            };
            let limits = bounds.iter().map(limit).collect();
            let part = Part { measure, bounds, limits, at: layout.cells };
            layout.cells = part.buckets().end;
            layout.parts.push(part);
        }
        layout
    }

    /// Counts a request. Only the thread that owns the cells may.
    pub(super) fn count(&self, cells: &Cells, observed: &Observed) {
        for part in &self.parts {
            let Some(value) = observed.value(part.measure) else { continue };
            cells.add(part.at, value);
            if part.measure != Measure::Requests {
                let above = part.limits.iter().position(|limit| value <= *limit);
                cells.add(part.at + 1 + above.unwrap_or(part.limits.len()), 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Layout, Measure, Observed};
    use crate::series::{Cells, Reading, read};
    use crate::{Settings, tests_settings};
    use std::time::Duration;

    fn readings(settings: &Settings, observed: &[Observed]) -> Vec<(Measure, Reading)> {
        let layout = Layout::new(settings);
        let cells = Cells::new(layout.cells);
        observed.iter().for_each(|one| layout.count(&cells, one));
        layout.parts.iter().map(|part| (part.measure, read(part, [&cells].into_iter()))).collect()
    }

    #[test]
    fn a_value_at_a_bound_is_below_it_and_buckets_add_up() {
        let settings = Settings { lengths: vec![10.0, 20.5], ..tests_settings() };
        let sizes = [10, 11, 20, 21, 5000];
        let observed = sizes.map(|received| Observed { received, ..Observed::default() });
        let sizes = readings(&settings, &observed);
        let (_, size) = sizes.iter().find(|(one, _)| *one == Measure::RequestSize).unwrap();
        assert_eq!(*size, Reading::Histogram { up_to: vec![1, 3, 5], sum: 5062.0 });
    }

    #[test]
    fn times_are_seconds_and_what_was_not_seen_does_not_count() {
        let settings = Settings { times: vec![0.005, 1.0], ..tests_settings() };
        let took = Duration::from_millis(5);
        let all = readings(&settings, &[Observed { took, ..Observed::default() }]);
        let of = |measure| all.iter().find(|(one, _)| *one == measure).unwrap().1.clone();
        let once = Reading::Histogram { up_to: vec![1, 1, 1], sum: 0.005 };
        assert_eq!(of(Measure::RequestDuration), once);
        let never = Reading::Histogram { up_to: vec![0, 0, 0], sum: 0.0 };
        assert_eq!(of(Measure::ConnectDuration), never);
        assert_eq!(of(Measure::Requests), Reading::Count(1));
    }

    #[test]
    fn what_is_excluded_has_no_cells() {
        let excluded = [Measure::BytesSent, Measure::Requests].into();
        let few = readings(&Settings { excluded, ..tests_settings() }, &[Observed::default()]);
        assert!(few.iter().all(|(one, _)| *one != Measure::BytesSent && *one != Measure::Requests));
        assert_eq!(few.len(), 6);
    }
}
