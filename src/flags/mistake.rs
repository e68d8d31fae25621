//! A mistake on the command line as one line.

use clap::Error;
use clap::error::{ContextKind, ErrorKind};
use std::path::Path;

/// What is wrong and what to write instead. Nothing for what is no mistake: `--help`.
pub(super) fn line(error: &Error) -> Option<String> {
    let context = |kind| error.get(kind).map(ToString::to_string);
    let flag = context(ContextKind::InvalidArg).unwrap_or_default();
    let near = |kind| {
        let near = context(kind).map(|near| near.replace('_', "-"));
        let near = near.filter(|near| kind != ContextKind::SuggestedArg || is_near(&flag, near));
        let near = near.map(|near| format!("; did you mean {near}?"));
        let list = command(context(ContextKind::Usage)).map_or_else(
            || "fairway help".to_owned(),
            |command| format!("fairway {command} --help"),
        );
        near.unwrap_or_else(|| format!("; `{list}` lists what there is"))
    };
    Some(match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => return None,
        // Other commands take folders as they are.
        ErrorKind::UnknownArgument
            if Path::new(&flag).exists()
                && command(context(ContextKind::Usage)).as_deref() == Some("explain") =>
        {
            format!("there is no place for {flag}; write --manifests {flag}")
        }
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

/// The command at hand, by the usage that clap would print: `Usage: fairway check …`, whatever the file is called. None
/// before there is one, as where kubectl's plugin has a flag first.
fn command(usage: Option<String>) -> Option<String> {
    let usage = usage?;
    let is_name = |word: &&str| {
        !word.starts_with('-') && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
    };
    let words: Vec<&str> = usage.split_whitespace().skip(2).take_while(is_name).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// clap's own words, without the usage below them.
fn first_paragraph(text: &str) -> String {
    let text = text.split("\n\nUsage:").next().unwrap_or_default();
    let text = text.split("\n\nFor more information").next().unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_folder_behind_the_url_is_told_its_flag() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().to_str().expect("a path");
        let arguments = ["fairway", "explain", "http://a.test/", folder];
        let error = crate::flags::command().try_get_matches_from(arguments);
        let line = line(&error.expect_err("a mistake")).expect("a line");
        assert!(line.ends_with(&format!("; write --manifests {folder}")), "{line}");
    }

    #[test]
    fn the_command_at_hand_is_named_whatever_the_program_is_called() {
        for (arguments, wanted) in [
            (&["kubectl-fairway", "check", "--zzz"][..], "`fairway check --help`"),
            (&["kubectl-fairway", "--zzz"], "`fairway help`"),
            (&["another-name", "explain", "--zzz"], "`fairway explain --help`"),
            (&["fairway", "dbg", "certs", "list"], "`fairway dbg certs --help`"),
        ] {
            let error = crate::flags::command().try_get_matches_from(arguments);
            let line = line(&error.expect_err("a mistake"));
            assert!(line.as_ref().is_some_and(|line| line.contains(wanted)), "{line:?}");
        }
    }
}
