//! Rules that need the code parsed: sizes of functions and files, `unwrap`, and the first line.

use crate::tree::Tree;
use proc_macro2::Span;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Lines of a function, from its name to its closing brace.
const FUNCTION: usize = 70;
/// Lines of a file without its tests.
const FILE: usize = 600;

/// What was larger when the limits came. A number here may only get smaller; a line that is no longer needed must go.
/// Functions are written `file::function`.
const LARGER: &[(&str, usize)] = &[];

/// Who resolves names and opens connections, and towards whom. Everything else goes through them, so that what objects
/// can name leads to no address of this machine.
const DOORS: &[(&str, &str)] = &[
    ("crates/stream/src/door.rs", "the one door for what objects name"),
    (
        "crates/stream/src/system.rs",
        "the name servers of the machine, for the door and for the names of Services",
    ),
    ("crates/stream/src/reach.rs", "endpoints of Services, and names that the resolver has judged"),
    ("crates/stream/src/udp.rs", "the same for UDP"),
    ("crates/upstream/src/connect.rs", "endpoints, and addresses that the door has judged"),
    ("crates/proxy/src/log/syslog.rs", "the log server that the ConfigMap names"),
    ("crates/verdict/src/compare/send.rs", "the controllers that a person names"),
    ("src/dbg.rs", "the admin port of this machine, asked by a person"),
    (
        "crates/controller/src/pod.rs",
        "the other replicas, where the API server says that their Pods are",
    ),
];
/// Functions that resolve names or open connections, by type (none: a free function) and name.
const OPENS: &[(&str, &str)] = &[
    ("TcpStream", "connect"),
    ("TcpStream", "connect_timeout"),
    ("TcpSocket", "new_v4"),
    ("TcpSocket", "new_v6"),
    ("UdpSocket", "bind"),
    ("", "lookup_host"),
    ("TokioResolver", "builder_tokio"),
    ("TokioResolver", "builder_with_config"),
];
/// Crates that never ship.
const TOOLS: &[&str] =
    &["crates/testkit/", "crates/bench/", "crates/hostile/", "examples/", "fuzz/"];

/// What one file has to say for itself.
#[derive(Default)]
struct Findings {
    /// Lines by function.
    functions: BTreeMap<String, usize>,
    /// Lines with `unwrap()` outside tests.
    unwraps: Vec<usize>,
    /// Lines outside tests that resolve names or open connections.
    doors: Vec<usize>,
    /// Lines inside `#[cfg(test)]` items.
    test_lines: usize,
    within_test: bool,
}

/// Functions and files over their limit, and lines of the list of exceptions that are too generous.
pub(crate) fn sizes(tree: &Tree) -> Vec<String> {
    let mut sizes = BTreeMap::new();
    for file in tree.rust() {
        let text = tree.text(file).unwrap_or_default();
        let findings = findings(file, &text);
        if !is_test(file) {
            sizes.insert(file.to_owned(), (text.lines().count() - findings.test_lines, FILE));
        }
        for (function, lines) in &findings.functions {
            sizes.insert(format!("{file}::{function}"), (*lines, FUNCTION));
        }
    }
    over_limit(&sizes, &LARGER.iter().copied().collect())
}

fn over_limit(
    sizes: &BTreeMap<String, (usize, usize)>,
    larger: &BTreeMap<&str, usize>,
) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, &(lines, limit)) in sizes {
        match larger.get(name.as_str()) {
            Some(&known) if lines <= limit => {
                complaints.push(format!("{name}: fits now; take its {known} off the list"));
            }
            Some(&known) if lines < known => {
                complaints
                    .push(format!("{name}: {lines} lines now; lower its {known} in the list"));
            }
            Some(&known) if lines > known => {
                complaints.push(format!("{name}: grew from {known} to {lines} lines"))
            }
            None if lines > limit => {
                complaints.push(format!("{name}: {lines} lines, at most {limit}"))
            }
            _ => {}
        }
    }
    let gone = larger.keys().filter(|name| !sizes.contains_key(**name));
    complaints.extend(gone.map(|name| format!("{name}: on the list, but there is no such thing")));
    complaints
}

/// Calls of `unwrap()` outside tests.
pub(crate) fn unwraps(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in tree.rust().filter(|file| !is_test(file)) {
        let found = findings(file, &tree.text(file).unwrap_or_default());
        complaints.extend(
            found
                .unwraps
                .iter()
                .map(|line| format!("{file}:{line}: say why it holds with `expect`")),
        );
    }
    complaints
}

/// Names resolved and connections opened elsewhere than at the doors.
pub(crate) fn doors(tree: &Tree) -> Vec<String> {
    let ships = |file: &&str| !is_test(file) && !TOOLS.iter().any(|tool| file.starts_with(tool));
    let is_door = |file: &str| DOORS.iter().any(|(door, _)| *door == file);
    let mut complaints = Vec::new();
    for file in tree.rust().filter(ships).filter(|file| !is_door(file)) {
        let found = findings(file, &tree.text(file).unwrap_or_default());
        complaints.extend(found.doors.iter().map(|line| {
            format!("{file}:{line}: goes past the door for what objects name: use stream::open")
        }));
    }
    complaints
}

