//! What paths of several namespaces begin with, as a tree: who has a path that begins alike is found without going
//! through all of them.

/// Starts of paths, each of the namespaces that have it and with what belongs to it there. A dot is any byte.
#[derive(Debug)]
pub(super) struct Starts<'a, T> {
    /// The first one is the root. No node holds another one, so that no depth is too deep.
    nodes: Vec<Node<'a, T>>,
}

#[derive(Debug)]
struct Node<'a, T> {
    /// What its starts have beyond those of the node above.
    label: Vec<u8>,
    /// In the order of the first byte of their labels.
    children: Vec<usize>,
    /// Who has the start that ends here.
    here: Least<'a, T>,
    /// Who has a start that ends here or below.
    below: Least<'a, T>,
}

/// Of all namespaces the two that come first: one of them is foreign to whoever asks, if any is.
#[derive(Clone, Debug)]
struct Least<'a, T>([Option<(&'a str, T)>; 2]);

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sought<'s> {
    /// A start that others agree with as far as both go.
    start: &'s [u8],
    /// How much of it they have to the letter: there is no dot in that.
    literal: usize,
    /// How long those at least are that are shorter.
    enough: usize,
}

/// There were too many starts with dots, or too many that agree with dots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

/// Bytes that are compared for one more step.
const BYTES: usize = 32;

impl<T> Default for Least<'_, T> {
    fn default() -> Self {
        Self([None, None])
    }
}

impl<'a, T: Copy> Least<'a, T> {
    /// Adds a namespace. What was there of the same one stays.
    fn note(&mut self, namespace: &'a str, of: T) {
        let Self([first, second]) = self;
        match first {
            Some((other, _)) if *other == namespace => {}
            Some((other, _)) if *other < namespace => {
                if second.is_none_or(|(other, _)| namespace < other) {
                    *second = Some((namespace, of));
                }
            }
            _ => *second = first.replace((namespace, of)),
        }
    }

    /// The first one that is not `own`.
    fn foreign(&self, own: &str) -> Option<(&'a str, T)> {
        self.0.iter().flatten().find(|(namespace, _)| *namespace != own).copied()
    }
}

impl<T> Node<'_, T> {
    fn new(label: &[u8]) -> Self {
        let (here, below) = (Least::default(), Least::default());
        Self { label: label.to_vec(), children: Vec::new(), here, below }
    }
}

impl<T> Default for Starts<'_, T> {
    fn default() -> Self {
        Self { nodes: vec![Node::new(b"")] }
    }
}

impl<'a, T: Copy> Starts<'a, T> {
    /// Notes that a namespace has a start. What it has already with the same one stays.
    pub(super) fn note(&mut self, start: &str, namespace: &'a str, of: T) {
        let (mut at, mut rest) = (0, start.as_bytes());
        loop {
            self.nodes[at].below.note(namespace, of);
            let Some(&next) = rest.first() else { break };
            at = match self.child(at, next) {
                Ok(place) => self.nodes[at].children[place],
                Err(place) => {
                    let new = self.nodes.len();
                    self.nodes.push(Node::new(rest));
                    self.nodes[at].children.insert(place, new);
                    new
                }
            };
            let both = self.nodes[at].label.iter().zip(rest);
            let common = both.take_while(|(a, b)| a == b).count();
            self.split(at, common);
            rest = &rest[common..];
        }
        self.nodes[at].here.note(namespace, of);
    }

    /// The place of the child of a node whose label begins with a byte, or where it would be.
    fn child(&self, at: usize, first: u8) -> Result<usize, usize> {
        let begins = |child: &usize| self.nodes[*child].label.first().copied();
        self.nodes[at].children.binary_search_by_key(&Some(first), begins)
    }

    /// Has a node end after so much of its label.
    fn split(&mut self, at: usize, length: usize) {
        let lower = self.nodes.len();
        let node = &mut self.nodes[at];
        if length >= node.label.len() {
            return;
        }
        let label = node.label.split_off(length);
        let children = std::mem::replace(&mut node.children, vec![lower]);
        let here = std::mem::take(&mut node.here);
        let below = node.below.clone();
        self.nodes.push(Node { label, children, here, below });
    }

