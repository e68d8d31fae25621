//! Every flag of ingress-nginx (`tests/tools/flags.tsv`) in every spelling of pflag, and mistakes as one line.

use super::{Command, Run, accepted, mistake, read};
use std::ffi::OsString;

/// Name, type, default and a value that is none.
const FLAGS: &str = include_str!("../../tests/tools/flags.tsv");
/// Flags whose presence alone means something, so that naming the default differs from saying nothing.
const PRESENCE: [&str; 3] = ["profiling", "profiler-port", "profiler-address"];

struct Flag<'a> {
    name: &'a str,
    kind: &'a str,
    default: &'a str,
    sample: &'a str,
}

fn flags() -> Vec<Flag<'static>> {
    let flag = |line: &'static str| {
        let [name, kind, default, sample] =
            line.split('\t').collect::<Vec<_>>().try_into().expect("four columns");
        Flag { name, kind, default, sample }
    };
    FLAGS.lines().skip(1).map(flag).collect()
}

fn run(arguments: &[&str]) -> Result<Run, String> {
    let all = ["fairway", "run"].iter().chain(arguments).map(OsString::from).collect();
    match read(all) {
        Ok(cli) => match cli.command {
            Command::Run(run) => Ok(*run),
            other => panic!("{other:?} is not run"),
        },
        Err(error) => Err(mistake::line(&error).expect("a mistake")),
    }
}

/// What the arguments mean, as text that can be compared.
fn meaning(arguments: &[String]) -> String {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    format!("{:?}", run(&words).unwrap_or_else(|line| panic!("{words:?}: {line}")))
}

fn is_accepted_only(name: &str) -> bool {
    accepted::rows().iter().any(|row| row.name == name)
}

fn assert_same(spellings: &[Vec<String>]) -> String {
    let first = meaning(&spellings[0]);
    for other in &spellings[1..] {
        assert_eq!(meaning(other), first, "{other:?} and {:?}", spellings[0]);
    }
    first
}

#[test]
fn every_flag_of_ingress_nginx_is_taken_in_every_spelling() {
    let all = flags();
    assert_eq!(all.len(), 87);
    let nothing = meaning(&[]);
    for Flag { name, kind, default, sample } in &all {
        let long = format!("--{name}");
        let other = format!(
            "--{}",
            if name.contains('_') { name.replace('_', "-") } else { name.replace('-', "_") }
        );
        let one = |text: String| vec![text];
        let meanings: Vec<String> = if *kind == "bool" {
            let with = |values: &[&str]| -> Vec<Vec<String>> {
                values.iter().map(|value| one(format!("{long}={value}"))).collect()
            };
            let mut on = with(&["true", "t", "T", "1", "TRUE", "True"]);
            on.extend([one(long.clone()), one(other.clone())]);
            on.push(vec![format!("{long}=false"), long.clone()]);
            let mut off = with(&["false", "f", "F", "0", "FALSE", "False"]);
            off.push(vec![long.clone(), format!("{other}=f")]);
            vec![assert_same(&on), assert_same(&off)]
        } else {
            let mut ways = vec![
                one(format!("{long}={sample}")),
                vec![long.clone(), (*sample).to_owned()],
                one(format!("{other}={sample}")),
            ];
            match sample.split_once(',').filter(|_| kind.ends_with("list")) {
                Some((first, rest)) => {
                    ways.push(vec![format!("{long}={first}"), format!("{long}={rest}")])
                }
                None if default.is_empty() => {}
                None => ways.push(vec![format!("{long}={default}"), format!("{long}={sample}")]),
            }
            if *name == "v" {
                ways.extend([one("-v7".into()), one("-v=7".into()), vec!["-v".into(), "7".into()]]);
            }
            vec![assert_same(&ways)]
        };
        assert!(meanings.iter().any(|meaning| *meaning != nothing), "{long} means nothing");
    }
}

#[test]
fn sizes_and_rates_are_read_as_their_help_says() {
    let said = meaning(&["--memory-limit=512Mi".to_owned(), "--sync-rate-limit=2".to_owned()]);
    assert!(said.contains("memory_limit: Some(536870912)"), "{said}");
    assert!(said.contains("sync_rate_limit: 2.0"), "{said}");
    let line = run(&["--sync-rate-limit=-1"]).expect_err("less than nothing");
    assert!(line.contains("--sync-rate-limit") && line.contains("such as 0.3"), "{line}");
}

#[test]
fn the_defaults_are_those_of_ingress_nginx() {
    let nothing = meaning(&[]);
    for Flag { name, default, .. } in flags() {
        if let Some(row) = accepted::rows().iter().find(|row| row.name == name) {
            assert!(!row.doc.is_empty() && !row.kind.is_empty(), "{name}");
        } else if !default.is_empty() && !PRESENCE.contains(&name) {
            assert_eq!(meaning(&[format!("--{name}={default}")]), nothing, "--{name}={default}");
        }
    }
}

