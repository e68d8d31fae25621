//! What the program is meant to do by the name it is started under, before any flag is read.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The name of ingress-nginx's program, which manifests start with flags alone.
const CONTROLLER: &str = "nginx-ingress-controller";
/// The name of its preStop hook.
const HOOK: &str = "wait-shutdown";
/// What is asked of the program as a whole.
const GENERAL: [&str; 4] = ["--help", "-h", "-V", "help"];

/// The arguments with the command that they imply. Flags alone mean `run`, and so does the name
/// `nginx-ingress-controller` whatever follows. That name may also be the first argument: charts list the whole command
/// as arguments, for an image whose entrypoint runs them.
pub(crate) fn with_command(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.get(1).is_some_and(|first| is_path(first) && implied(first).is_some()) {
        arguments.remove(0);
    }
    let program = if arguments.is_empty() { "fairway".into() } else { arguments.remove(0) };
    let first = arguments.first().and_then(|first| first.to_str());
    let is_flag = |first: &str| first.starts_with('-') && !GENERAL.contains(&first);
    let command = implied(&program).or_else(|| first.filter(|first| is_flag(first)).map(|_| "run"));
    let repeated = command.is_some() && first == command;
    let command = command.filter(|_| !repeated).map(OsString::from);
    std::iter::once(program).chain(command).chain(arguments).collect()
}

/// Whether a process with these arguments is a controller, rather than a tool that runs beside it.
pub(crate) fn means_run(arguments: Vec<OsString>) -> bool {
    with_command(arguments).get(1).is_some_and(|command| command == "run")
}

fn is_path(argument: &OsStr) -> bool {
    argument.as_encoded_bytes().contains(&b'/')
}

fn implied(program: &OsStr) -> Option<&'static str> {
    match Path::new(program).file_name()?.to_str()? {
        CONTROLLER => Some("run"),
        HOOK => Some("wait-shutdown"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{means_run, with_command};
    use std::ffi::OsString;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').filter(|word| !word.is_empty()).map(OsString::from).collect()
    }

    #[test]
    fn names_and_flags_imply_their_command() {
        for (line, meant) in [
            ("fairway --v=2", "fairway run --v=2"),
            ("fairway --version", "fairway run --version"),
            ("fairway check .", "fairway check ."),
            ("fairway", "fairway"),
            ("fairway --help", "fairway --help"),
            ("/nginx-ingress-controller", "/nginx-ingress-controller run"),
            ("nginx-ingress-controller --help", "nginx-ingress-controller run --help"),
            ("nginx-ingress-controller run -v=2", "nginx-ingress-controller run -v=2"),
            ("/fairway /nginx-ingress-controller --v=2", "/nginx-ingress-controller run --v=2"),
            ("/wait-shutdown", "/wait-shutdown wait-shutdown"),
            ("/wait-shutdown --timeout=5", "/wait-shutdown wait-shutdown --timeout=5"),
            ("/fairway /wait-shutdown", "/wait-shutdown wait-shutdown"),
            ("fairway wait-shutdown", "fairway wait-shutdown"),
            ("", "fairway"),
        ] {
            assert_eq!(with_command(words(line)), words(meant), "{line:?}");
        }
        assert!(means_run(words("/fairway --v=2")) && means_run(words("/fairway run")));
        assert!(!means_run(words("/fairway check")) && !means_run(words("/wait-shutdown")));
    }
}
