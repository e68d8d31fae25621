//! What containers are started with is what the program takes.

use crate::helm::{render_file, values_files};
use crate::{read, yaml_files};
use serde_json::Value;
use std::process::Command;
use testkit::yaml;

/// Whether the program takes these arguments: with `--help` at their end it reads all of them, and then only helps.
fn takes(arguments: &[String]) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairway"));
    let output = command.args(arguments).arg("--help").output().expect("the program runs");
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The arguments of all containers that run Fairway.
fn arguments(objects: &[Value]) -> Vec<Vec<String>> {
    let pods = objects.iter().map(|object| &object["spec"]["template"]["spec"]);
    let containers = pods.filter_map(|pod| pod["containers"].as_array()).flatten();
    let words = containers.filter_map(|container| container["args"].as_array());
    let words = words.map(|words| words.iter().filter_map(Value::as_str).map(expanded).collect());
    words
        .filter(|words: &Vec<String>| words.first().is_some_and(|word| word == "/fairway"))
        .collect()
}

fn expanded(word: &str) -> String {
    word.replace("$(POD_NAMESPACE)", "here")
}

#[test]
fn the_program_takes_the_arguments_of_the_plain_manifests_and_of_the_chart() {
    let plain = yaml_files("deploy").into_iter().map(|file| {
        let objects = yaml::documents(&read(&format!("deploy/{file}"))).expect("YAML");
        (file, objects)
    });
    let rendered = values_files().into_iter().map(|file| {
        let objects = render_file(&file);
        (file, objects)
    });
    let mut count = 0;
    for (file, objects) in plain.chain(rendered) {
        for arguments in arguments(&objects) {
            count += 1;
            takes(&arguments[1..]).unwrap_or_else(|said| panic!("{file}: {arguments:?}: {said}"));
        }
    }
    assert!(count >= 12, "only {count} containers run Fairway");
}

#[test]
fn an_argument_that_the_program_does_not_know_would_be_noticed() {
    for wrong in ["--no-such-flag", "--http-port=many", "--configmap=no-slash"] {
        let said = takes(&["run".to_owned(), wrong.to_owned()]).expect_err(wrong);
        assert!(said.contains(wrong.split('=').next().expect("a flag")), "{said}");
    }
}
