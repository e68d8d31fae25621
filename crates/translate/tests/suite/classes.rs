//! IngressClasses of ours that go while Ingresses name them.

use crate::builders::*;
use objects::Snapshot;
use translate::{Options, Translator, translate};

const OURS: &str = "k8s.io/ingress-nginx";

/// Three Ingresses, which name these classes.
fn naming(snapshot: &mut Snapshot, classes: [&str; 3]) {
    for (name, class) in ["a", "b", "c"].into_iter().zip(classes) {
        let mut ingress = simple("demo", name, &format!("{name}.test"), "/", "s");
        ingress.class = Some(class.to_owned());
        put_ingress(snapshot, ingress);
    }
}

fn remove_class(snapshot: &mut Snapshot, name: &str) {
    snapshot.classes.as_mut().expect("classes").remove(&key("", name));
}

#[test]
fn a_class_of_ours_that_is_gone_is_a_problem_until_it_is_back_or_nobody_names_it() {
    let mut snapshot = cluster();
    put_class(&mut snapshot, class("public", OURS));
    naming(&mut snapshot, ["public", "public", "nginx"]);
    let mut translator = Translator::new(Options::default());
    let before = translator.update(&snapshot);
    assert_eq!((before.served.len(), before.without_class), (3, 0));
    assert!(!before.problems.to_string().contains("IngressClass"), "{}", before.problems);

    remove_class(&mut snapshot, "public");
    let gone = translator.update(&snapshot);
    assert_eq!((gone.served.len(), gone.without_class), (1, 2));
    let said = "Error: IngressClass public: does not exist; 2 Ingresses name it and are not served: create it with \
                spec.controller k8s.io/ingress-nginx\n";
    assert!(gone.problems.to_string().contains(said), "{}", gone.problems);

    naming(&mut snapshot, ["nginx", "public", "nginx"]);
    let fewer = translator.update(&snapshot);
    assert!(
        fewer.problems.to_string().contains("1 Ingress names it and is not"),
        "{}",
        fewer.problems
    );
    naming(&mut snapshot, ["nginx", "nginx", "nginx"]);
    assert_eq!(translator.update(&snapshot).without_class, 0);

    // Nobody knows any more that it was ours.
    naming(&mut snapshot, ["public", "nginx", "nginx"]);
    assert_eq!(translator.update(&snapshot).without_class, 0);
    put_class(&mut snapshot, class("public", OURS));
    assert_eq!(translator.update(&snapshot).served.len(), 3);
}

#[test]
fn classes_that_were_never_ours_are_for_others_to_miss() {
    let mut snapshot = cluster();
    remove_class(&mut snapshot, "nginx");
    put_class(&mut snapshot, class("theirs", "example.com/other"));
    naming(&mut snapshot, ["nginx", "theirs", "nowhere"]);
    let mut translator = Translator::new(Options::default());
    assert_eq!(translator.update(&snapshot).without_class, 1, "the one of --ingress-class");
    remove_class(&mut snapshot, "theirs");
    let now = translator.update(&snapshot);
    assert_eq!(now.without_class, 1);
    assert_eq!(now.problems, translate(&snapshot, &Options::default()).problems);
    let elsewhere = Options { watch_namespace: Some("other".to_owned()), ..Options::default() };
    assert_eq!(translate(&snapshot, &elsewhere).without_class, 0, "its namespace is not watched");
    snapshot.classes = None;
    assert_eq!(translator.update(&snapshot).without_class, 0, "nobody knows which there are");
}
