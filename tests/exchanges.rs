//! The cases of `tests/exchanges` against the built binary.

use std::path::Path;

use testkit::{
    namespace,
    runner::{self, Baseline, Options},
};

/// Steps that are known to fail; the list only shrinks.
const KNOWN: &str = "tests/exchanges/not-yet.txt";

#[test]
fn every_case_goes_as_recorded() {
    let inside =
        namespace::run_test("every_case_goes_as_recorded").expect("the cases run in a namespace");
    if !inside {
        return;
    }
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exchanges");
    let known = Path::new(env!("CARGO_MANIFEST_DIR")).join(KNOWN);
    let known = if known.exists() {
        Baseline::read(&known).expect("the list can be read")
    } else {
        Baseline::default()
    };
    let options = Options::new(&corpus, Path::new(env!("CARGO_BIN_EXE_fairway")));
    let run = runner::run(&options);
    let report = tokio::runtime::Runtime::new()
        .expect("a runtime starts")
        .block_on(run)
        .expect("the cases run");
    println!("{report}");
    for line in known.mended(&report) {
        println!("passes now, and can leave {KNOWN}: {line}");
    }
    let news = known.news(&report);
    for result in &news {
        println!(
            "{}, step {}: {}\n  {}",
            result.case,
            result.number,
            result.step,
            result.differences.join("\n  ")
        );
    }
    assert!(news.is_empty(), "{} steps fail that are not in {KNOWN}", news.len());
}
