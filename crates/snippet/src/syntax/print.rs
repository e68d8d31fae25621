//! A tree as text that means it again.

use super::{Block, Directive};

/// Writes `directives`, one to a line, every word in quotes that needs them.
pub fn print(directives: &[Directive]) -> String {
    let mut text = String::new();
    write_all(&mut text, directives, 0);
    text
}

fn write_all(text: &mut String, directives: &[Directive], depth: usize) {
    for directive in directives {
        indent(text, depth);
        for (index, word) in directive.words.iter().enumerate() {
            if index > 0 {
                text.push(' ');
            }
            write_word(text, &word.text);
        }
        match &directive.block {
            None => text.push_str(";\n"),
            Some(Block::Foreign(program)) => {
                text.push_str(" {");
                text.push_str(program);
                text.push_str("}\n");
            }
            Some(Block::Directives(directives)) => {
                text.push_str(" {\n");
                write_all(text, directives, depth + 1);
                indent(text, depth);
                text.push_str("}\n");
            }
        }
    }
}

fn indent(text: &mut String, depth: usize) {
    text.extend(std::iter::repeat_n("  ", depth));
}

fn write_word(text: &mut String, word: &str) {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=~*^,@%+?!|".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return text.push_str(word);
    }
    text.push('"');
    for c in word.chars() {
        if matches!(c, '"' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('"');
}
