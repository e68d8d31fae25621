//! Which paths of a host that several namespaces have are served: what is found without comparing each with each is
//! what comparing finds, and soon.

use crate::builders::*;
use model::{PathKind, ServerName};
use objects::{Ingress, PathType, PortRef, Snapshot};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::{BTreeMap, BTreeSet};
use translate::{Options, Translation, translate};

const HOST: &str = "shop.test";
const NAMESPACES: [&str; 4] = ["c", "a", "d", "b"];

/// A path as an Ingress of these writes it.
#[derive(Clone, Debug)]
struct Path {
    ingress: usize,
    exact: bool,
    text: String,
}

/// Namespace and age of an Ingress, and its paths.
#[derive(Clone, Debug)]
struct Asked {
    namespace: &'static str,
    created: i64,
    paths: Vec<(bool, String)>,
}

impl Asked {
    fn ingress(&self, number: usize, regex: bool) -> Ingress {
        let to = || backend("s", Some(PortRef::Number(80)));
        let paths = self.paths.iter().map(|(exact, text)| {
            let kind = if *exact { PathType::Exact } else { PathType::ImplementationSpecific };
            path(text, kind, to())
        });
        let rules = vec![rule(Some(HOST), Some(paths.collect()))];
        let mut made = Ingress { rules, ..ingress(self.namespace, &name(number)) };
        made.meta.created = self.created;
        if regex {
            annotate(&mut made, "use-regex", "true");
        }
        made
    }
}

fn name(number: usize) -> String {
    format!("i{number}")
}

/// The paths in order of age, each with its namespace.
fn by_age(asked: &[Asked]) -> Vec<Path> {
    let mut order: Vec<usize> = (0..asked.len()).collect();
    order.sort_by_key(|number| {
        let Asked { namespace, created, .. } = &asked[*number];
        (*created, std::cmp::Reverse((*namespace, name(*number))))
    });
    let paths = |ingress: usize| {
        asked[ingress].paths.iter().map(move |(exact, text)| {
            let (exact, text) = (*exact, text.clone());
            Path { ingress, exact, text }
        })
    };
    order.into_iter().flat_map(paths).collect()
}

fn bare(text: &str) -> &str {
    text.strip_suffix('/').unwrap_or(text)
}

fn overlap(path: &Path, other: &Path, regex: bool) -> bool {
    if regex {
        return bare(&path.text).eq_ignore_ascii_case(bare(&other.text));
    }
    let longer = other.text.len() > path.text.len();
    let same = path.exact && path.text == other.text;
    bare(&path.text) == bare(&other.text) && (!other.exact || longer || same)
}

fn agree(one: &str, other: &str) -> bool {
    let same = |(a, b): (u8, u8)| a == b || a == b'.' || b == b'.';
    one.bytes().zip(other.bytes()).all(same)
}

/// Whether a pattern takes from those that begin with `other`.
fn reaches(start: &str, other: &str) -> bool {
    let from = bare(start.split('.').next().unwrap_or_default());
    if !agree(start, other) || !other.starts_with(from) {
        return false;
    }
    let (within, beyond) = start.split_at(start.len().min(other.len()));
    beyond.is_empty() || within.contains('.') || beyond.bytes().all(|byte| b"/.".contains(&byte))
}

/// The start of a path in lower case, and the rest; the paths of these tests have no alternatives.
fn split(text: &str) -> (String, &str) {
    let end = text.find(['(', '[', '*', '+', '?']).unwrap_or(text.len());
    let end = end - usize::from(text[end..].starts_with(['*', '?']));
    (bare(&text[..end]).to_ascii_lowercase(), &text[end..])
}

/// Paths that take requests from older ones, with the Ingress of these: each compared with all that are older.
fn lost(asked: &[Asked], regex: bool) -> BTreeMap<(usize, bool, String), usize> {
    let namespace = |path: &Path| asked[path.ingress].namespace;
    let (paths, mut lost) = (by_age(asked), BTreeMap::new());
    let mut kept: Vec<&Path> = Vec::new();
    for path in &paths {
        let first = paths.iter().find(|it| (it.exact, &it.text) == (path.exact, &path.text));
        if first.is_some_and(|first| namespace(first) != namespace(path)) {
            continue;
        }
        let foreign = kept.iter().copied().filter(|other| namespace(other) != namespace(path));
        let same = foreign.clone().find(|other| overlap(path, other, regex));
        let (start, rest) = split(&path.text);
        let is_pattern = regex && (!rest.is_empty() || path.text.contains('.'));
        let mut others: Vec<&Path> = foreign.filter(|_| is_pattern).collect();
        // The first namespace, and there the first start; of the same one, that of the oldest.
        others.sort_by_key(|other| (namespace(other), split(&other.text).0));
        let near = others.iter().copied().find(|other| reaches(&start, &split(&other.text).0));
        let closed = others.iter().copied().find(|other| {
            let (other, rest) = split(&other.text);
            rest.contains(|character| !"()$^?/|.*+".contains(character)) && agree(&start, &other)
        });
        match same.or(near).or(closed) {
            Some(other) => {
                lost.insert((path.ingress, path.exact, path.text.clone()), other.ingress);
            }
            None => kept.push(path),
        }
    }
    lost
}

/// Who is told what.
type Told = BTreeSet<(String, String)>;

