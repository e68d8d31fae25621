//! Where something stands in a value as it was written: annotations are read without the space around their lines.

use model::snippet::Position;

/// The place in `written` of a place in the same text without the space around it and around each line.
pub(super) fn as_written(written: &str, at: Position) -> Position {
    let start = written.len() - written.trim_start().len();
    let above = written[..start].matches('\n').count();
    let line = at.line as usize + above;
    let before = written
        .lines()
        .nth(line.saturating_sub(1))
        .map_or(0, |line| line.chars().take_while(|character| character.is_whitespace()).count());
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    Position { line: number(line), column: at.column.saturating_add(number(before)) }
}

#[cfg(test)]
mod tests {
    use super::as_written;
    use crate::settings::normalise;
    use model::snippet::Position;

    #[test]
    fn what_is_wrong_is_where_its_author_sees_it() {
        for written in ["a;\n  b;\nX", "\n\n  a;\r\n\tb;\r\n  X;\n", "  X", "\n\u{a0} \u{e9} X"] {
            let text = normalise(written);
            let of = |text: &str| {
                let (line, content) =
                    text.lines().enumerate().find(|(_, line)| line.contains('X')).expect("an X");
                let column = content.chars().position(|character| character == 'X').expect("an X");
                let number = |value: usize| u32::try_from(value + 1).expect("it is small");
                Position { line: number(line), column: number(column) }
            };
            assert_eq!(as_written(written, of(&text)), of(written), "{written:?}");
        }
    }
}
