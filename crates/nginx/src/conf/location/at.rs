//! What a policy sees of the location that it writes to.

use super::super::{Block, Scope};
use model::{Location, Server};
use std::collections::BTreeSet;

/// Where policies write to.
pub(in crate::conf) struct At<'a, 'b> {
    pub(in crate::conf) scope: &'b mut Scope<'a>,
    pub(in crate::conf) server: &'b Server,
    pub(in crate::conf) location: &'b Location,
    /// Its place among the locations of the server.
    pub(in crate::conf) index: usize,
    /// The location.
    pub(in crate::conf) block: Block,
    /// What stands beside it in the server: locations of its own requests.
    pub(in crate::conf) beside: &'b mut Beside,
}

/// Further locations of a server, each once.
#[derive(Debug, Default)]
pub(in crate::conf) struct Beside {
    names: BTreeSet<String>,
    pub(in crate::conf) block: Block,
}

impl Beside {
    /// Whether a location of this name is new.
    pub(in crate::conf) fn is_new(&mut self, name: &str) -> bool {
        self.names.insert(name.to_owned())
    }
}
