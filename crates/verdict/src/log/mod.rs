//! Access logs: their lines, whatever packs them, and the records in them.

mod format;
mod json;
mod lines;
mod record;
mod values;

pub use format::{DEFAULT, Escape, Format, FormatError};
pub use lines::{LONGEST, Line, Lines, open};
pub use record::Record;
