//! What is gathered for the block `http` while servers and locations are written.

use super::location::{self, Name};
use super::{Block, Environment, Word, fingerprint};
use model::{Configuration, Origin};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// What is gathered for the block `http` while servers and locations are written.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) configuration: &'a Configuration,
    /// The Ingresses whose paths nginx does not take as they are.
    pub(crate) closed: &'a BTreeSet<Origin>,
    /// The locations that a text of the ConfigMap has in every server.
    pub(super) of_all: HashSet<Name>,
    /// Blocks `upstream`, by name: one for each way to speak TLS.
    pub(crate) upstreams: BTreeMap<String, Block>,
    /// Whatever else locations declare once (`geo`, `map`, zones), by what it is about.
    pub(crate) declared: BTreeMap<String, Block>,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// Folders of what authenticators said, by their names in the folder for them.
    pub(crate) remembered: BTreeSet<String>,
    /// Variables of snippets that templates have.
    pub(crate) of_snippets: BTreeSet<String>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(
        environment: &'a Environment,
        configuration: &'a Configuration,
        closed: &'a BTreeSet<Origin>,
    ) -> Self {
        Self {
            environment,
            configuration,
            closed,
            of_all: location::of_all(configuration),
            upstreams: BTreeMap::new(),
            declared: BTreeMap::new(),
            files: BTreeMap::new(),
            remembered: BTreeSet::new(),
            of_snippets: BTreeSet::new(),
        }
    }

    /// Keeps a file; the parameter that names it. Its name says what is in it, so a file never changes.
    pub(crate) fn file(&mut self, ending: &str, content: Vec<u8>) -> Word {
        let name = format!("{}.{ending}", fingerprint(&content));
        let path = self.environment.files().join(&name);
        self.files.insert(name, content);
        Word::from(path.as_path())
    }
}
