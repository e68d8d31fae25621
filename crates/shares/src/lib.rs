//! What many share: a value that is made once for all who hold it, and the lines of the log that each may write in a
//! minute.

mod lines;
mod weak_map;

pub use lines::{Line, Lines, LinesOf, MINUTE};
pub use weak_map::{ByAddress, WeakMap};
