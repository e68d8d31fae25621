//! The recorded cases of paths: each is one host with its paths and what requests led to.

use super::{Found, Locations, Own};
use crate::path::canonical;
use model::PathKind::{Exact, Prefix};
use model::snippet::{LocationKind, Regex};
use model::{Backend, Location, PathKind, Pattern, Server, ServerName, Steps};
use std::sync::Arc;

fn compile(regex: bool, paths: &[(&str, PathKind, bool)]) -> Locations {
    let location = |(path, kind, whole): &(&str, PathKind, bool)| Location {
        path: (*path).to_owned(),
        kind: *kind,
        whole: *whole,
        backend: Backend::NotFound,
        canary: None,
        service: None,
        origin: None,
        policy: Arc::default(),
    };
    Locations::compile(&Server {
        regex,
        locations: paths.iter().map(location).map(Arc::new).collect(),
        ..Server::new(ServerName::new("a.test"))
    })
}

fn plain(paths: &[(&str, PathKind)]) -> Locations {
    let paths: Vec<_> = paths.iter().map(|(path, kind)| (*path, *kind, false)).collect();
    compile(false, &paths)
}

/// The place of the location, with a `+` where a slash is added first.
fn found(locations: &Locations, path: &str) -> String {
    match locations.find(&canonical(path.as_bytes()).expect("a valid path"), &Steps::default()) {
        Found::Location { index } => index.to_string(),
        Found::AddSlash { index } => format!("{index}+"),
        Found::TooHard { index } => format!("too hard at {index}"),
        Found::None => "none".to_owned(),
    }
}

fn all_found<const N: usize>(locations: &Locations, paths: [&str; N]) -> [String; N] {
    paths.map(|path| found(locations, path))
}

#[test]
fn a_prefix_matches_whole_segments() {
    let locations = plain(&[("/foo", Prefix), ("/", Prefix)]);
    assert_eq!(all_found(&locations, ["/foo", "/foo/", "/foo/bar", "/foo%2Fbar"]), ["0"; 4]);
    assert_eq!(all_found(&locations, ["/foobar", "/fo", "/FOO", "/", "/foo%20bar"]), ["1"; 5]);
}

#[test]
fn an_exact_path_matches_itself() {
    let locations = plain(&[("/foo", Exact), ("/", Exact)]);
    assert_eq!(all_found(&locations, ["/foo", "/"]), ["0", "1"]);
    assert_eq!(all_found(&locations, ["/foo/", "/foo/bar", "/x"]), ["none"; 3]);
}

#[test]
fn exact_paths_and_prefixes_of_one_host_share_it() {
    let locations = plain(&[("/m", Exact), ("/m/", Prefix), ("/m/n", Exact)]);
    let paths = ["/m", "/m/", "/m/n", "/m/n/", "/m/n/o"];
    assert_eq!(all_found(&locations, paths), ["0", "1", "2", "1", "1"]);
}

#[test]
fn a_path_that_only_exists_with_a_slash_gets_one() {
    let locations = plain(&[("/", Prefix), ("/p/", Prefix), ("/e/", Exact)]);
    assert_eq!(all_found(&locations, ["/p", "/p/", "/p/x", "/px"]), ["1+", "1", "1", "0"]);
    assert_eq!(all_found(&locations, ["/e", "/e/", "/e/x"]), ["2+", "2", "0"]);
}

#[test]
fn the_older_one_of_two_spellings_owns_what_they_share() {
    let short_first = plain(&[("/p", Prefix), ("/p/", Prefix)]);
    assert_eq!(all_found(&short_first, ["/p", "/p/", "/p/x"]), ["0", "0", "0"]);
    let long_first = plain(&[("/p/", Prefix), ("/p", Prefix)]);
    assert_eq!(all_found(&long_first, ["/p", "/p/", "/p/x"]), ["1", "0", "0"]);
    let twice = plain(&[("/p", Prefix), ("/p", Prefix), ("/p", Exact), ("/p", Exact)]);
    assert_eq!(all_found(&twice, ["/p", "/p/"]), ["2", "0"]);
}

#[test]
fn siblings_between_a_prefix_and_a_request_do_not_hide_it() {
    let locations = plain(&[
        ("/a", Prefix),
        ("/a/b", Prefix),
        ("/a/b/c/d", Prefix),
        ("/a!", Exact),
        ("/", Prefix),
    ]);
    let paths = ["/a/b/c/x", "/a/a", "/a/z", "/a!", "/a!/x", "/a/b/c/d/e", "/b"];
    assert_eq!(all_found(&locations, paths), ["1", "0", "0", "3", "4", "2", "4"]);
}

#[test]
fn one_regex_changes_the_whole_host() {
    let locations = compile(
        true,
        &[("/re/[0-9]+", Prefix, true), ("/plain", Exact, false), ("/pre", Prefix, false)],
    );
    assert_eq!(
        all_found(&locations, ["/re/12", "/re/x", "/plain/more", "/PLAIN"]),
        ["0", "none", "1", "1"]
    );
    assert_eq!(all_found(&locations, ["/prefix", "/pre/x", "/pr"]), ["2", "2", "none"]);
}

