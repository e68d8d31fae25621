//! The families about requests: eight for each combination of labels, so they are written a piece at a time.

use super::Scrape;
use super::families::request_help;
use super::page::Identity;
use bytes::Bytes;
use request_metrics::{Metrics, Part, Reading, Series};
use runtime::exposition::{Exposition, Kind};
use std::sync::Arc;

/// Bytes of a piece, more or less.
const PIECE: usize = 64 << 10;
/// What ingress-nginx's names begin with.
pub(crate) const PREFIX: &str = "nginx_ingress_controller_";

/// The pieces of the page about requests.
pub(super) struct Pieces {
    of: Arc<Scrape>,
    metrics: Arc<Metrics>,
    /// Those that there were when it began.
    series: Option<Vec<Arc<Series>>>,
    part: usize,
    next: usize,
    /// Whether the family of this part was begun.
    begun: bool,
}

impl Pieces {
    pub(super) fn new(of: Arc<Scrape>, metrics: Arc<Metrics>) -> Self {
        Self { of, metrics, series: None, part: 0, next: 0, begun: false }
    }
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let series = self.series.get_or_insert_with(|| self.metrics.series());
        let mut page = Exposition::default();
        while let Some(part) = self.metrics.parts().get(self.part) {
            let Some(one) = series.get(self.next) else {
                (self.part, self.next, self.begun) = (self.part + 1, 0, false);
                continue;
            };
            self.next += 1;
            let reading = one.read(part);
            if is_nothing(&reading) {
                continue;
            }
            let name = format!("{PREFIX}{}", part.measure.name());
            if !std::mem::replace(&mut self.begun, true) {
                let kind = match reading {
                    Reading::Count(_) => Kind::Counter,
                    Reading::Histogram { .. } => Kind::Histogram,
                };
                page.family(&name, kind, request_help(part.measure));
            }
            write(&mut page, &name, &self.of.metrics.identity, one, part, &reading);
            if page.len() >= PIECE {
                break;
            }
        }
        (!page.is_empty()).then(|| page.into_text().into())
    }
}

/// Whether nothing was measured: there was no upstream, for one.
fn is_nothing(reading: &Reading) -> bool {
    match reading {
        Reading::Count(count) => *count == 0,
        Reading::Histogram { up_to, .. } => up_to.last() == Some(&0),
    }
}

fn write(
    page: &mut Exposition,
    name: &str,
    identity: &Identity,
    series: &Series,
    part: &Part,
    reading: &Reading,
) {
    let labels: Vec<_> = identity.labels().into_iter().chain(series.labels.pairs()).collect();
    match reading {
        Reading::Count(count) => page.sample(name, &labels, *count as f64),
        Reading::Histogram { up_to, sum } => {
            page.histogram(name, &labels, &part.bounds, up_to, *sum)
        }
    }
}
