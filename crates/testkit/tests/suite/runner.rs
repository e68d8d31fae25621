//! The runner itself, with a controller that serves nothing.

use std::{
    fs,
    path::{Path, PathBuf},
};

use testkit::{
    namespace,
    runner::{self, Engine, Family, Options, Report, Verdict},
};

const STEP: &str = "- request: {url: 'http://a.test/'}\n  answer: {status: 200}\n- name: another\n  request: {url: 'http://a.test/'}\n  answer: {error: connection-refused}\n";

/// Adds a case to a corpus.
fn case(folder: &Path, name: &str, settings: &str) {
    let folder = folder.join(name);
    fs::create_dir_all(&folder).expect("folders can be made");
    let ingress = "{kind: Ingress, metadata: {name: a}, spec: {rules: [{host: a.test}]}}";
    for (file, text) in [("in.yaml", ingress), ("exchange.yaml", STEP), ("case.yaml", settings)] {
        fs::write(folder.join(file), text).expect("files can be written");
    }
}

/// Runs a corpus against a controller that ends at once.
fn run(options: &Options) -> Report {
    let report = tokio::runtime::Runtime::new()
        .expect("a runtime starts")
        .block_on(runner::run(options))
        .expect("the run goes through");
    fs::remove_dir_all(&options.corpus).expect("the corpus can be removed");
    report
}

fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("testkit-{name}-{}", std::process::id()))
}

#[test]
fn a_controller_that_ends_at_once_fails_the_steps_and_not_the_run() {
    let name = "a_controller_that_ends_at_once_fails_the_steps_and_not_the_run";
    if !namespace::run_test(module_path!(), name).expect("a namespace can be made") {
        return;
    }
    let folder = folder("corpus");
    case(&folder, "f/fails", "{}");
    case(&folder, "f/on-purpose", "differs: {'1': row 3}");
    case(&folder, "f/webhook", "{}");
    fs::write(folder.join("f/webhook/review.yaml"), "{}").expect("files can be written");
    case(&folder, "g/broken", "{}");
    let broken = "- request: {url: [}";
    fs::write(folder.join("g/broken/exchange.yaml"), broken).expect("files can be written");
    case(&folder, "g/stranger", "differs: {no such step: row 3}");
    let report = run(&Options::new(&folder, Path::new("/bin/false")));
    let want = Family {
        cases: 2,
        skipped: 1,
        steps: 4,
        passed: 2,
        on_purpose: 1,
        failed: 1,
        ..Family::default()
    };
    assert_eq!(report.families["f"], want);
    assert_eq!(report.families["g"], Family { cases: 2, steps: 2, failed: 2, ..Family::default() });
    let on_purpose =
        report.steps.iter().find(|result| result.case == "f/on-purpose").expect("the case ran");
    assert_eq!(on_purpose.verdict, Verdict::OnPurpose("row 3".to_owned()));
    let failed: Vec<&str> = report.failures().map(|result| result.case.as_str()).collect();
    assert_eq!(failed, ["f/fails", "g/broken", "g/stranger"]);
}

#[test]
fn a_reason_for_one_engine_counts_with_it_and_goes_once_the_step_passes() {
    let name = "a_reason_for_one_engine_counts_with_it_and_goes_once_the_step_passes";
    if !namespace::run_test(module_path!(), name).expect("a namespace can be made") {
        return;
    }
    let folder = folder("engines");
    let settings = "{differs: {'1': row 3}, differs-with-nginx: {'1': no module, another: %}}";
    case(&folder, "f/stale", &settings.replace('%', "'not so'"));
    case(&folder, "f/random", &settings.replace('%', "'sometimes so'"));
    let options = Options::new(&folder, Path::new("/bin/false"));
    let report = run(&Options { engine: Engine::Nginx, ..options });
    let verdicts: Vec<_> = report
        .steps
        .iter()
        .map(|result| (result.case.as_str(), result.number, &result.verdict))
        .collect();
    let of_engine = Verdict::OfEngine("no module".to_owned());
    assert_eq!(
        verdicts,
        [
            ("f/random", 1, &of_engine),
            ("f/random", 2, &Verdict::Passed),
            ("f/stale", 1, &of_engine),
            ("f/stale", 2, &Verdict::Failed),
        ]
    );
}

#[test]
fn a_decision_about_a_step_goes_once_that_passes() {
    let name = "a_decision_about_a_step_goes_once_that_passes";
    if !namespace::run_test(module_path!(), name).expect("a namespace can be made") {
        return;
    }
    let folder = folder("decisions");
    case(&folder, "f/all", "differs: row 3");
    case(&folder, "f/random", "differs: {another: sometimes so}");
    case(&folder, "f/stale", "differs: {another: row 3}");
    let report = run(&Options::new(&folder, Path::new("/bin/false")));
    let verdicts: Vec<_> = report
        .steps
        .iter()
        .map(|result| (result.case.as_str(), result.number, &result.verdict))
        .collect();
    let (passed, failed) = (&Verdict::Passed, &Verdict::Failed);
    assert_eq!(
        verdicts,
        [
            ("f/all", 1, &Verdict::OnPurpose("row 3".to_owned())),
            ("f/all", 2, passed),
            ("f/random", 1, failed),
            ("f/random", 2, passed),
            ("f/stale", 1, failed),
            ("f/stale", 2, failed),
        ]
    );
}
