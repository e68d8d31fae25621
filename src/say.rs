//! What commands print: their results to standard output, how it goes to standard error.

use anyhow::{Context, Result};
use model::{Printable, is_unprintable};
use std::fmt::Display;
use std::io::{ErrorKind, Write};

/// Prints a text as it is. Whoever has read enough (`| head`) is no mistake: the command goes on to its exit code.
pub(crate) fn text(text: impl Display) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Prints one line, whatever texts of objects are in it.
pub(crate) fn line(line: impl Display) -> Result<()> {
    text(format_args!("{}\n", Printable(&line.to_string())))
}

/// Prints JSON, in which what would move a terminal's cursor is escaped: programs read the same.
pub(crate) fn json(json: &str) -> Result<()> {
    let mut out = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '\n' => out.push(letter),
            letter if is_unprintable(letter) => {
                for unit in letter.encode_utf16(&mut [0; 2]).iter() {
                    out += &format!("\\u{unit:04x}");
                }
            }
            letter => out.push(letter),
        }
    }
    text(format_args!("{out}\n"))
}

/// Writes to standard error, as `eprint!` does. Nobody who has closed it is a reason to stop, with or without a panic.
macro_rules! aside {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        drop(write!(std::io::stderr(), $($text)*));
    }};
}

/// The same for one line, whatever texts of objects are in it.
macro_rules! note {
    () => { $crate::say::aside!("\n") };
    ($format:literal $($text:tt)*) => {
        $crate::say::aside!("{}\n", model::Printable(&format!($format $($text)*)))
    };
}

pub(crate) use {aside, note};
