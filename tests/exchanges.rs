//! The cases of `tests/exchanges` against the built binary, with both engines.

use std::path::Path;

use testkit::{
    namespace,
    runner::{self, Engine, Options, Report, StepResult},
};

/// Both engines are held against the same recordings, and against each other where both differ from them: wherever one
/// differs, its case says why.
#[test]
fn every_case_goes_as_recorded_with_both_engines_or_says_why_not() {
    let name = "every_case_goes_as_recorded_with_both_engines_or_says_why_not";
    if !namespace::run_test(module_path!(), name).expect("the cases run in a namespace") {
        return;
    }
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exchanges");
    let native = Options::new(&corpus, Path::new(env!("CARGO_BIN_EXE_fairway")));
    let nginx = Options { engine: Engine::Nginx, ..native.clone() };
    let (native, nginx) = tokio::runtime::Runtime::new()
        .expect("a runtime starts")
        .block_on(async { tokio::try_join!(runner::run(&native), runner::run(&nginx)) })
        .unwrap_or_else(|error| {
            panic!("the cases do not run: {error:#}; see the files beside {}", native.log.display())
        });
    let unexplained = show("native", &native) + show("nginx", &nginx);
    let between = runner::disagreements(&native, &nginx);
    between.iter().for_each(|result| tell("nginx against native", result));
    assert!(
        unexplained == 0 && between.is_empty(),
        "{unexplained} steps fail, {} differ between the engines, and no case says why",
        between.len()
    );
}

/// Prints a report and its failures, and says how many there are.
fn show(engine: &str, report: &Report) -> usize {
    println!("{engine}:\n{report}");
    report.failures().map(|result| tell(engine, result)).count()
}

fn tell(engine: &str, StepResult { case, number, step, differences, .. }: &StepResult) {
    println!("{engine}: {case}, step {number}: {step}\n  {}", differences.join("\n  "));
}
