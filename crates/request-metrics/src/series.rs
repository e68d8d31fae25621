//! One combination of labels: its cells in each thread, and what they say together.

use super::Labels;
use super::labels::{CountedLocation, Name};
use super::layout::Part;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// What one thread has counted for one series. Only that thread writes, so nothing has to be locked.
#[derive(Debug)]
pub(super) struct Cells(Box<[AtomicU64]>);

impl Cells {
    pub(super) fn new(count: usize) -> Self {
        Self(std::iter::repeat_with(AtomicU64::default).take(count).collect())
    }

    pub(super) fn add(&self, at: usize, count: u64) {
        let cell = &self.0[at];
        cell.store(cell.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    fn get(&self, at: usize) -> u64 {
        self.0[at].load(Ordering::Relaxed)
    }
}

/// What a measure says of a series.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// How many there were.
    Count(u64),
    /// How many were at most each bound, the last number being all of them.
    Histogram {
        /// One number for each bound, and one for all.
        up_to: Vec<u64>,
        /// The sum of their values.
        sum: f64,
    },
}

/// The requests with one combination of labels.
#[derive(Debug)]
pub struct Series {
    /// The labels.
    pub labels: Labels,
    /// Where they were answered; it is gone once no request can get there. None: the overflow.
    pub(super) place: Option<Weak<CountedLocation>>,
    /// The host that they asked for; it is gone once no server has it.
    pub(super) host: Option<Weak<Name>>,
    cells: Mutex<Vec<(usize, Arc<Cells>)>>,
}

impl Series {
    pub(super) fn new(
        labels: Labels,
        place: Option<Weak<CountedLocation>>,
        host: Option<Weak<Name>>,
    ) -> Self {
        Self { labels, place, host, cells: Mutex::default() }
    }

    /// Whether requests can still count here.
    pub(super) fn is_alive(&self) -> bool {
        self.place.as_ref().is_none_or(|place| place.strong_count() > 0)
            && self.host.as_ref().is_none_or(|host| host.strong_count() > 0)
    }

    /// The cells of a thread.
    pub(super) fn cells(&self, thread: usize, count: usize) -> Arc<Cells> {
        let mut all = self.cells.lock();
        if let Some((_, cells)) = all.iter().find(|(owner, _)| *owner == thread) {
            return cells.clone();
        }
        let cells = Arc::new(Cells::new(count));
        all.push((thread, cells.clone()));
        cells
    }

    /// What a measure says, over all threads.
    pub fn read(&self, part: &Part) -> Reading {
        let all = self.cells.lock();
        read(part, all.iter().map(|(_, cells)| &**cells))
    }
}

/// What a measure says over some cells. The number of all comes from the buckets, so that they always agree.
pub(super) fn read<'a>(part: &Part, cells: impl Iterator<Item = &'a Cells>) -> Reading {
    let buckets = part.buckets();
    let (mut sum, mut counts) = (0u64, vec![0u64; buckets.len()]);
    for cells in cells {
        sum = sum.wrapping_add(cells.get(part.sum()));
        for (count, at) in counts.iter_mut().zip(buckets.clone()) {
            *count += cells.get(at);
        }
    }
    if counts.is_empty() {
        return Reading::Count(sum);
    }
    let mut so_far = 0;
    for count in &mut counts {
        so_far += *count;
        *count = so_far;
    }
    Reading::Histogram { up_to: counts, sum: sum as f64 * part.unit() }
}