#[test]
fn an_empty_value_is_one_where_ingress_nginx_takes_it() {
    for Flag { name, kind, .. } in flags().iter().filter(|flag| flag.default.is_empty()) {
        if *kind == "string" {
            let with = meaning(&[format!("--{name}=")]);
            assert_eq!(with, meaning(&[format!("--{name}"), String::new()]), "--{name}=");
        }
    }
}

#[test]
fn values_of_the_wrong_type_are_refused_in_one_line_with_the_flag() {
    for Flag { name, kind, .. } in flags() {
        let bad = match kind {
            "string" | "string list" | "severity" | "file:line" => continue,
            "bool" => "perhaps",
            _ => "soon",
        };
        let line = run(&[&format!("--{name}={bad}")]).expect_err(name);
        let is_told = line.contains(name) && line.contains(bad) && line.contains("expected");
        assert!(is_told || line.contains("invalid"), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}

#[test]
fn a_flag_without_effect_is_known_with_its_reason() {
    for Flag { name, sample, .. } in flags().into_iter().filter(|flag| is_accepted_only(flag.name))
    {
        let given = run(&[&format!("--{name}={sample}")]).expect("it is taken").accepted.given;
        assert_eq!(given.iter().map(|row| row.name).collect::<Vec<_>>(), [name]);
        assert!(!given[0].why().is_empty());
    }
}

#[test]
fn a_word_after_a_switch_is_not_its_value() {
    let flags = run(&["--disable-catch-all", "false"]).expect("words are taken");
    assert!(flags.classes.disable_catch_all);
    assert_eq!(flags.words, ["false"]);
}

#[test]
fn mistakes_are_one_line_with_what_to_write_instead() {
    for (arguments, wanted) in [
        (&["--http-prot=80"][..], "there is no flag --http-prot; did you mean --http-port?"),
        (&["--zzz"], "there is no flag --zzz; `fairway run --help` lists what there is"),
        (&["--default-ssl-certificat", "a/b"], "did you mean --default-ssl-certificate?"),
        (
            &["--configmap=x"],
            "invalid value 'x' for '--configmap <OBJECT>': expected namespace/name",
        ),
        (&["--http-port"], "a value is required for '--http-port <PORT>'"),
        (&["--http-port=65536"], "the number is too large or too small"),
    ] {
        let line = run(arguments).expect_err("a mistake");
        assert!(line.contains(wanted) && !line.contains('\n'), "{line}");
    }
    for (arguments, wanted) in [
        (
            &["check", "--zzz"][..],
            "there is no flag --zzz; `fairway check --help` lists what there is",
        ),
        (
            &["explain", "http://a.test/", "more"],
            "there is no place for more; `fairway explain --help` lists what there is",
        ),
        (&["translate", "--worker-threads=1"], "`fairway translate --help`"),
        (&["explain", "--data", "x", "http://a.test/"], "no flag --data; `fairway explain --help`"),
        (&["explain", "--default_backend_servise=a/b"], "did you mean --default-backend-service?"),
        (&["run", "--worker-threads=-1"], "expected a number from 1 to 1024"),
        (
            &["compare", "--old=http://a", "--new=http://b"],
            "<--log <FILE>|--har <FILE>|--requests <FILE>>",
        ),
        (&["run", "--watch-namespace=a,b"], "expected one namespace"),
        (&["run", "--worker-threads=0"], "expected a number from 1 to 1024"),
        (&["run", "--metrics-series-limit=0"], "expected a number from 1 on"),
        (&["compare", "--old=http://a", "--new=http://b", "--rate=0"], "0 is not in 1..=10000"),
        (&["run", "--worker-threads=100000"], "expected a number from 1 to 1024"),
        (&["run", "--time-buckets=x"], "expected a number, such as 0.5"),
        (&["run", "--gateway-controller-name=bad name"], "expected domain/path"),
    ] {
        let arguments = [&["fairway"], arguments].concat();
        let error = read(arguments.iter().map(OsString::from).collect()).expect_err("a mistake");
        let line = mistake::line(&error).expect("a mistake");
        assert!(line.contains(wanted) && !line.contains('\n'), "{line}");
    }
    let error = read(["fairway", "help", "chek"].map(OsString::from).into()).expect_err("none");
    let line = mistake::line(&error).expect("a mistake");
    assert_eq!(line, "there is no command chek; did you mean check?");
    let error = read(["fairway", "chekc"].map(OsString::from).into()).expect_err("no command");
    let line = mistake::line(&error).expect("a mistake");
    let unlike = read(["fairway", "zzz"].map(OsString::from).into()).expect_err("no command");
    let unlike = mistake::line(&unlike).expect("a mistake");
    assert_eq!(unlike, "there is no command zzz; `fairway help` lists what there is");
    assert_eq!(line, "there is no command chekc; did you mean check?");
}
