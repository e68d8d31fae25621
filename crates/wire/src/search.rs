//! Many texts looked for at once, without regard to case (Aho and Corasick). A body is passed once, whatever the texts
//! are: what may still become one of them is known at every byte, so that nothing is read twice.
//!
//! Why not `aho_corasick::automaton`: a filter that streams has to know at each byte how much it must hold back, which
//! is the longest end of what it has read that may still become a text. That is the depth of a state, or of where its
//! failure link leads once a text is whole; the crate tells neither. A table of both beside its automaton, made by
//! walking every beginning of every text through it, is as long as this file; and texts with variables are prepared for
//! each answer, where its larger states cost more than the search.

use std::collections::VecDeque;

/// Where nothing of any text was read yet.
pub(super) const ROOT: u32 = 0;
/// No text.
const NONE: u32 = u32::MAX;

/// The texts that are looked for.
#[derive(Debug)]
pub struct Search {
    nodes: Vec<Node>,
    /// The children of the root, by byte.
    first: Vec<u32>,
    /// By text, the next one with the same bytes.
    same: Vec<u32>,
    /// By text, the first one with the same bytes; and by that one the last so far.
    group: Vec<u32>,
    last: Vec<u32>,
}

/// The beginning of a text, or several.
#[derive(Debug)]
struct Node {
    byte: u8,
    depth: u32,
    /// The first that is longer by a byte, and the next of those that are.
    child: u32,
    sibling: u32,
    /// The longest of its own ends that begins a text.
    end: u32,
    /// How long the longest of its ends is, itself among them, that may go on.
    open: u32,
    /// The longest of its ends that is one.
    shorter: u32,
    /// The text that it is, the first of equal ones.
    text: u32,
}

impl Search {
    /// Prepares the search; none if there is nothing to look for.
    pub(super) fn over(texts: &[impl AsRef<[u8]>]) -> Option<Self> {
        let is_empty = texts.iter().any(|text| text.as_ref().is_empty());
        let bytes: usize = texts.iter().map(|text| text.as_ref().len()).sum();
        if texts.is_empty() || is_empty || u32::try_from(bytes).is_err() {
            return None;
        }
        let mut search = Self {
            nodes: Vec::with_capacity(bytes + 1),
            first: vec![ROOT; 256],
            same: vec![NONE; texts.len()],
            group: (0..texts.len()).map(number).collect(),
            last: (0..texts.len()).map(number).collect(),
        };
        search.push(0, 0);
        for (which, text) in texts.iter().enumerate() {
            search.add(number(which), text.as_ref());
        }
        search.join_ends();
        Some(search)
    }

    /// Bytes that it takes.
    pub fn size(&self) -> usize {
        let numbers = self.first.len() + self.same.len() + self.group.len() + self.last.len();
        self.nodes.capacity() * size_of::<Node>() + numbers * size_of::<u32>()
    }

    fn push(&mut self, byte: u8, depth: u32) -> u32 {
        let node = Node {
            byte,
            depth,
            child: ROOT,
            sibling: ROOT,
            end: ROOT,
            open: 0,
            shorter: ROOT,
            text: NONE,
        };
        self.nodes.push(node);
        number(self.nodes.len() - 1)
    }

    fn add(&mut self, which: u32, text: &[u8]) {
        let mut node = ROOT;
        for byte in text.iter().map(u8::to_ascii_lowercase) {
            let mut next = self.child(node, byte, &mut 0);
            if next == ROOT {
                next = self.push(byte, self.depth(node) + 1);
                match node {
                    ROOT => self.first[usize::from(byte)] = next,
                    node => {
                        let sibling = std::mem::replace(&mut self.nodes[node as usize].child, next);
                        self.nodes[next as usize].sibling = sibling;
                    }
                }
            }
            node = next;
        }
        match self.nodes[node as usize].text {
            NONE => self.nodes[node as usize].text = which,
            first => {
                let last = std::mem::replace(&mut self.last[first as usize], which);
                self.same[last as usize] = which;
                self.group[which as usize] = first;
            }
        }
    }

