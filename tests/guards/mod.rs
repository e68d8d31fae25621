//! The table guard × feature: whatever else a location is asked to do, and however a request comes in, what a guard
//! closes stays closed.

mod features;
mod table;

use testkit::namespace;

#[test]
fn no_feature_opens_what_a_guard_closes() {
    let inside = namespace::run_test(module_path!(), "no_feature_opens_what_a_guard_closes")
        .expect("the table is tried in a namespace");
    if !inside {
        return;
    }
    let tried =
        tokio::runtime::Runtime::new().expect("a runtime starts").block_on(table::try_all());
    let wrong = tried.expect("the table can be tried");
    assert!(wrong.is_empty(), "{} of the table:\n{}", wrong.len(), wrong.join("\n"));
}
