//! Where something stands in a value as it was written: annotations are read without the space around their lines.

use model::snippet::Position;

/// Lines of a value as it was written, gone through once however much is to be said of it.
#[derive(Debug)]
pub(super) struct Lines {
    /// Empty lines before what is read.
    above: usize,
    /// Characters before what is read of each line.
    before: Vec<u32>,
}

impl Lines {
    /// Those of `written`.
    pub(super) fn of(written: &str) -> Self {
        let start = written.len() - written.trim_start().len();
        let space = |line: &str| line.chars().take_while(|one| one.is_whitespace()).count();
        Self {
            above: written[..start].matches('\n').count(),
            before: written.lines().map(|line| number(space(line))).collect(),
        }
    }

    /// The place of a place in the same text without the space around it and around each line.
    pub(super) fn as_written(&self, at: Position) -> Position {
        let line = at.line as usize + self.above;
        let before = self.before.get(line.saturating_sub(1)).copied().unwrap_or_default();
        Position { line: number(line), column: at.column.saturating_add(before) }
    }
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::Lines;
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
            assert_eq!(Lines::of(written).as_written(of(&text)), of(written), "{written:?}");
        }
    }
}