/// What must be told, and which paths must be served.
fn expected(asked: &[Asked], regex: bool) -> (Told, BTreeSet<(bool, String)>) {
    let lost = lost(asked, regex);
    let (mut told, mut served, mut seen) = (Told::new(), BTreeSet::new(), BTreeSet::new());
    for path in by_age(asked) {
        if !seen.insert((path.exact, path.text.clone())) {
            continue;
        }
        let Path { ingress, exact, text } = path;
        let Some(other) = lost.get(&(ingress, exact, text.clone())) else {
            served.insert((exact, text));
            continue;
        };
        let kind = if exact { PathKind::Exact } else { PathKind::Prefix };
        let (namespace, other) = (asked[*other].namespace, name(*other));
        told.insert((
            name(ingress),
            format!(
                "path {text} ({kind:?}) of host {HOST}, which another namespace has a part in, is not served: it would \
                 take requests from Ingress {namespace}/{other}, which is older"
            ),
        ));
    }
    (told, served)
}

fn translated(ingresses: impl IntoIterator<Item = Ingress>) -> Translation {
    let mut snapshot: Snapshot = cluster();
    for namespace in NAMESPACES {
        put_service(&mut snapshot, service(namespace, "s", 80));
    }
    ingresses.into_iter().for_each(|ingress| put_ingress(&mut snapshot, ingress));
    translate(&snapshot, &Options::default())
}

fn found(translation: &Translation) -> (Told, BTreeSet<(bool, String)>) {
    let told = translation.problems.iter().filter_map(|problem| {
        let message = problem.message.to_string();
        let end = message.find("; take a path of its own")?;
        Some((problem.origin.name.to_string(), message[..end].to_owned()))
    });
    let server = &translation.configuration.servers[&ServerName::new(HOST)];
    let written = server.locations.iter().filter(|location| location.origin.is_some());
    let served = written.map(|location| (location.kind == PathKind::Exact, location.path.clone()));
    (told.collect(), served.collect())
}

fn texts(regex: bool) -> BoxedStrategy<(bool, String)> {
    let plain = "/([aA/]{0,3}|a/[bB]/?)";
    if !regex {
        return (any::<bool>(), plain.prop_map(|text: String| text)).boxed();
    }
    let rest = select(vec!["", "", "[0-9]", "(/|$)(.*)", "(b)", "*", "+", "/?(.*)"]);
    let pattern = ("/[aAb./]{0,5}[ab]", rest)
        .prop_map(|(start, rest)| (false, [start.as_str(), rest].concat()));
    prop_oneof![(any::<bool>(), plain.prop_map(|text: String| text)), pattern].boxed()
}

fn some() -> impl Strategy<Value = (bool, Vec<Asked>)> {
    any::<bool>().prop_flat_map(|regex| {
        let one = (select(NAMESPACES.to_vec()), 0..4_i64, vec(texts(regex), 1..6))
            .prop_map(|(namespace, created, paths)| Asked { namespace, created, paths });
        (Just(regex), vec(one, 1..9))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn what_is_not_served_is_what_comparing_each_path_with_each_older_one_finds(
        (regex, asked) in some(),
    ) {
        let made = asked.iter().enumerate().map(|(number, one)| one.ingress(number, regex));
        let (told, served) = found(&translated(made));
        let (must_be_told, must_be_served) = expected(&asked, regex);
        prop_assert_eq!(told, must_be_told);
        // The root that nobody wrote is there, too.
        let is_extra = |path: &&(bool, String)| **path != (false, "/".to_owned());
        let served: Vec<_> = served.iter().filter(is_extra).collect();
        prop_assert_eq!(served, must_be_served.iter().filter(is_extra).collect::<Vec<_>>());
    }
}

/// What is told where each of two namespaces has an Ingress with these paths, the first one the older.
fn of_two(texts: [Vec<String>; 2], kind: PathType, regex: bool) -> Vec<String> {
    let asked = ["a", "b"].into_iter().zip(texts).zip(0..);
    let made = asked.map(|((namespace, texts), created)| {
        let asked = Asked { namespace, created, paths: Vec::new() };
        let mut made = asked.ingress(0, regex);
        let to = || backend("s", Some(PortRef::Number(80)));
        let paths = texts.iter().map(|text| path(text, kind, to()));
        made.rules[0].paths = Some(paths.collect());
        made
    });
    let told = translated(made).problems;
    told.iter().map(|problem| problem.message.to_string()).collect()
}

#[test]
fn paths_that_differ_in_case_only_are_not_compared_with_one_another() {
    let spelt = |number: u32| {
        let letters = (0..17).map(|bit| if number >> bit & 1 == 0 { 'a' } else { 'A' });
        ["/shop/", &letters.collect::<String>()].concat()
    };
    for (count, regex) in [(50_000, false), (20_000, true)] {
        let texts = [vec!["/shop/Aa".to_owned()], (0..count).map(spelt).collect()];
        assert_eq!(of_two(texts, PathType::Prefix, regex), [""; 0]);
    }
}

#[test]
fn regular_expressions_of_two_namespaces_are_not_compared_each_with_each() {
    // Some are the same up to where they have a dot, and some beyond, which take requests.
    let younger = |number: u32| match number % 4 {
        0 => format!("/.{number:05}y[0-9]"),
        1 => format!("/a{number:05}.z[0-9]"),
        _ => format!("/b{number:05}[0-9]"),
    };
    let older = (0..20_000).map(|number| format!("/a{number:05}x[0-9]"));
    let texts = [older.collect(), (0..20_000).map(younger).collect()];
    let mut told = of_two(texts, PathType::ImplementationSpecific, true);
    told.retain(|said| !said.contains("take more than 16384 KiB of memory"));
    let taking = "it would take requests from Ingress a/i0, which is older";
    let are_taking = told.iter().all(|said| said.contains(".z[0-9]") && said.contains(taking));
    assert!(are_taking && !told.is_empty(), "{}: {:?}", told.len(), told.first());
}
