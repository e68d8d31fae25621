//! What commands print.

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
