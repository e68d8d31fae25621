//! Access logs: their lines, whatever packs them, and the records in them.

mod format;
mod json;
mod lines;
mod reading;
mod record;
mod template;
mod values;

pub use format::{DEFAULT, Escape, Format, FormatError};
pub use reading::{LogError, Reading, Seen, is_too_much};
pub use record::Record;

pub(crate) use record::FRAMING;
