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
}

/// A text, and the value behind it.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The text; mostly a blank or a quote.
    pub text: Box<[u8]>,
    /// The value; none behind the last text.
    pub value: Option<Variable>,
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
            LogFormat { raw: true, .. } => Escape::Nothing,
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
                    let text = std::mem::take(&mut text).into();
                    pieces.push(Piece { text, value: Some(variable.clone()) });
                }
            }
        }
        if !text.is_empty() {
            pieces.push(Piece { text: text.into(), value: None });
        }
        let usual = pieces.iter().map(|piece| piece.text.len() + VALUE).sum();
        Self { pieces, escape, usual }
    }
}

#[cfg(test)]
mod tests {
    use super::{Escape, Format};
    use model::{LogFormat, Template, Variable};

    #[test]
    fn texts_stand_before_their_values() {
        let template = Template::parse("$1[$status]$body_bytes_sent $1end").expect("variables");
        let format = LogFormat { template, json: false, raw: false };
        let Format { pieces, escape, .. } = Format::new(&format);
        let pieces: Vec<(&[u8], Option<Variable>)> =
            pieces.iter().map(|piece| (&*piece.text, piece.value.clone())).collect();
        let expected = [
            (&b"["[..], Some(Variable::Status)),
            (b"]", Some(Variable::BodyBytesSent)),
            (b" end", None),
        ];
        assert_eq!(pieces, expected);
        assert_eq!(escape, Escape::Usual);
        assert_eq!(Format::new(&LogFormat { json: true, ..format }).escape, Escape::Json);
    }
}
