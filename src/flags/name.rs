//! What the program is meant to do by the name it is started under, before any flag is read.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The name of this program.
const PROGRAM: &str = "fairway";
/// The name of ingress-nginx's program, which manifests start with flags alone.
const CONTROLLER: &str = "nginx-ingress-controller";
/// The name of its preStop hook.
const HOOK: &str = "wait-shutdown";
/// The name of what its kubectl plugin runs in Pods.
const INSPECTOR: &str = "dbg";
/// How names of kubectl's plugins begin: a person types there, and nobody means a controller.
const PLUGIN: &str = "kubectl-";
/// What is asked of the program as a whole.
const GENERAL: [&str; 4] = ["--help", "-h", "-V", "help"];

/// The arguments with the command that they imply. Flags alone mean `run`, but for kubectl's plugin, and so does
/// the name `nginx-ingress-controller` whatever follows. That name may also be the first argument: charts list the
/// whole command as arguments, for an image whose entrypoint runs them.
pub(crate) fn with_command(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.get(1).is_some_and(|first| is_path(first) && implied(first).is_some()) {
        arguments.remove(0);
    }
    let program = if arguments.is_empty() { PROGRAM.into() } else { arguments.remove(0) };
    let first = arguments.first().and_then(|first| first.to_str());
    let is_flag = |first: &str| first.starts_with('-') && !GENERAL.contains(&first);
    let flags_alone =
        || first.filter(|first| is_flag(first) && !is_plugin(&program)).map(|_| "run");
    let command = implied(&program).or_else(flags_alone);
    let repeated = command.is_some() && first == command;
    let command = command.filter(|_| !repeated).map(OsString::from);
    // A name that says the command would be told twice: `Usage: dbg dbg`.
    let program = if implied(&program).is_some() { PROGRAM.into() } else { program };
    std::iter::once(program).chain(command).chain(arguments).collect()
}

/// Whether a process with these arguments is a controller, rather than a tool that runs beside it.
pub(crate) fn means_run(arguments: Vec<OsString>) -> bool {
    with_command(arguments).get(1).is_some_and(|command| command == "run")
}

fn is_path(argument: &OsStr) -> bool {
    argument.as_encoded_bytes().contains(&b'/')
}

fn is_plugin(program: &OsStr) -> bool {
    let name = Path::new(program).file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| name.starts_with(PLUGIN))
}

fn implied(program: &OsStr) -> Option<&'static str> {
    match Path::new(program).file_name()?.to_str()? {
        CONTROLLER => Some("run"),
        HOOK => Some("wait-shutdown"),
        INSPECTOR => Some("dbg"),
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
            ("/nginx-ingress-controller", "fairway run"),
            ("nginx-ingress-controller --help", "fairway run --help"),
            ("nginx-ingress-controller run -v=2", "fairway run -v=2"),
            ("/fairway /nginx-ingress-controller --v=2", "fairway run --v=2"),
            ("/wait-shutdown", "fairway wait-shutdown"),
            ("/wait-shutdown --timeout=5", "fairway wait-shutdown --timeout=5"),
            ("/fairway /wait-shutdown", "fairway wait-shutdown"),
            ("fairway wait-shutdown", "fairway wait-shutdown"),
            ("/dbg backends list", "fairway dbg backends list"),
            ("/fairway /dbg conf", "fairway dbg conf"),
            ("kubectl-fairway check .", "kubectl-fairway check ."),
            ("kubectl-fairway --kubeconfig a", "kubectl-fairway --kubeconfig a"),
            ("", "fairway"),
        ] {
            assert_eq!(with_command(words(line)), words(meant), "{line:?}");
        }
        assert!(means_run(words("/fairway --v=2")) && means_run(words("/fairway run")));
        assert!(!means_run(words("/fairway check")) && !means_run(words("/wait-shutdown")));
    }
}