#[test]
fn the_longest_pattern_is_tried_first() {
    let locations = compile(
        true,
        &[("/", Prefix, true), ("/foo/.*", Prefix, true), ("/foo/bar/[a-z]", Prefix, true)],
    );
    assert_eq!(
        all_found(&locations, ["/foo/bar/x", "/foo/baz", "/foo/bar", "/zzz"]),
        ["2", "1", "1", "0"]
    );
    let ties = compile(true, &[("/a.", Prefix, true), ("/ab", Prefix, true)]);
    assert_eq!(all_found(&ties, ["/ab", "/ac"]), ["1", "0"]);
}

#[test]
fn patterns_mean_what_they_mean_in_pcre() {
    let locations =
        compile(true, &[(r"/(?!bar|foobaz)[a-z]+$", Prefix, true), (r"/(a.)-\1", Prefix, true)]);
    assert_eq!(
        all_found(&locations, ["/foo", "/bar", "/foobaz", "/ab-ab", "/ab-ac"]),
        ["0", "none", "none", "1", "none"]
    );
    let decoded = compile(true, &[("/a[ /]b", Prefix, true)]);
    assert_eq!(all_found(&decoded, ["/a%20b", "/a%2Fb", "/x/../a%20b", "//a%20b"]), ["0"; 4]);
}

#[test]
fn the_anchor_belongs_to_the_first_alternative() {
    let locations = compile(true, &[("/a|/b", Prefix, true)]);
    assert_eq!(all_found(&locations, ["/a", "/x/b", "/x/a"]), ["0", "0", "none"]);
}

#[test]
fn optional_characters_are_optional() {
    let locations =
        compile(true, &[("/ab?", Prefix, true), ("/x{0}y", Prefix, true), ("/u+", Prefix, true)]);
    assert_eq!(
        all_found(&locations, ["/a", "/ab", "/y", "/uu", "/"]),
        ["0", "0", "1", "2", "none"]
    );
}

#[test]
fn an_exact_path_keeps_a_prefix_of_the_same_text_away_in_regex_mode() {
    let locations =
        compile(true, &[("/p", Prefix, false), ("/p", Exact, false), ("/r", Prefix, true)]);
    assert_eq!(all_found(&locations, ["/p/x", "/px", "/p"]), ["0", "1", "1"]);
}

#[test]
fn the_root_of_a_host_in_regex_mode_goes_before_an_exact_path_of_the_same_text() {
    let (exact, root) = (("/", Exact, false), ("/", Prefix, false));
    for (paths, wanted) in [([exact, root], "1"), ([root, exact], "0")] {
        let locations = compile(true, &[&paths[..], &[("/a.*", Prefix, false)]].concat());
        assert_eq!(all_found(&locations, ["/", "/other"]), [wanted, wanted]);
    }
}

#[test]
fn a_pattern_that_is_none_matches_nothing_and_hurts_nobody() {
    let locations = compile(true, &[("/a(", Prefix, true), ("/a", Prefix, true)]);
    assert_eq!(all_found(&locations, ["/a(", "/a"]), ["1", "1"]);
}

#[test]
fn a_path_that_is_too_hard_for_a_pattern_leads_nowhere_rather_than_past_its_guards() {
    let guarded = "/secret/(?:(a|a)\\1?)*z";
    let locations = compile(true, &[(guarded, Prefix, false), ("/", Prefix, false)]);
    assert_eq!(all_found(&locations, ["/secret/aaz", "/secret/b", "/other"]), ["0", "1", "1"]);
    let hard = format!("/secret/{}!", "a".repeat(300));
    assert_eq!(all_found(&locations, [&hard, "/"]), ["too hard at 0", "1"]);
}

#[test]
fn all_patterns_of_a_host_together_take_no_more_steps_than_a_request_has() {
    let paths: Vec<String> =
        (0..20).map(|number| format!("/x[01]*1[01]{{100}}{number:02}$")).collect();
    let mut paths: Vec<_> = paths.iter().map(|path| (path.as_str(), Prefix, true)).collect();
    paths.push(("/", Prefix, true));
    let locations = compile(true, &paths);
    let long = format!("/x{}", "01".repeat(3900));
    assert!(found(&locations, &long).starts_with("too hard at "), "{}", found(&locations, &long));
    assert_eq!(all_found(&locations, ["/x0101", "/elsewhere"]), ["20", "20"]);
    let steps = Steps::default();
    locations.find(&canonical(long.as_bytes()).expect("a valid path"), &steps);
    assert_eq!(steps.left(), 0);
}

