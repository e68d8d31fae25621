//! From a Configuration to nginx.conf. Values become text in one function (`quote`), blocks are built as a tree, and
//! each policy has a file of its own name in `policy/`.

mod http;
mod location;
mod pattern;
mod place;
mod policy;
mod quote;
mod server;
mod snippet;
mod text;
mod tree;
mod variables;
mod whole;
mod word;

pub use place::Place;
pub use quote::quote;
pub(crate) use server::{ALIASES, APP_ROOT, CIPHERS, CLIENT_CERTIFICATE};
pub use text::{Text, Unwritable};
pub use tree::{Block, Directive, Name, Node, Owner};
pub use whole::{idle, write, write_closing};
pub use word::Word;

use aws_lc_rs::digest::{SHA256, digest};
use model::{Configuration, Origin};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What nginx reads: nginx.conf and the files beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// nginx.conf.
    pub text: Text,
    /// Files that it names, by their names in [`Place::files`]: certificates, keys, passwords.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// What is gathered for the block `http` while servers and locations are written.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) place: &'a Place,
    pub(crate) configuration: &'a Configuration,
    /// The Ingresses whose paths nginx does not take as they are.
    pub(crate) closed: &'a BTreeSet<Origin>,
    /// Blocks `upstream`, by name: one for each way to speak TLS.
    pub(crate) upstreams: BTreeMap<String, Block>,
    /// Whatever else locations declare once (`geo`, `map`, zones), by what it is about.
    pub(crate) declared: BTreeMap<String, Block>,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(
        place: &'a Place,
        configuration: &'a Configuration,
        closed: &'a BTreeSet<Origin>,
    ) -> Self {
        Self {
            place,
            configuration,
            closed,
            upstreams: BTreeMap::new(),
            declared: BTreeMap::new(),
            files: BTreeMap::new(),
        }
    }

    /// Keeps a file; the parameter that names it. Its name says what is in it, so a file never changes.
    pub(crate) fn file(&mut self, ending: &str, content: Vec<u8>) -> Word {
        let name = format!("{}.{ending}", fingerprint(&content));
        let path = self.place.files().join(&name);
        self.files.insert(name, content);
        Word::from(path.as_path())
    }
}

/// A short name for some bytes: 24 hexadecimal digits that nobody finds a second time.
pub(crate) fn fingerprint(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    digest.as_ref()[..12].iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