/// Files that do not open with a sentence about themselves.
pub(crate) fn first_lines(tree: &Tree) -> Vec<String> {
    tree.rust()
        .filter(|file| !tree.text(file).unwrap_or_default().starts_with("//! "))
        .map(|file| format!("{file}: must open with a line `//! <what this file is about>.`"))
        .collect()
}

/// Whether the whole file is test code.
fn is_test(file: &str) -> bool {
    let folders = file.split('/').any(|folder| folder == "tests" || folder == "benches");
    folders || file.ends_with("/tests.rs")
}

/// What each file had to say, by its path and its text: parsing is nearly all that these tests compute.
static FOUND: Mutex<BTreeMap<(String, String), Arc<Findings>>> = Mutex::new(BTreeMap::new());

/// What a file has to say; no two tests parse it.
fn findings(file: &str, text: &str) -> Arc<Findings> {
    // Whoever panicked in here has left nothing half done.
    let mut found = FOUND.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let place = found.entry((file.to_owned(), text.to_owned()));
    place.or_insert_with(|| Arc::new(parsed(file, text))).clone()
}

fn parsed(file: &str, text: &str) -> Findings {
    let parsed = syn::parse_file(text).unwrap_or_else(|error| {
        let at = error.span().start();
        panic!("{file}:{}:{}: {error}", at.line, at.column)
    });
    let mut findings = Findings::default();
    findings.visit_file(&parsed);
    findings
}

impl Findings {
    fn function(&mut self, name: &syn::Ident, from: Span, to: Span) {
        let lines = to.end().line - from.start().line + 1;
        let known = self.functions.entry(name.to_string()).or_default();
        *known = lines.max(*known);
    }

    /// Runs `visit`, on test code if `attributes` say so.
    fn maybe_test(
        &mut self,
        attributes: &[syn::Attribute],
        span: Span,
        visit: impl FnOnce(&mut Self),
    ) {
        let is_test = attributes.iter().any(marks_test);
        if !is_test || self.within_test {
            return visit(self);
        }
        self.test_lines += span.end().line - span.start().line + 1;
        self.within_test = true;
        visit(self);
        self.within_test = false;
    }
}

/// `#[test]`, `#[tokio::test]`, `#[cfg(test)]`, `#[cfg(all(test, …))]`.
pub(crate) fn marks_test(attribute: &syn::Attribute) -> bool {
    let path = attribute.path();
    let last = path.segments.last().map(|segment| segment.ident.to_string());
    if path.is_ident("cfg") {
        let condition =
            attribute.meta.require_list().map(|list| list.tokens.to_string()).unwrap_or_default();
        return condition == "test" || condition.replace(' ', "").starts_with("all(test,");
    }
    last.as_deref() == Some("test")
}

impl<'ast> Visit<'ast> for Findings {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig.ident, item.sig.span(), item.block.span());
        self.maybe_test(&item.attrs, item.span(), |this| visit::visit_item_fn(this, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig.ident, item.sig.span(), item.block.span());
        self.maybe_test(&item.attrs, item.span(), |this| visit::visit_impl_item_fn(this, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig.ident, item.sig.span(), block.span());
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.maybe_test(&item.attrs, item.span(), |this| visit::visit_item_mod(this, item));
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.maybe_test(&item.attrs, item.span(), |this| visit::visit_item_impl(this, item));
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        let mut names = path.path.segments.iter().rev().map(|segment| segment.ident.to_string());
        let (function, of) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
        let opens =
            |&(known, name): &(&str, &str)| name == function && (known.is_empty() || known == of);
        if OPENS.iter().any(opens) && !self.within_test {
            self.doors.push(path.span().start().line);
        }
        visit::visit_expr_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if call.method == "unwrap" && call.args.is_empty() && !self.within_test {
            self.unwraps.push(call.method.span().start().line);
        }
        visit::visit_expr_method_call(self, call);
    }
}

#[test]
fn sizes_leave_tests_out_and_unwraps_are_found() {
    let text = "fn a() {\n    b.unwrap(); net::TcpStream::connect(c);\n}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn c() { d.unwrap() }\n}\n";
    let found = parsed("a.rs", text);
    assert_eq!(found.functions, BTreeMap::from([("a".to_owned(), 3), ("c".to_owned(), 1)]));
    assert_eq!((found.unwraps, found.doors, found.test_lines), (vec![2], vec![2], 5));
}

#[test]
fn exceptions_only_shrink() {
    let sizes = |lines| BTreeMap::from([("a".to_owned(), (lines, 70))]);
    let larger = BTreeMap::from([("a", 80)]);
    assert!(over_limit(&sizes(80), &larger).is_empty());
    for wrong in [60, 75, 81] {
        assert_eq!(over_limit(&sizes(wrong), &larger).len(), 1, "{wrong}");
    }
    assert_eq!(over_limit(&BTreeMap::new(), &larger).len(), 1);
    assert_eq!(over_limit(&sizes(71), &BTreeMap::new()).len(), 1);
}