/// Locations of Ingresses with those of snippets, which are numbered from 100.
fn with_own(
    regex: bool,
    paths: &[(&str, PathKind)],
    own: &[(&str, &str, Option<usize>)],
) -> Locations {
    let location = |(path, kind): &(&str, PathKind)| Location {
        path: (*path).to_owned(),
        kind: *kind,
        whole: regex,
        backend: Backend::NotFound,
        canary: None,
        service: None,
        origin: None,
        policy: Arc::default(),
    };
    let server = Server {
        regex,
        locations: paths.iter().map(location).map(Arc::new).collect(),
        ..Server::new(ServerName::new("a.test"))
    };
    let own = own.iter().enumerate().map(|(number, (modifier, path, within))| Own {
        kind: match *modifier {
            "=" => LocationKind::Exact((*path).to_owned()),
            "~" | "~*" => LocationKind::Regex(Regex {
                pattern: Pattern::new(path, *modifier == "~*").expect("a pattern"),
                names: Vec::new(),
            }),
            "@" => LocationKind::Named(format!("@{path}")),
            modifier => {
                LocationKind::Prefix { path: (*path).to_owned(), final_prefix: modifier == "^~" }
            }
        },
        index: 100 + number,
        within: *within,
        passes: *modifier == "pass",
    });
    Locations::compile(&server).with_own(&server, &own.collect::<Vec<_>>())
}

#[test]
fn locations_of_snippets_stand_beside_those_of_ingresses() {
    let own = [
        ("=", "/foo/exact", None),
        ("", "/foo/deep", None),
        ("^~", "/final/", None),
        ("~", "\\.php$", None),
        ("@", "named", None),
        ("pass", "/passed/", None),
        ("", "/f", None),
    ];
    let locations = with_own(false, &[("/foo", Prefix), ("/", Prefix), ("/one", Exact)], &own);
    for (path, answer) in [
        ("/foo", "0"),
        ("/foo/x", "0"),
        ("/foo/exact", "100"),
        ("/foo/exact/", "0"),
        ("/foo/deeper", "101"),
        ("/final/x.php", "102"),
        ("/final", "106"),
        ("/foo/x.php", "103"),
        ("/foo.php", "103"),
        ("/one", "2"),
        ("/one.php", "103"),
        ("/passed", "105+"),
        ("/passed/x", "105"),
        ("/fx", "106"),
        ("/x", "1"),
        ("/@named", "1"),
    ] {
        assert_eq!(found(&locations, path), answer, "{path}");
    }
}

#[test]
fn an_exact_path_of_an_ingress_is_asked_before_expressions() {
    let locations = with_own(false, &[("/a.php", Prefix), ("/", Prefix)], &[("~", "php$", None)]);
    assert_eq!(all_found(&locations, ["/a.php", "/b.php", "/a.php/x.php"]), ["0", "100", "100"]);
}

#[test]
fn locations_within_others_are_looked_for_once_those_are_found() {
    let own = [
        ("", "/a/in", Some(0)),
        ("~", "\\.txt$", Some(0)),
        ("~*", "\\.PHP$", None),
        ("", "/own/", None),
        ("=", "/own/one", Some(103)),
        ("~", "x", Some(102)),
    ];
    let locations = with_own(false, &[("/a", Prefix), ("/", Prefix)], &own);
    for (path, answer) in [
        ("/a/in/x", "100"),
        ("/a/in/x.txt", "101"),
        ("/in.txt", "1"),
        ("/a/in.php", "102"),
        ("/own/one", "104"),
        ("/own/two", "103"),
        ("/x.php", "105"),
        ("/y.php", "102"),
    ] {
        assert_eq!(found(&locations, path), answer, "{path}");
    }
}

#[test]
fn what_stands_within_an_exact_path_counts_there() {
    let own = [("~", "\\.git", Some(0)), ("~", "\\.git", Some(1)), ("", "/b", Some(2))];
    let paths = [("/a.git", Exact), ("/c.git", Prefix), ("/", Prefix)];
    let locations = with_own(false, &paths, &own);
    let asked = ["/a.git", "/c.git", "/c.git/x", "/b/.git", "/a"];
    assert_eq!(all_found(&locations, asked), ["100", "101", "101", "102", "2"]);
}

#[test]
fn paths_that_are_expressions_stand_behind_those_of_the_snippet() {
    let own = [("~", "^/api/v1", None), ("", "/plain", None), ("^~", "/first", None)];
    let locations = with_own(true, &[("/api/.*", Prefix), ("/p.*", Prefix), ("/fi", Prefix)], &own);
    for (path, answer) in [
        ("/api/v1/x", "100"),
        ("/api/v2", "0"),
        ("/plain", "1"),
        ("/first", "102"),
        ("/fix", "2"),
        ("/x", "none"),
    ] {
        assert_eq!(found(&locations, path), answer, "{path}");
    }
}

#[test]
fn an_expression_of_a_snippet_that_takes_all_steps_opens_nothing() {
    let own = [("~", "^/(?:(a|a)\\1?)*z$", None)];
    let locations = with_own(false, &[("/", Prefix)], &own);
    let path = format!("/{}", "a".repeat(200));
    let canonical = canonical(path.as_bytes()).expect("a path");
    let found = locations.find(&canonical, &Steps::new(50));
    assert_eq!(found, Found::TooHard { index: 100 });
}
