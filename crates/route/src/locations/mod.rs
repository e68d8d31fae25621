//! Which location of a host answers a path: plain hosts by longest prefix, regex hosts by the first match.

mod own;
mod patterns;
mod prefixes;
#[cfg(test)]
mod tests;

use crate::path::Canonical;
use model::{Server, Steps};
use own::Mixed;
pub use own::Own;
use patterns::Patterns;
use prefixes::Prefixes;

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// To a location.
    Location {
        /// Its place in [`Server::locations`], or the number of an [`Own`].
        index: usize,
    },
    /// To a location only once a slash is added: 301 to the path with `/`.
    AddSlash {
        /// Its place in [`Server::locations`].
        index: usize,
    },
    /// Nobody knows: this pattern, or those before it, took all steps that the request had.
    TooHard {
        /// Its place in [`Server::locations`].
        index: usize,
    },
    /// Nowhere.
    None,
}

/// The locations of one server, compiled for matching (compat/behaviour.md section 5).
#[derive(Debug)]
pub struct Locations {
    matcher: Matcher,
}

#[derive(Debug)]
enum Matcher {
    Prefixes(Prefixes),
    Patterns(Patterns),
    Mixed(Box<Mixed>),
}

impl Locations {
    /// Compiles the locations of `server`. In regex mode a path that is no valid pattern matches nothing.
    pub fn compile(server: &Server) -> Self {
        let matcher = if server.regex {
            Matcher::Patterns(Patterns::compile(&server.locations))
        } else {
            Matcher::Prefixes(Prefixes::compile(&server.locations))
        };
        Self { matcher }
    }

    /// The same with the locations that snippets have.
    pub fn with_own(self, server: &Server, own: &[Own]) -> Self {
        if own.is_empty() {
            return self;
        }
        Self { matcher: Matcher::Mixed(Box::new(Mixed::new(self.matcher, &server.locations, own))) }
    }

    /// What `path` leads to; patterns take their steps from those of the request.
    pub fn find(&self, path: &Canonical<'_>, steps: &Steps) -> Found {
        self.matcher.find(path, steps)
    }
}

impl Matcher {
    fn find(&self, path: &Canonical<'_>, steps: &Steps) -> Found {
        match self {
            Self::Prefixes(prefixes) => prefixes.find(&path.path),
            Self::Patterns(patterns) => patterns.find(path, steps),
            Self::Mixed(mixed) => mixed.find(path, steps),
        }
    }
}
