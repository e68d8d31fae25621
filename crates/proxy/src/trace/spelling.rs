//! Whether two hosts differ in so few letters that one may be meant by the other.

/// Letters in which a host may differ from the one asked for.
const MOST: usize = 2;
/// Letters of hosts that are compared for one request. Whoever has hosts chooses how many there are and how much they
/// are alike, and the thread of a request that is traced does nothing else meanwhile.
const BUDGET: usize = 4 << 20;

/// What is left for a request.
pub(super) struct Spelling(usize);

impl Spelling {
    pub(super) const fn new() -> Self {
        Self(BUDGET)
    }

    /// Whether they differ in few letters: others, too many, too few, or two that are swapped. Once too much was
    /// compared nothing does.
    pub(super) fn is_near(&mut self, one: &str, other: &str) -> bool {
        self.is_within(one.as_bytes(), other.as_bytes(), MOST)
    }

    fn is_within(&mut self, one: &[u8], other: &[u8], most: usize) -> bool {
        if one.len().abs_diff(other.len()) > most {
            return false;
        }
        let alike = one.iter().zip(other).take_while(|(one, other)| one == other).count();
        let Some(left) = self.0.checked_sub(alike + 1) else {
            self.0 = 0;
            return false;
        };
        self.0 = left;
        match (&one[alike..], &other[alike..]) {
            ([], rest) | (rest, []) => rest.len() <= most,
            _ if most == 0 => false,
            (one @ [first, after @ ..], other @ [second, behind @ ..]) => {
                let is_swapped = after.first() == Some(second) && behind.first() == Some(first);
                self.is_within(after, behind, most - 1)
                    || self.is_within(after, other, most - 1)
                    || self.is_within(one, behind, most - 1)
                    || is_swapped && self.is_within(&after[1..], &behind[1..], most - 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BUDGET, MOST, Spelling};

    /// All texts of up to so many of three letters.
    fn texts(longest: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut last = all.clone();
        for _ in 0..longest {
            last = last
                .iter()
                .flat_map(|text| ["a", "b", "c"].map(|end| format!("{text}{end}")))
                .collect();
            all.extend(last.iter().cloned());
        }
        all
    }

    #[test]
    fn what_is_near_is_so_by_the_distance_of_optimal_string_alignment() {
        let all = texts(5);
        for one in &all {
            for other in &all {
                let is_near = strsim::osa_distance(one, other) <= MOST;
                assert_eq!(Spelling::new().is_near(one, other), is_near, "{one} {other}");
            }
        }
    }

    #[test]
    fn hosts_of_a_tenant_cost_a_request_few_letters_each_and_together_no_more_than_the_budget() {
        let asked = format!("nobody.{}.test", "b".repeat(180));
        let mut spelling = Spelling::new();
        let others = (0..50_000).map(|number| format!("h{number}.{}.test", "a".repeat(180)));
        assert!(!others.into_iter().any(|other| spelling.is_near(&other, &asked)));
        assert!(BUDGET - spelling.0 < 50_000 * 20, "{} letters were compared", BUDGET - spelling.0);
        assert!(spelling.is_near("nobody.test", "nobodi.test"), "there is enough left");
        // As much alike as can be.
        let alike = (0..50_000).map(|number| format!("{}{number:05}xyz.test", "b".repeat(180)));
        let asked = format!("{}nobody.test", "b".repeat(180));
        let near = alike.into_iter().filter(|other| spelling.is_near(other, &asked));
        assert_eq!(near.count(), 0);
        assert_eq!(spelling.0, 0, "no more is compared");
        assert!(!spelling.is_near("nobody.test", "nobodi.test"));
    }
}
