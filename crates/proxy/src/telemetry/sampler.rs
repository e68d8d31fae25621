//! Which traces are recorded.

use super::context::TraceId;
use model::{Sampler, Telemetry};

/// Decides whether a trace is recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decider {
    sampler: Sampler,
    parent_based: bool,
}

impl Decider {
    /// What the settings ask for.
    pub(super) fn new(settings: &Telemetry) -> Self {
        Self { sampler: settings.sampler, parent_based: settings.parent_based }
    }

    /// Whether a trace is recorded, for which somebody may have decided before.
    pub(super) fn decides(&self, trace: TraceId, before: Option<bool>) -> bool {
        match (before, self.sampler) {
            (Some(before), _) if self.parent_based => before,
            (_, Sampler::AlwaysOn) => true,
            (_, Sampler::AlwaysOff) => false,
            (_, Sampler::TraceIdRatioBased(ratio)) => is_within(trace, ratio.part()),
        }
    }
}

/// The lower 63 bits against the part, as the OpenTelemetry libraries of Go, Java and Rust have it: where they record
/// with the same ratio, they record the same traces.
fn is_within(trace: TraceId, part: f64) -> bool {
    const ALL: f64 = (1u64 << 63) as f64;
    part >= 1.0 || trace.low() >> 1 < (part * ALL) as u64
}

#[cfg(test)]
mod tests {
    use super::{Decider, TraceId};
    use model::{Ratio, Sampler, Telemetry};

    fn decider(sampler: Sampler, parent_based: bool) -> Decider {
        Decider::new(&Telemetry { sampler, parent_based, ..Telemetry::default() })
    }

    fn ratio(part: f64) -> Sampler {
        Sampler::TraceIdRatioBased(Ratio::new(part).expect("a ratio"))
    }

    #[test]
    fn the_parent_decides_where_it_is_asked() {
        let trace = TraceId::new(1).expect("not zero");
        for (sampler, own) in [(Sampler::AlwaysOn, true), (Sampler::AlwaysOff, false)] {
            assert_eq!(decider(sampler, true).decides(trace, None), own);
            assert_eq!(decider(sampler, true).decides(trace, Some(!own)), !own);
            assert_eq!(decider(sampler, false).decides(trace, Some(!own)), own);
        }
    }

    #[test]
    fn a_ratio_records_that_part_of_all_traces() {
        let mut random = fastrand::Rng::with_seed(7);
        let traces: Vec<_> = (0..10_000).filter_map(|_| TraceId::new(random.u128(..))).collect();
        for part in [0.0, 0.01, 0.25, 1.0] {
            let decider = decider(ratio(part), true);
            let recorded = traces.iter().filter(|trace| decider.decides(**trace, None)).count();
            let expected = part * traces.len() as f64;
            assert!(
                (recorded as f64 - expected).abs() <= 0.02 * traces.len() as f64,
                "{part}: {recorded}"
            );
            assert!(part > 0.0 || recorded == 0);
            assert!(part < 1.0 || recorded == traces.len());
        }
    }

    #[test]
    fn whoever_records_less_records_a_part_of_what_others_do() {
        let (less, more) = (decider(ratio(0.1), true), decider(ratio(0.2), true));
        let mut random = fastrand::Rng::with_seed(8);
        for trace in (0..10_000).filter_map(|_| TraceId::new(random.u128(..))) {
            assert!(!less.decides(trace, None) || more.decides(trace, None));
        }
    }
}
