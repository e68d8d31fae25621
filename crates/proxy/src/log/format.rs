//! The format of the access log, compiled: what stands between the values is ready to be copied.

use model::{LogFormat, Part, Variable};

/// A format whose texts stand between its values.
#[derive(Debug)]
pub(crate) struct Format {
    /// What comes one after the other.
    pub pieces: Vec<Piece>,
    /// How values are escaped.
    pub escape: Escape,
    /// Bytes of a usual line.
    pub usual: usize,
    /// Whether it is the one that is in force where nobody says another.
    pub is_default: bool,
}

/// A text, and the value behind it.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The text.
    pub text: Text,
    /// The value; none behind the last text.
    pub value: Option<Variable>,
    /// The usual name of the header field that the value is, if it is one.
    pub field: Option<Box<str>>,
}

/// The name of the fields that a variable `$http_…` of this name mostly stands for, if it says them all by their words.
fn usual_field(name: &str) -> Option<String> {
    let is_lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
    is_lower.then(|| name.replace('_', "-"))
}

impl Piece {
    fn new(text: &[u8], value: Option<Variable>) -> Self {
        let field = match &value {
            Some(Variable::RequestHeader(name)) => usual_field(name).map(Into::into),
            _ => None,
        };
        Self { text: Text::new(text), value, field }
    }
}

/// What stands between values: mostly a blank or a quote.
#[derive(Debug)]
pub(crate) enum Text {
    /// Up to eight bytes, and how many they are.
    Short([u8; 8], usize),
    /// More than that.
    Long(Box<[u8]>),
}

impl Text {
    fn new(text: &[u8]) -> Self {
        let mut short = [0; 8];
        match short.get_mut(..text.len()) {
            Some(room) => {
                room.copy_from_slice(text);
                Self::Short(short, text.len())
            }
            None => Self::Long(text.into()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Short(_, length) => *length,
            Self::Long(text) => text.len(),
        }
    }

    /// Appends it to a line. Eight bytes are one copy without a call, however many of them count.
    #[inline]
    pub(crate) fn append(&self, line: &mut Vec<u8>) {
        match self {
            Self::Short(text, length) => {
                let end = line.len() + length;
                line.extend_from_slice(text);
                line.truncate(end);
            }
            Self::Long(text) => line.extend_from_slice(text),
        }
    }
}

/// How values are escaped (nginx: `log_format … escape=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    /// What cannot be printed is `\xXX`, nothing is `-`.
    Usual,
    /// As in a JSON string.
    Json,
    /// Not at all.
    Nothing,
}

/// Bytes of a value, as a rule.
const VALUE: usize = 24;

impl Format {
    /// What a Configuration says. A capture of a location is nothing in a log.
    pub(crate) fn new(format: &LogFormat) -> Self {
        let escape = match format {
            LogFormat { unescaped: true, .. } => Escape::Nothing,
            LogFormat { json: true, .. } => Escape::Json,
            LogFormat { .. } => Escape::Usual,
        };
        let mut pieces = Vec::new();
        let mut text = Vec::new();
        for part in format.template.parts() {
            match part {
                Part::Text(literal) => text.extend_from_slice(literal.as_bytes()),
                Part::Capture(_) => {}
                Part::Variable(variable) => {
                    pieces.push(Piece::new(&text, Some(variable.clone())));
                    text.clear();
                }
            }
        }
        if !text.is_empty() {
            pieces.push(Piece::new(&text, None));
        }
        let usual = pieces.iter().map(|piece| piece.text.len() + VALUE).sum();
        Self { pieces, escape, usual, is_default: *format == LogFormat::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Escape, Format, Piece};
    use model::{LogFormat, Template, Variable};

    #[test]
    fn texts_stand_before_their_values() {
        let text = "$1[$status]$body_bytes_sent $1end of line$request";
        let template = Template::parse(text).expect("variables");
        let format = LogFormat { template, json: false, unescaped: false };
        let Format { pieces, escape, .. } = Format::new(&format);
        let pieces = pieces.into_iter().map(|Piece { text, value, .. }| {
            let mut line = b"before".to_vec();
            text.append(&mut line);
            (String::from_utf8(line), value)
        });
        let pieces: Vec<_> = pieces.collect();
        let line = |text: &str| Ok(format!("before{text}"));
        let expected = [
            (line("["), Some(Variable::Status)),
            (line("]"), Some(Variable::BodyBytesSent)),
            (line(" end of line"), Some(Variable::Request)),
        ];
        assert_eq!(pieces, expected);
        assert_eq!(escape, Escape::Usual);
        assert_eq!(Format::new(&LogFormat { json: true, ..format }).escape, Escape::Json);
    }
}
