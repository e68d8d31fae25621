//! Header fields that configuration sets.

use crate::{Secret, Template};
use serde::Serialize;

/// A header field and its value. A value that turns out empty removes the field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SetHeader {
    /// The name, as written: letters, digits, `-` and `_`.
    pub name: String,
    /// The value; its literals hold no control characters.
    pub value: Secret<Template>,
}
