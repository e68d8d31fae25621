//! `block-cidrs`, `block-user-agents` and `block-referers`: requests that no server answers.

use crate::{Networks, Pattern, Steps};
use serde::Serialize;
use std::collections::BTreeSet;

/// Requests that are refused whatever they ask for (compat/behaviour.md section 13).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Block {
    /// By the client's address, in locations that have no address list of their own.
    pub addresses: Networks,
    /// By User-Agent.
    pub user_agents: BlockList,
    /// By Referer.
    pub referers: BlockList,
}

/// Values of a header, as the keys of nginx's `map` are written (ngx_http_map_module).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockList {
    /// Whole values, in lower case; the empty one stands for a header that is not there, too.
    pub values: BTreeSet<String>,
    /// What is found anywhere in a value.
    pub patterns: Vec<Pattern>,
}

impl Block {
    /// Whether no header has anything refused.
    pub fn has_no_headers(&self) -> bool {
        self.user_agents.is_empty() && self.referers.is_empty()
    }
}

impl BlockList {
    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.patterns.is_empty()
    }

    /// Whether a value is in it; an empty one is none for patterns (ngx_http_map_find). What is too hard for a pattern
    /// to tell counts as found.
    pub fn has(&self, value: &[u8], steps: &Steps) -> bool {
        let found = |pattern: &Pattern| pattern.try_match(value, steps).unwrap_or(true);
        let is_one = |text: &str| self.values.contains(&text.to_ascii_lowercase());
        std::str::from_utf8(value).is_ok_and(is_one)
            || (!value.is_empty() && self.patterns.iter().any(found))
    }
}

#[cfg(test)]
mod tests {
    use super::BlockList;
    use crate::{Pattern, Steps};

    #[test]
    fn a_byte_that_is_no_text_hides_nothing_beside_it() {
        let pattern = |text: &str| Pattern::new(text, true).expect("an expression");
        let patterns = vec![pattern("evil.bot"), pattern(r"\xf6bot")];
        let list = BlockList { values: ["bad".to_owned()].into(), patterns };
        let steps = Steps::new(10_000);
        for value in [&b"evil\xffbot"[..], b"\xf6bot", b"BAD"] {
            assert!(list.has(value, &steps), "{}", value.escape_ascii());
        }
        for value in [&b"good\xff"[..], b"bad\xff", b""] {
            assert!(!list.has(value, &steps), "{}", value.escape_ascii());
        }
    }
}
