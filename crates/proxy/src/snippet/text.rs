//! Values of fields that snippets set, prepared once for each generation.

use bytes::Bytes;
use model::snippet::Template;
use snippet::run::Exceeded;
use std::borrow::Cow;

/// What a program made of a request, as the bytes that it was made of ([`model::text_of_bytes`]).
pub(crate) fn bytes_of(text: String) -> Bytes {
    match route::path::bytes(&text) {
        Cow::Owned(bytes) => bytes.into(),
        Cow::Borrowed(_) => text.into(),
    }
}

/// The value of a field; one without variables is ready to be written.
#[derive(Debug)]
pub(crate) enum Text {
    /// As it is.
    Plain(Bytes),
    /// To be filled in for each request.
    Filled(Template),
}

impl Text {
    /// Prepares a text. What would end a line is left to [`snippet::run::Machine::expand_header`], which escapes it.
    pub(crate) fn new(template: &Template) -> Self {
        match template.literal() {
            Some(text) if !text.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') => {
                Self::Plain(Bytes::copy_from_slice(text.as_bytes()))
            }
            _ => Self::Filled(template.clone()),
        }
    }

    /// Whether every request has the same.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    /// The value for a request.
    pub(crate) fn value(&self, fill: &mut dyn Fill) -> Result<Bytes, Exceeded> {
        match self {
            Self::Plain(plain) => Ok(plain.clone()),
            Self::Filled(template) => fill.header(template),
        }
    }
}

/// What fills texts in for a request.
pub(crate) trait Fill {
    /// The text as a field may have it: nothing in it ends the line.
    fn header(&mut self, template: &Template) -> Result<Bytes, Exceeded>;
}

impl<R: snippet::run::Request> Fill for snippet::run::Machine<'_, R> {
    fn header(&mut self, template: &Template) -> Result<Bytes, Exceeded> {
        Ok(self.expand_header(template)?.into())
    }
}

/// Where every text is plain: nothing is ever filled in, so no machine is needed.
#[derive(Debug)]
pub(crate) struct AllPlain;

impl Fill for AllPlain {
    fn header(&mut self, _: &Template) -> Result<Bytes, Exceeded> {
        Err(Exceeded)
    }
}
