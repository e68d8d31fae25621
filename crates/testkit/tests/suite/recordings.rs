//! The comparison against recorded steps: each is equal to itself, and what is changed in it is noticed.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use testkit::{
    case::{self, Case, References},
    exchange::{Body, Outcome, compare},
    fixtures::Places,
    manifests::Manifests,
    yaml,
};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/exchanges")
}

/// Everything that was recorded.
static RECORDED: LazyLock<Vec<Outcome>> = LazyLock::new(|| {
    let references = References::new(Places::recorded(), &[]);
    let names = case::names(&corpus()).expect("the corpus can be read");
    assert!(names.len() > 100, "the recordings are in {}", corpus().display());
    let load = |name: &String| {
        Case::load(&corpus(), name, None, &references).expect("the case can be read")
    };
    let steps = names.iter().map(load).flat_map(|case| case.steps);
    steps.filter(|step| step.request.is_some()).map(|step| step.outcome).collect()
});

/// How many recorded outcomes can be changed so, and how many of these changes are noticed.
fn noticed(change: impl Fn(&mut Outcome) -> bool) -> (usize, usize) {
    let (mut changed, mut seen) = (0, 0);
    for want in RECORDED.iter() {
        let mut got = want.clone();
        if change(&mut got) {
            changed += 1;
            seen += usize::from(!compare(want, &got, false).differences.is_empty());
        }
    }
    (changed, seen)
}

/// Checks that a change is possible somewhere, and noticed everywhere.
fn always_noticed(what: &str, change: impl Fn(&mut Outcome) -> bool) {
    let (changed, seen) = noticed(change);
    assert!(changed > 0 && changed == seen, "{what}: {changed} changed, {seen} noticed");
}

#[test]
fn every_recorded_step_is_equal_to_itself() {
    for outcome in RECORDED.iter() {
        let comparison = compare(outcome, outcome, true);
        assert!(
            comparison.differences.is_empty() && comparison.framing.is_empty(),
            "{comparison:?}"
        );
    }
}

#[test]
fn every_change_that_counts_is_noticed() {
    always_noticed("status", |outcome| {
        let status = outcome.answer.as_mut().and_then(|answer| answer.status.as_mut());
        status.map(|status| *status += 1).is_some()
    });
    always_noticed("a header more", |outcome| {
        let headers = outcome.answer.as_mut().and_then(|answer| answer.headers.as_mut());
        headers.map(|headers| headers.push(("X-More".to_owned(), String::new()))).is_some()
    });
    always_noticed("a header of the upstream less", |outcome| {
        let headers = outcome.seen.as_mut().and_then(|seen| seen.headers.as_mut());
        let is_host = |name: &str| name.eq_ignore_ascii_case("host");
        headers.is_some_and(|headers| {
            let before = headers.len();
            headers.retain(|(name, _)| !is_host(name));
            headers.len() < before
        })
    });
    always_noticed("another uri", |outcome| {
        let uri = outcome.seen.as_mut().and_then(|seen| seen.uri.as_mut());
        uri.map(|uri| uri.push('x')).is_some()
    });
    always_noticed("nobody reached", |outcome| outcome.seen.take().is_some());
    always_noticed("another body of the upstream", |outcome| {
        let body = outcome.seen.as_mut().and_then(|seen| seen.body.as_mut());
        body.map(|body| *body = Body::Text("another".to_owned())).is_some()
    });
    always_noticed("an error", |outcome| {
        let answer = outcome.answer.as_mut();
        answer.map(|answer| answer.error = Some("truncated".to_owned())).is_some()
    });
}

#[test]
fn framing_and_pods_do_not_count() {
    let (changed, seen) = noticed(|outcome| {
        let headers = outcome.answer.as_mut().and_then(|answer| answer.headers.as_mut());
        headers.is_some_and(|headers| {
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-length"));
            headers.push(("Server".to_owned(), "x".to_owned()));
            true
        })
    });
    assert!(changed > 0 && seen == 0, "{changed} changed, {seen} noticed");
    let (changed, seen) = noticed(|outcome| {
        outcome.seen.as_mut().map(|seen| seen.pod = "another".to_owned()).is_some()
    });
    assert!(changed > 0 && seen == 0, "{changed} changed, {seen} noticed");
}

#[test]
fn every_recorded_object_survives_the_way_through_its_file() {
    let references = References::new(Places::recorded(), &[]);
    let manifests = Manifests::new().expect("a folder can be made");
    for name in case::names(&corpus()).expect("the corpus can be read") {
        let case = Case::load(&corpus(), &name, None, &references).expect("the case can be read");
        for object in case.all_objects(&references).expect("its files can be read") {
            manifests.apply(&object).expect("the object can be written");
            let file = fs::read_dir(manifests.folder()).expect("the folder can be read").next();
            let path = file.expect("the object has a file").expect("it can be read").path();
            let mut read = yaml::file(&path).expect("it is YAML").remove(0);
            for filled_in in ["creationTimestamp", "namespace"] {
                if object["metadata"][filled_in].is_null() {
                    read["metadata"]
                        .as_object_mut()
                        .expect("objects have metadata")
                        .remove(filled_in);
                }
            }
            assert_eq!(read, object, "{name}");
            manifests.delete(&object).expect("the object can be removed");
        }
    }
}
