//! What commands print: their results to standard output, how it goes to standard error.

use anyhow::{Context, Result};
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

/// Prints a line.
pub(crate) fn line(line: impl Display) -> Result<()> {
    text(format_args!("{line}\n"))
}

/// Writes to standard error, as `eprint!` does. Nobody who has closed it is a reason to stop, with or without a panic.
macro_rules! aside {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        drop(write!(std::io::stderr(), $($text)*));
    }};
}

/// The same for a line.
macro_rules! note {
    () => { $crate::say::aside!("\n") };
    ($format:literal $($text:tt)*) => { $crate::say::aside!("{}\n", format_args!($format $($text)*)) };
}

pub(crate) use {aside, note};
