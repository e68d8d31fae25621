//! A strict reader of HTTP/1 messages: what two readers could understand differently is refused, and what is legal
//! but not the one canonical form is noted as a blemish.

mod body;
mod head;
mod request;
mod response;
#[cfg(test)]
mod tests;

pub use request::{Request, read_request};
pub use response::{Response, read_response};

/// What the bytes so far amount to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read<T> {
    /// A message and the number of bytes that it took.
    Whole(T, usize),
    /// A legal beginning; true once the head is complete.
    More {
        /// The head has been read, the body is not complete.
        head: bool,
    },
    /// No strict reader takes this.
    Illegal(String),
}

/// Name in lower case, and value.
pub type Field = (String, Vec<u8>);

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

/// All values of a field.
pub fn values<'a>(fields: &'a [Field], name: &str) -> Vec<&'a [u8]> {
    fields.iter().filter(|(n, _)| n == name).map(|(_, value)| value.as_slice()).collect()
}

/// Bytes as the report shows them.
pub fn show(bytes: &[u8]) -> String {
    const SHOWN: usize = 60;
    let cut = if bytes.len() > SHOWN { "..." } else { "" };
    format!("{}{cut}", bytes[..bytes.len().min(SHOWN)].escape_ascii())
}
