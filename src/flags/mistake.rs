//! A mistake on the command line as one line.

use clap::Error;
use clap::error::{ContextKind, ErrorKind};

/// What is wrong and what to write instead. Nothing for what is no mistake: `--help`.
pub(super) fn line(error: &Error) -> Option<String> {
    let context = |kind| error.get(kind).map(ToString::to_string);
    let flag = context(ContextKind::InvalidArg).unwrap_or_default();
    let near = |kind| {
        let near = context(kind).map(|near| near.replace('_', "-"));
        let near = near.filter(|near| kind != ContextKind::SuggestedArg || is_near(&flag, near));
        let near = near.map(|near| format!("; did you mean {near}?"));
        let list = match kind {
            ContextKind::SuggestedSubcommand => "fairway help".to_owned(),
            _ => format!("fairway {} --help", command(context(ContextKind::Usage))),
        };
        near.unwrap_or_else(|| format!("; `{list}` lists what there is"))
    };
    Some(match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => return None,
        ErrorKind::UnknownArgument => {
            let what =
                if flag.starts_with('-') { "there is no flag" } else { "there is no place for" };
            format!("{what} {flag}{}", near(ContextKind::SuggestedArg))
        }
        ErrorKind::InvalidSubcommand => {
            let command = context(ContextKind::InvalidSubcommand).unwrap_or_default();
            // Of a command that `help` is asked about clap suggests nothing, but where it stands alone.
            let alone = error.get(ContextKind::SuggestedSubcommand).is_none();
            let alone = alone.then(|| super::command().try_get_matches_from(["fairway", &command]));
            let meant = alone.and_then(Result::err).and_then(|error| {
                error.get(ContextKind::SuggestedSubcommand).map(ToString::to_string)
            });
            let near = meant.map_or_else(
                || near(ContextKind::SuggestedSubcommand),
                |meant| format!("; did you mean {meant}?"),
            );
            format!("there is no command {command}{near}")
        }
        _ => first_paragraph(&error.render().to_string()),
    })
}

/// Whether one flag may have been meant by the other; clap suggests those that only begin alike, too.
fn is_near(flag: &str, near: &str) -> bool {
    flag.len().abs_diff(near.len()) <= flag.len().max(near.len()) / 3
}

/// The command at hand, by the usage that clap would print: `Usage: fairway check …`.
fn command(usage: Option<String>) -> String {
    let usage = usage.unwrap_or_default();
    let mut words = usage.split_whitespace().skip_while(|word| *word != "fairway").skip(1);
    let is_name = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    words.next().filter(is_name).unwrap_or("run").to_owned()
}

/// clap's own words, without the usage below them.
fn first_paragraph(text: &str) -> String {
    let text = text.split("\n\nUsage:").next().unwrap_or_default();
    let text = text.split("\n\nFor more information").next().unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}
