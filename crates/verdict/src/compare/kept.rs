//! Outcomes as far as memory goes: all are counted, and the first ones are shown.

use super::run::Outcome;
use std::collections::BTreeMap;

/// How many bytes outcomes may take; those beyond it are only counted.
const BYTES: usize = 128 << 20;

/// How many outcomes there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) different: usize,
    pub(super) not_compared: usize,
    pub(super) unstable: usize,
    pub(super) harms: u64,
    /// Those that are only counted.
    pub(super) not_kept: usize,
}

/// Outcomes by the number of their request.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// None where there was no room any more.
    all: BTreeMap<usize, Option<Box<Outcome>>>,
    bytes: usize,
    pub(super) counts: Counts,
}

impl Kept {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether a request has its outcome.
    pub(super) fn has(&self, number: usize) -> bool {
        self.all.contains_key(&number)
    }

    /// Adds the outcome of a request that has none.
    pub(super) fn add(&mut self, number: usize, outcome: Outcome) {
        let counts = &mut self.counts;
        counts.different += usize::from(!outcome.differences.is_empty());
        counts.not_compared += usize::from(outcome.not_compared.is_some());
        counts.unstable += usize::from(!outcome.unstable.is_empty());
        counts.harms += u64::from(outcome.harm);
        let bytes = self.bytes + bytes(&outcome);
        let fits = bytes <= BYTES;
        if fits {
            self.bytes = bytes;
        } else {
            counts.not_kept += 1;
        }
        self.all.insert(number, fits.then(|| Box::new(outcome)));
    }

    /// Those that are kept, in the order of requests.
    pub(super) fn into_outcomes(self) -> Vec<Outcome> {
        self.all.into_values().flatten().map(|outcome| *outcome).collect()
    }
}

/// What it says where outcomes are only counted.
pub(super) fn not_kept(count: usize) -> String {
    format!("{count} are counted and not shown: there is room for {} MiB", BYTES >> 20)
}

/// The memory that an outcome takes; a text has about as much around it.
fn bytes(outcome: &Outcome) -> usize {
    const AROUND: usize = 2 * size_of::<String>();
    let differences = outcome.differences.iter().flat_map(|(what, how)| [what, how]);
    let texts = differences.chain(&outcome.unstable).chain(&outcome.not_compared);
    let texts = texts.chain([&outcome.request]).map(|text| text.capacity() + AROUND);
    size_of::<Outcome>() + texts.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::{BYTES, Kept, bytes};
    use crate::compare::run::Outcome;

    #[test]
    fn outcomes_are_kept_within_a_bound_and_all_are_counted() {
        let mut kept = Kept::default();
        let outcome = || Outcome {
            request: "x".repeat(1 << 20),
            differences: [("status".to_owned(), "old 200, new 500".to_owned())].into(),
            harm: true,
            ..Outcome::default()
        };
        for number in (0..200).rev() {
            kept.add(number, outcome());
        }
        assert!(kept.bytes <= BYTES && kept.has(0) && kept.len() == 200, "{}", kept.bytes);
        let counts = kept.counts;
        assert_eq!((counts.different, counts.harms, counts.not_kept), (200, 200, 73));
        let shown = kept.into_outcomes();
        assert_eq!(shown.len(), 127);
        assert!(shown.iter().map(bytes).sum::<usize>() <= BYTES);
    }
}
