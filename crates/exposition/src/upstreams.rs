//! Which upstreams have series of their own: as many as there may be, and of each namespace a share of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What the rest is counted under.
const OVERFLOW: &str = "overflow";

/// An upstream with two counts of it.
pub(crate) type Row = (String, [(&'static str, u64); 2]);

/// What was shown so far. Whoever has a place keeps it as long as it is there, and whoever has none gets none: counts
/// move to no other series.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// Those with a place, each with its namespace.
    places: HashMap<String, Arc<str>>,
    /// The others, with what was counted of them already.
    rest: HashMap<String, [u64; 2]>,
    overflow: [u64; 2],
}

impl Shown {
    /// The rows to show of these, with `most` upstreams. A namespace gets another place as long as more are free than
    /// it has: half of them where it is alone.
    pub(crate) fn rows(
        &mut self,
        all: Vec<Row>,
        most: usize,
        namespace: impl Fn(&str) -> Arc<str>,
    ) -> Vec<Row> {
        let there: HashSet<&str> = all.iter().map(|(id, _)| id.as_str()).collect();
        self.places.retain(|id, _| there.contains(id.as_str()));
        self.rest.retain(|id, _| there.contains(id.as_str()));
        let mut of: HashMap<Arc<str>, usize> = HashMap::new();
        self.places.values().for_each(|one| *of.entry(one.clone()).or_default() += 1);
        let mut rows = Vec::with_capacity(all.len().min(most) + 1);
        let mut words = None;
        for (id, counts) in all {
            if !self.places.contains_key(&id) && !self.rest.contains_key(&id) {
                let namespace = namespace(&id);
                let has = of.entry(namespace.clone()).or_default();
                if *has < most.saturating_sub(self.places.len()) {
                    *has += 1;
                    self.places.insert(id.clone(), namespace);
                }
            }
            if self.places.contains_key(&id) {
                rows.push((id, counts));
                continue;
            }
            words = Some(counts.map(|(word, _)| word));
            let now = counts.map(|(_, count)| count);
            let before = self.rest.insert(id, now).unwrap_or_default();
            for (sum, (now, before)) in self.overflow.iter_mut().zip(now.into_iter().zip(before)) {
                *sum += now.saturating_sub(before);
            }
        }
        if let Some([first, second]) = words {
            let [one, two] = self.overflow;
            rows.push((OVERFLOW.to_owned(), [(first, one), (second, two)]));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, Shown};

    fn row(id: &str, opened: u64) -> Row {
        (id.to_owned(), [("opened", opened), ("reused", 2 * opened)])
    }

    fn shown(shown: &mut Shown, all: &[(&str, u64)]) -> String {
        let all = all.iter().map(|(id, opened)| row(id, *opened)).collect();
        let rows = shown.rows(all, 4, |id| id[..1].into());
        rows.iter().map(|(id, counts)| format!("{id} {} {}, ", counts[0].1, counts[1].1)).collect()
    }

    #[test]
    fn upstreams_have_as_many_series_as_there_may_be_and_the_rest_is_counted_together() {
        let mut all = Shown::default();
        let flood = [("a1", 1), ("a2", 1), ("a3", 5), ("a4", 7)];
        assert_eq!(shown(&mut all, &flood), "a1 1 2, a2 1 2, overflow 12 24, ");
        let more = [("a1", 2), ("a2", 1), ("a3", 6), ("a4", 7), ("b1", 3), ("b2", 9)];
        let wanted = "a1 2 4, a2 1 2, b1 3 6, overflow 22 44, ";
        assert_eq!(shown(&mut all, &more), wanted, "others have their share");
        // What goes takes nothing away from what is counted together, and leaves its place to what comes.
        let less = [("a1", 2), ("a4", 7), ("b1", 3), ("b2", 9), ("c1", 1)];
        assert_eq!(shown(&mut all, &less), "a1 2 4, b1 3 6, c1 1 2, overflow 22 44, ");
        assert_eq!((all.places.len(), all.rest.len()), (3, 2));
    }
}
