//! Lines of the log about what somebody else does: each namespace has so many in a minute.

use crate::clock::Moment;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Lines about the objects of one namespace, in one `SPAN`.
pub(crate) const LINES: usize = 60;
/// How long they have to last.
pub(crate) const SPAN: Duration = Duration::from_secs(60);

/// The lines of this span.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    began: Option<Moment>,
    told: BTreeMap<Arc<str>, Told>,
}

/// Lines about the objects of one namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    lines: usize,
    left_out: usize,
    /// That some were left out was said.
    closed: bool,
}

impl Shares {
    /// Begins a new span, if there is none or it is over: whose lines were left out in the old one, and how many.
    pub(crate) fn renew(&mut self, now: Moment) -> Option<Vec<(Arc<str>, usize)>> {
        if self.began.is_some_and(|began| now < began + SPAN) {
            return None;
        }
        self.began = Some(now);
        let ended = std::mem::take(&mut self.told).into_iter();
        let untold = ended.filter(|(_, told)| told.left_out > 0);
        Some(untold.map(|(namespace, told)| (namespace, told.left_out)).collect())
    }

    /// Whether there may be one more line about a namespace.
    pub(crate) fn take(&mut self, namespace: Arc<str>) -> bool {
        let told = self.told.entry(namespace).or_default();
        let may = told.lines < LINES;
        *(if may { &mut told.lines } else { &mut told.left_out }) += 1;
        may
    }

    /// Whose lines were left out for the first time in this span, and how many: those that follow are counted together.
    pub(crate) fn close(&mut self) -> Vec<(Arc<str>, usize)> {
        let open = self.told.iter_mut().filter(|(_, told)| told.left_out > 0 && !told.closed);
        open.map(|(namespace, told)| {
            told.closed = true;
            (Arc::clone(namespace), std::mem::take(&mut told.left_out))
        })
        .collect()
    }
}

/// A text of so many bytes at most, cut between characters.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!((cut("aé", 2), cut("aé", 3), cut("a", 3)), ("a", "aé", "a"));
    }
}