    /// Says of each beginning which of its ends begin texts: those that are shorter come first.
    fn join_ends(&mut self) {
        let mut waiting: VecDeque<u32> =
            self.first.iter().copied().filter(|node| *node != ROOT).collect();
        while let Some(node) = waiting.pop_front() {
            let Node { end, depth, mut child, .. } = self.nodes[node as usize];
            let goes_on = child != ROOT;
            self.nodes[node as usize].open =
                if goes_on { depth } else { self.nodes[end as usize].open };
            while child != ROOT {
                let end = self.next(end, self.nodes[child as usize].byte, &mut 0);
                let is_text = self.nodes[end as usize].text != NONE;
                let shorter = if is_text { end } else { self.nodes[end as usize].shorter };
                let next = &mut self.nodes[child as usize];
                (next.end, next.shorter) = (end, shorter);
                waiting.push_back(child);
                child = next.sibling;
            }
        }
    }

    fn child(&self, node: u32, byte: u8, steps: &mut usize) -> u32 {
        if node == ROOT {
            return self.first[usize::from(byte)];
        }
        let mut child = self.nodes[node as usize].child;
        while child != ROOT && self.nodes[child as usize].byte != byte {
            *steps += 1;
            child = self.nodes[child as usize].sibling;
        }
        child
    }

    /// What begins texts after one more byte, in lower case.
    pub(super) fn next(&self, mut node: u32, byte: u8, steps: &mut usize) -> u32 {
        loop {
            *steps += 1;
            let child = self.child(node, byte, steps);
            if child != ROOT || node == ROOT {
                return child;
            }
            node = self.nodes[node as usize].end;
        }
    }

    /// The longest end of this beginning that is no longer than `most`.
    pub(super) fn no_longer(&self, mut node: u32, most: usize) -> u32 {
        while self.depth(node) as usize > most {
            node = self.nodes[node as usize].end;
        }
        node
    }

    /// How many of the last bytes may be the beginning of a text that goes on.
    pub(super) fn open(&self, node: u32) -> usize {
        self.nodes[node as usize].open as usize
    }

    /// How long a beginning is.
    fn depth(&self, node: u32) -> u32 {
        self.nodes[node as usize].depth
    }

    /// The texts that end with this beginning, the longest first: their length, and the first of equal ones.
    pub(super) fn ending(&self, node: u32) -> impl Iterator<Item = (u32, usize)> {
        let mut next = match self.nodes[node as usize].text {
            NONE => self.nodes[node as usize].shorter,
            _ => node,
        };
        std::iter::from_fn(move || {
            let node = (next != ROOT).then(|| &self.nodes[next as usize])?;
            next = node.shorter;
            Some((node.depth, node.text as usize))
        })
    }

    /// The first text that has the same bytes as this one.
    pub(super) fn first_of(&self, text: usize) -> usize {
        self.group[text] as usize
    }

    /// The next text that has the same bytes.
    pub(super) fn next_equal(&self, text: usize) -> Option<usize> {
        Some(self.same[text] as usize).filter(|next| *next < self.same.len())
    }

    /// How many bytes at the beginning of `data` begin no text.
    pub(super) fn indifferent(&self, data: &[u8]) -> usize {
        let begins = |byte: &u8| self.first[usize::from(byte.to_ascii_lowercase())] != ROOT;
        data.iter().position(begins).unwrap_or(data.len())
    }
}

/// Numbers fit, since all bytes of texts do.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use super::{ROOT, Search};

    #[test]
    fn every_text_is_found_where_it_ends_in_steps_by_bytes() {
        let search = Search::over(&["he", "she", "his", "Hers", "HE"]).expect("there are texts");
        let (mut node, mut steps, mut found) = (ROOT, 0, Vec::new());
        for (at, byte) in b"ushers".iter().enumerate() {
            node = search.next(node, *byte, &mut steps);
            found.extend(search.ending(node).map(|(length, text)| (at + 1, length, text)));
        }
        assert_eq!(found, [(4, 3, 1), (4, 2, 0), (6, 4, 3)]);
        assert_eq!((search.next_equal(0), search.next_equal(4)), (Some(4), None));
        assert_eq!((search.first_of(4), search.first_of(1)), (0, 1));
        assert!(steps < 20, "{steps}");
        assert_eq!((search.depth(node), search.open(node)), (4, 1));
        assert_eq!(search.indifferent(b"xxSh"), 2);
        assert_eq!(search.no_longer(node, 3), search.next(ROOT, b's', &mut 0));
        assert!(Search::over(&[""; 0]).is_none() && Search::over(&["a", ""]).is_none());
    }
}
