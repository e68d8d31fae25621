//! Blocks and directives: the only shape in which configuration exists before it is written.

use super::word::Word;
use model::{Origin, Server, ServerName};

/// The key of what one Ingress says for a host in nginx's own words.
pub(crate) const SERVER_SNIPPET: &str = "server-snippet";

/// Whose something is: an object's, that of one key of it, or what a host as a whole has of a key. It is left out as a
/// whole if nginx does not take it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// The object.
    pub origin: Origin,
    /// The key, where the object is more than that: the ConfigMap, an Ingress of a host.
    pub key: Option<&'static str>,
    /// The host that the key counts for as a whole.
    pub host: Option<ServerName>,
}

impl From<&Origin> for Owner {
    fn from(origin: &Origin) -> Self {
        Self { origin: origin.clone(), key: None, host: None }
    }
}

impl Owner {
    /// A key of the ConfigMap.
    pub fn of_key(origin: &Origin, key: &'static str) -> Self {
        Self { key: Some(key), ..Self::from(origin) }
    }

    /// What a host has of a key. Nobody but a `server-snippet` says any more which Ingress wrote it: it counts as the
    /// first one's.
    pub fn of_host(server: &Server, key: &'static str) -> Option<Self> {
        let raw = server.raw.as_ref().filter(|_| key == SERVER_SNIPPET).map(|raw| &*raw.origin);
        let mut of_paths =
            server.locations.iter().filter_map(|location| location.origin.as_deref());
        let origin = raw.or_else(|| of_paths.next())?;
        Some(Self { host: Some(server.name.clone()), ..Self::of_key(origin, key) })
    }
}

/// The directives of a block, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    nodes: Vec<Node>,
}

/// One thing in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A directive, with the block behind it where it has one.
    Directive(Directive),
    /// Raw configuration of somebody who may write it (snippets), and whose it is.
    Raw {
        /// What it is called: `server-snippet` and the like.
        what: &'static str,
        /// Its text.
        text: String,
        /// Whose it is.
        owner: Option<Owner>,
    },
    /// Directives that are somebody's.
    Owned {
        /// The directives.
        block: Block,
        /// Whose they are.
        owner: Option<Owner>,
    },
    /// A remark of this program.
    Remark(&'static str),
    /// Lua of this program.
    Code(&'static str),
}

/// A directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// Its name: always of this program.
    pub name: Name,
    /// Its parameters.
    pub words: Vec<Word>,
    /// What it encloses.
    pub block: Option<Block>,
    /// Whose it is, where that is not who has what encloses it.
    pub owner: Option<Owner>,
    /// The host that it is the server of.
    pub host: Option<ServerName>,
}

/// The name of a directive: one that this program knows, or the key in a block that is a table (`map`, `geo`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// A directive.
    Known(&'static str),
    /// A key.
    Key(Word),
}

impl Name {
    /// What nginx reads.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(name) => name,
            Self::Key(word) => word.as_str(),
        }
    }
}

impl Block {
    /// Adds a directive without a block.
    pub fn put(&mut self, name: &'static str, words: Vec<Word>) {
        self.push(Name::Known(name), words, None, None);
    }

    /// Adds a line of a table.
    pub fn entry(&mut self, key: Word, words: Vec<Word>) {
        self.push(Name::Key(key), words, None, None);
    }

    /// Adds a directive with a block.
    pub fn open(&mut self, name: &'static str, words: Vec<Word>, block: Self) {
        self.push(Name::Known(name), words, Some(block), None);
    }

    /// Adds a directive with a block that came from an object.
    pub fn open_for(
        &mut self,
        origin: Option<&Origin>,
        name: &'static str,
        words: Vec<Word>,
        block: Self,
    ) {
        self.push(Name::Known(name), words, Some(block), origin.map(Owner::from));
    }

    /// Adds the server of a host.
    pub fn open_server(&mut self, host: &ServerName, block: Self) {
        self.push(Name::Known("server"), Vec::new(), Some(block), None);
        if let Some(Node::Directive(server)) = self.nodes.last_mut() {
            server.host = Some(host.clone());
        }
    }

    /// Adds a directive that is somebody's.
    pub fn put_for(&mut self, owner: Option<Owner>, name: &'static str, words: Vec<Word>) {
        self.push(Name::Known(name), words, None, owner);
    }

    /// Adds raw configuration.
    pub fn raw(&mut self, what: &'static str, text: &str, owner: Option<Owner>) {
        self.nodes.push(Node::Raw { what, text: text.to_owned(), owner });
    }

    /// Adds all of another block as somebody's.
    pub fn append_for(&mut self, owner: Option<Owner>, block: Self) {
        if !block.nodes.is_empty() {
            self.nodes.push(Node::Owned { block, owner });
        }
    }

    /// Adds a remark.
    pub fn remark(&mut self, text: &'static str) {
        self.nodes.push(Node::Remark(text));
    }

    /// Adds Lua: text of this program only.
    pub fn code(&mut self, text: &'static str) {
        self.nodes.push(Node::Code(text));
    }

    /// Adds all of another block.
    pub fn append(&mut self, other: Self) {
        self.nodes.extend(other.nodes);
    }

    /// What is in it.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    fn push(&mut self, name: Name, words: Vec<Word>, block: Option<Self>, owner: Option<Owner>) {
        self.nodes.push(Node::Directive(Directive { name, words, block, owner, host: None }));
    }
}

/// A block of Lua: text of this program only.
pub(crate) fn lua(code: &'static str) -> Block {
    let mut block = Block::default();
    block.code(code);
    block
}

/// `put!(block, "name", words…)`: a directive without a block.
macro_rules! put {
    ($block:expr, $name:literal $(, $word:expr)* $(,)?) => {
        $block.put($name, vec![$($crate::conf::Word::from($word)),*])
    };
}
pub(crate) use put;

/// `words![…]`: parameters.
macro_rules! words {
    ($($word:expr),* $(,)?) => { vec![$($crate::conf::Word::from($word)),*] };
}
pub(crate) use words;
