//! A mistake on the command line as one line.

use clap::Error;
use clap::error::{ContextKind, ErrorKind};

/// What is wrong and what to write instead. Nothing for what is no mistake: `--help`.
pub(super) fn line(error: &Error) -> Option<String> {
    let context = |kind| error.get(kind).map(ToString::to_string);
    let near = |kind| {
        let near = context(kind).map(|near| format!("; did you mean {near}?"));
        let list = match kind {
            ContextKind::SuggestedSubcommand => "fairway help",
            _ => "fairway run --help",
        };
        near.unwrap_or_else(|| format!("; `{list}` lists what there is"))
    };
    Some(match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => return None,
        ErrorKind::UnknownArgument => {
            let flag = context(ContextKind::InvalidArg).unwrap_or_default();
            format!("there is no flag {flag}{}", near(ContextKind::SuggestedArg))
        }
        ErrorKind::InvalidSubcommand => {
            let command = context(ContextKind::InvalidSubcommand).unwrap_or_default();
            format!("there is no command {command}{}", near(ContextKind::SuggestedSubcommand))
        }
        _ => first_paragraph(&error.render().to_string()),
    })
}

/// clap's own words, without the usage below them.
fn first_paragraph(text: &str) -> String {
    let text = text.split("\n\nUsage:").next().unwrap_or_default();
    let text = text.split("\n\nFor more information").next().unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}
