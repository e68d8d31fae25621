//! From a Configuration to nginx.conf. Values become text in one function (`quote`), blocks are built as a tree, and
//! each policy has a file of its own name in `policy/`.

mod environment;
mod fingerprint;
mod http;
mod location;
mod log_target;
mod one_line;
mod pattern;
mod policy;
mod quote;
mod scope;
mod server;
mod snippet;
mod templates;
mod text;
mod tree;
mod upstream;
mod variables;
mod whole;
mod word;

pub use environment::Environment;
pub(crate) use fingerprint::fingerprint;
pub(crate) use location::{Had, had_by_texts, has_location_of_all, with_location_of_all};
pub(crate) use policy::global::{entry as entry_of_name, names as table_of_names};
pub(crate) use policy::limits::taken as taken_by_limits;
pub use quote::quote;
pub(crate) use scope::Scope;
pub(crate) use server::{ALIASES, APP_ROOT, CIPHERS, CLIENT_CERTIFICATE, HOST};
pub(crate) use templates::text_of_key;
pub use text::{Text, Unwritable};
pub(crate) use tree::SERVER_SNIPPET;
pub use tree::{Block, Directive, Name, Node, Owner};
pub use whole::{Written, idle, write, write_closing};
pub use word::Word;
