//! Flags of a running controller that other commands take and pass over: a Deployment's arguments can be pasted as they
//! are.

use crate::say::note;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

/// Who takes them.
const COMMANDS: [&str; 3] = ["check", "explain", "convert"];
/// What is no flag of a Deployment, or asks for something that these commands do not do.
const NOT_TAKEN: [&str; 3] = ["engine", "version", "words"];

/// Adds them, shown in no help.
pub(super) fn passed_over(command: Command) -> Command {
    let run: Vec<Arg> = command.find_subcommand("run").into_iter().flat_map(taken).collect();
    COMMANDS.iter().fold(command, |command, name| {
        command.mut_subcommand(*name, |one| {
            let missing: Vec<Arg> = run.iter().filter(|arg| !has(&one, arg)).cloned().collect();
            one.args(missing)
        })
    })
}

fn taken(run: &Command) -> Vec<Arg> {
    let is_taken = |arg: &&Arg| !NOT_TAKEN.contains(&arg.get_id().as_str());
    run.get_arguments().filter(is_taken).map(|arg| arg.clone().hide(true)).collect()
}

fn has(command: &Command, arg: &Arg) -> bool {
    let mut all = command.get_arguments();
    all.any(|own| own.get_id() == arg.get_id() || own.get_long() == arg.get_long())
}

/// Says which of them were given, since nothing else does.
pub(super) fn tell(all: &Command, matches: &ArgMatches) {
    let Some((name, given)) = matches.subcommand().filter(|(name, _)| COMMANDS.contains(name))
    else {
        return;
    };
    let Some(command) = all.find_subcommand(name) else { return };
    let hidden = command.get_arguments().filter(|arg| arg.is_hide_set());
    let is_given =
        |arg: &&Arg| given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let names = hidden.filter(is_given).filter_map(Arg::get_long);
    let names: Vec<String> = names.map(|name| format!("--{name}")).collect();
    if !names.is_empty() {
        note!("{}: for a controller that runs, and without effect on `{name}`", names.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use crate::flags::command;

    #[test]
    fn the_arguments_of_a_deployment_can_be_pasted() {
        let pasted = [
            "--publish-service=$(POD_NAMESPACE)/ingress-nginx-controller",
            "--election-id=ingress-nginx-leader",
            "--controller-class=k8s.io/ingress-nginx",
            "--ingress-class=nginx",
            "--configmap=ingress-nginx/ingress-nginx-controller",
            "--validating-webhook=:8443",
            "--validating-webhook-certificate=/usr/local/certificates/cert",
            "--validating-webhook-key=/usr/local/certificates/key",
            "--update-status=false",
            "--report-node-internal-ip-address",
            "--maxmind-edition-ids=GeoLite2-City",
            "--maxmind-license-key=x",
            "--http-port=8080",
            "--v=2",
        ];
        for before in [&["check", "prod"][..], &["convert", "prod"], &["explain", "http://a.test/"]]
        {
            let words = [&["fairway"], before, &pasted].concat();
            let read = command().try_get_matches_from(words);
            assert!(
                read.is_ok(),
                "{before:?}: {}",
                read.err().map(|it| it.to_string()).unwrap_or_default()
            );
        }
        // Of no effect is no reason to take a word that is none.
        for wrong in ["--publish-servise=a/b", "--engine=nginx", "--update-status=perhaps"] {
            assert!(
                command().try_get_matches_from(["fairway", "check", "prod", wrong]).is_err(),
                "{wrong}"
            );
        }
    }
}
