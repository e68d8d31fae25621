//! The cases of `tests/exchanges` against the built binary, with either engine.

use std::path::Path;

use testkit::{
    namespace,
    runner::{self, Baseline, Options},
};

/// Steps that are known to fail; the lists only shrink.
const KNOWN: &str = "tests/exchanges/not-yet.txt";
/// Those of the nginx engine, each under the reason for it.
const KNOWN_OF_NGINX: &str = "tests/exchanges/not-yet-nginx.txt";

#[test]
fn every_case_goes_as_recorded() {
    let inside =
        namespace::run_test("every_case_goes_as_recorded").expect("the cases run in a namespace");
    if inside {
        run(KNOWN, |options| options);
    }
}

/// Both engines are held against the same recordings, so where one differs from the other, one of the lists has it.
/// The cases that need a controller for themselves take minutes with nginx, which reloads for each: `make exchanges
/// ENGINE=nginx` runs them, too.
#[test]
fn cases_that_share_a_controller_go_the_same_way_with_nginx() {
    let name = "cases_that_share_a_controller_go_the_same_way_with_nginx";
    if !namespace::run_test(name).expect("the cases run in a namespace") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let directory = format!("--nginx-directory={}", folder.path().join("n").display());
    run(KNOWN_OF_NGINX, |options| Options {
        flags: vec!["--engine=nginx".to_owned(), directory],
        together_only: true,
        ..options
    });
}

fn run(list: &str, set: impl FnOnce(Options) -> Options) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (corpus, known) = (root.join("tests/exchanges"), root.join(list));
    let known = if known.exists() {
        Baseline::read(&known).expect("the list can be read")
    } else {
        Baseline::default()
    };
    let options = set(Options::new(&corpus, Path::new(env!("CARGO_BIN_EXE_fairway"))));
    let log = options.log.clone();
    let report = tokio::runtime::Runtime::new()
        .expect("a runtime starts")
        .block_on(runner::run(&options))
        .unwrap_or_else(|error| panic!("the cases do not run: {error:#}; see {}", log.display()));
    println!("{report}");
    for line in known.mended(&report) {
        println!("passes now, and can leave {list}: {line}");
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
    assert!(news.is_empty(), "{} steps fail that are not in {list}", news.len());
}