    /// What belongs to the first start that agrees with what is looked for, of the first other namespace that has one.
    /// Each node beyond a dot takes one of `steps`: without dots the way is one.
    pub(super) fn find(
        &self,
        sought: Sought<'_>,
        own: &str,
        steps: &mut usize,
    ) -> Result<Option<T>, TooMany> {
        let mut best: Option<(&str, usize)> = None;
        let mut coming = vec![(0, 0, false)];
        while let Some((at, depth, mut dotted)) = coming.pop() {
            if dotted {
                *steps = steps.checked_sub(1).ok_or(TooMany)?;
            }
            let node = &self.nodes[at];
            let is_better =
                |found: &(&'a str, T)| best.is_none_or(|(namespace, _)| found.0 < namespace);
            let Some(least) = node.below.foreign(own).filter(is_better) else { continue };
            let rest = &sought.start[depth..];
            let compared = sought.agrees(depth, &node.label);
            dotted |= compared.dotted;
            if dotted {
                *steps = steps.checked_sub(compared.bytes / BYTES).ok_or(TooMany)?;
            }
            if compared.bytes < rest.len().min(node.label.len()) {
                continue;
            }
            let Some(&next) = rest.get(node.label.len()) else {
                best = Some((least.0, at));
                continue;
            };
            let depth = depth + node.label.len();
            let ending = node.here.foreign(own).filter(|_| depth >= sought.enough);
            if let Some(here) = ending.filter(is_better) {
                best = Some((here.0, at));
            }
            self.follow(at, next, depth < sought.literal, |child, by_dot| {
                coming.push((child, depth, dotted || by_dot));
            });
        }
        Ok(best.and_then(|(namespace, at)| self.first(at, namespace, own)))
    }

    /// The children that a byte leads to and whether a dot does, the last one first.
    fn follow(&self, at: usize, next: u8, is_literal: bool, mut each: impl FnMut(usize, bool)) {
        let children = &self.nodes[at].children;
        if next == b'.' && !is_literal {
            children.iter().rev().for_each(|child| each(*child, true));
            return;
        }
        let same = self.child(at, next).ok();
        let dot = self.child(at, b'.').ok().filter(|_| !is_literal);
        let [first, last] = [same.min(dot), same.max(dot)];
        for place in [last, first].into_iter().flatten() {
            each(children[place], Some(place) == dot);
        }
    }

    /// What belongs to the first start at or below a node of a namespace, which is the first there but for `own`.
    fn first(&self, mut at: usize, namespace: &str, own: &str) -> Option<T> {
        let of = |least: &Least<'a, T>| least.foreign(own).filter(|(name, _)| *name == namespace);
        loop {
            let node = &self.nodes[at];
            if let Some((_, found)) = of(&node.here) {
                return Some(found);
            }
            at = *node.children.iter().find(|child| of(&self.nodes[**child].below).is_some())?;
        }
    }
}

/// How far a label agrees.
struct Compared {
    bytes: usize,
    /// Whether that was for a dot.
    dotted: bool,
}

impl<'s> Sought<'s> {
    /// Starts that agree with `start`, however long they are.
    pub(super) fn alike(start: &'s str) -> Self {
        Self { start: start.as_bytes(), literal: 0, enough: 0 }
    }

    /// Starts for which a pattern that begins with `start` may have what is at or right below them, rather than
    /// something with a name of its own there.
    pub(super) fn near(start: &'s str) -> Self {
        let literal = start.find('.').unwrap_or(start.len());
        let from = start[..literal].strip_suffix('/').map_or(literal, str::len);
        // A shorter one agrees with a dot, or all that it lacks are slashes and dots.
        let named = start.trim_end_matches(['/', '.']).len();
        let enough = from.max(named.min(literal + 1));
        Self { start: start.as_bytes(), literal: from, enough }
    }

    /// How far a label that begins at `depth` agrees.
    fn agrees(&self, depth: usize, label: &[u8]) -> Compared {
        let mut compared = Compared { bytes: 0, dotted: false };
        for (place, (a, b)) in label.iter().zip(&self.start[depth..]).enumerate() {
            if a != b {
                if depth + place < self.literal || (*a != b'.' && *b != b'.') {
                    break;
                }
                compared.dotted = true;
            }
            compared.bytes += 1;
        }
        compared
    }
}

#[cfg(test)]
mod tests {
    use super::{Sought, Starts, TooMany};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// The starts of each namespace.
    type All = BTreeMap<&'static str, BTreeMap<String, usize>>;

