//! What makes an edge and what does not, and what the ratchet says.

use super::modules::Modules;
use super::{Edges, judge, knots};
use std::collections::BTreeMap;

/// The edges of a crate with these files, as `from>to`.
fn edges(files: &[(&str, &str)]) -> Vec<String> {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let edges = Modules::read("lib.rs", &|file| {
        files.get(file.trim_start_matches('/')).map(|&text| text.to_owned())
    })
    .edges();
    let name = |file: &String| file.trim_start_matches('/').trim_end_matches(".rs").to_owned();
    edges.keys().map(|(from, to)| format!("{}>{}", name(from), name(to))).collect()
}

#[test]
fn a_name_leads_to_the_file_that_defines_it() {
    let found = edges(&[
        ("lib.rs", "mod a; mod b; mod c; pub use a::A; pub use b::inner::*;"),
        ("a.rs", "pub struct A; impl A { fn x() -> crate::B { super::c::C::new() } }"),
        (
            "b/mod.rs",
            "pub mod inner; pub use crate::a::A as f; use crate::c; fn y() { c::f(f!()) }",
        ),
        ("b/inner.rs", "pub struct B; fn z(a: &super::super::A) {}"),
        ("c.rs", "pub struct C; pub fn f(_: u8) {} fn g() { format!(\"{}\", crate::A::NAME) }"),
    ]);
    assert_eq!(found, ["a>b/inner", "a>c", "b/inner>a", "b/mod>c", "c>a"]);
}

#[test]
fn tests_visibilities_and_names_of_other_crates_need_nothing() {
    let found = edges(&[
        ("lib.rs", "mod a; mod b; #[cfg(test)] mod gone; use other::b as c; fn x() { c::y() }"),
        ("a.rs", "pub(in crate::b) struct A; #[cfg(test)] mod tests { use crate::b::B; }"),
        ("b.rs", "pub struct B; #[cfg(test)] use crate::a::A; #[test] fn t() { crate::a::A; }"),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

fn circle(names: &[&str]) -> Edges {
    let next = names.iter().cycle().skip(1);
    let pairs = names.iter().zip(next).map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
    pairs.map(|pair| (pair, [(3, "a::B".to_owned())].into())).collect()
}

#[test]
fn the_largest_circle_is_found_and_told_with_its_edges() {
    let mut edges = circle(&["a", "b", "c"]);
    edges.extend(circle(&["d", "e"]));
    edges.extend([(("a".to_owned(), "d".to_owned()), [].into())]);
    let files = knots::largest(&edges);
    assert_eq!(files, ["a", "b", "c"]);
    let told = knots::told(&files, &edges);
    assert!(told.starts_with("  a → b (0 without): a::B in line 3\n"), "{told}");
    assert_eq!(told.lines().count(), 3, "{told}");
}

#[test]
fn the_list_of_circles_only_shrinks() {
    let of = |size: usize| {
        let names: Vec<String> = (0..size).map(|n| format!("{n:02}")).collect();
        let edges = circle(&names.iter().map(String::as_str).collect::<Vec<_>>());
        BTreeMap::from([("x".to_owned(), (knots::largest(&edges), edges))])
    };
    let larger = BTreeMap::from([("x", 9)]);
    assert!(judge(&of(9), &larger).is_empty());
    for wrong in [6, 8, 10] {
        assert_eq!(judge(&of(wrong), &larger).len(), 1, "{wrong}");
    }
    assert!(judge(&of(6), &BTreeMap::new()).is_empty());
    assert_eq!(judge(&of(7), &BTreeMap::new()).len(), 1);
    assert_eq!(judge(&BTreeMap::new(), &larger).len(), 1);
}
