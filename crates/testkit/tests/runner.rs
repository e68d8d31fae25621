//! The runner itself, with a controller that serves nothing.

use std::{fs, path::Path};

use testkit::{
    namespace,
    runner::{self, Family, Options, Verdict},
};

const STEP: &str = "- request: {url: 'http://a.test/'}\n  answer: {status: 200}\n- name: another\n  request: {url: 'http://a.test/'}\n  answer: {error: connection-refused}\n";

/// Writes a corpus: a case that differs on purpose at a step, one that fails, one for the webhook, a broken one.
fn corpus(folder: &Path) {
    let write = |path: &str, text: &str| {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("cases are in folders"))
            .expect("folders can be made");
        fs::write(path, text).expect("files can be written");
    };
    let ingress = "{kind: Ingress, metadata: {name: a}, spec: {rules: [{host: a.test}]}}";
    write("f/fails/in.yaml", ingress);
    write("f/fails/exchange.yaml", STEP);
    write("f/on-purpose/in.yaml", ingress);
    write("f/on-purpose/exchange.yaml", STEP);
    write("f/on-purpose/case.yaml", "differs: {'1': row 3}");
    write("f/webhook/review.yaml", "{}");
    write("g/broken/exchange.yaml", "- request: {url: [}");
}

#[test]
fn a_controller_that_ends_at_once_fails_the_steps_and_not_the_run() {
    let name = "a_controller_that_ends_at_once_fails_the_steps_and_not_the_run";
    if !namespace::run_test(name).expect("a namespace can be made") {
        return;
    }
    let folder = std::env::temp_dir().join(format!("testkit-corpus-{}", std::process::id()));
    corpus(&folder);
    let options = Options::new(&folder, Path::new("/bin/false"));
    let run = runner::run(&options);
    let report = tokio::runtime::Runtime::new()
        .expect("a runtime starts")
        .block_on(run)
        .expect("the run goes through");
    fs::remove_dir_all(&folder).expect("the corpus can be removed");
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
    assert_eq!(report.families["g"], Family { cases: 1, steps: 1, failed: 1, ..Family::default() });
    let on_purpose =
        report.steps.iter().find(|result| result.case == "f/on-purpose").expect("the case ran");
    assert_eq!(on_purpose.verdict, Verdict::OnPurpose("row 3".to_owned()));
    let failed: Vec<&str> = report.failures().map(|result| result.case.as_str()).collect();
    assert_eq!(failed, ["f/fails", "g/broken"]);
}