    fn agree(one: &str, other: &str) -> bool {
        let same = |(a, b): (u8, u8)| a == b || a == b'.' || b == b'.';
        one.bytes().zip(other.bytes()).all(same)
    }

    fn reaches(start: &str, other: &str) -> bool {
        if !agree(start, other) || other.len() >= start.len() {
            return agree(start, other);
        }
        let (within, beyond) = start.as_bytes().split_at(other.len());
        within.contains(&b'.') || beyond.iter().all(|byte| matches!(byte, b'/' | b'.'))
    }

    /// Each with each.
    fn naive(all: &All, own: &str, is_found: impl Fn(&str) -> bool) -> Option<usize> {
        let foreign = all.iter().filter(|(namespace, _)| **namespace != own);
        let mut starts = foreign.flat_map(|(_, starts)| starts);
        starts.find(|(start, _)| is_found(start)).map(|(_, of)| *of)
    }

    fn near(all: &All, own: &str, start: &str) -> Option<usize> {
        let literal = start.split('.').next().unwrap_or_default();
        let from = literal.strip_suffix('/').unwrap_or(literal);
        naive(all, own, |other| other.starts_with(from) && reaches(start, other))
    }

    const NAMESPACES: [&str; 4] = ["b", "a", "d", "c"];

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

        #[test]
        fn the_tree_finds_what_comparing_each_with_each_finds(
            noted in vec((0..4_usize, "[ab./]{0,7}"), 0..40),
            sought in vec((0..4_usize, "[ab./]{0,7}"), 1..10),
        ) {
            let (mut starts, mut all) = (Starts::default(), All::new());
            for (of, (namespace, start)) in noted.into_iter().enumerate() {
                starts.note(&start, NAMESPACES[namespace], of);
                all.entry(NAMESPACES[namespace]).or_default().entry(start).or_insert(of);
            }
            for (own, start) in sought {
                let own = NAMESPACES[own];
                let alike = naive(&all, own, |other| agree(&start, other));
                let mut steps = 1000;
                prop_assert_eq!(starts.find(Sought::alike(&start), own, &mut steps), Ok(alike));
                let found = starts.find(Sought::near(&start), own, &mut steps);
                prop_assert_eq!(found, Ok(near(&all, own, &start)), "{:?}", start);
            }
        }
    }

    #[test]
    fn dots_take_steps_and_texts_take_none() {
        let mut starts = Starts::default();
        for number in 0..1024 {
            let bits = (0..10).map(|bit| if number >> bit & 1 == 0 { '.' } else { 'a' });
            starts.note(&format!("/{}y", bits.collect::<String>()), "a", number);
        }
        let find = |start, own, mut steps| starts.find(Sought::alike(start), own, &mut steps);
        assert_eq!(find("/aaaaaaaaaax", "b", 30), Err(TooMany));
        assert_eq!(find("/aaaaaaaaaax", "b", 3000), Ok(None));
        assert_eq!(find("/aaaaaaaaaax", "a", 30), Ok(None));
        let mut texts = Starts::default();
        (0..1024).for_each(|number| texts.note(&format!("/shop/{number:04}"), "a", number));
        assert_eq!(texts.find(Sought::near("/shop/0007"), "b", &mut 0), Ok(Some(7)));
        assert_eq!(texts.find(Sought::alike("/shop/0007/c"), "b", &mut 0), Ok(Some(7)));
        assert_eq!(texts.find(Sought::near("/shop/."), "b", &mut 0), Err(TooMany));
    }

    #[test]
    fn no_depth_is_too_deep() {
        let (mut starts, long) = (Starts::default(), "/".repeat(3000));
        for length in 1..=long.len() {
            starts.note(&long[..length], "a", length);
        }
        assert_eq!(starts.find(Sought::alike(&long), "b", &mut 0), Ok(Some(1)));
        assert_eq!(starts.find(Sought::near(&long), "b", &mut 0), Ok(Some(2999)));
    }
}
