//! What each crate comes to see through what it uses, and dependencies that nobody uses.

use crate::tree::Tree;
use proc_macro2::{TokenStream, TokenTree};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The packages that Cargo builds this workspace of.
pub(crate) struct Packages {
    packages: BTreeMap<String, Package>,
    members: Vec<String>,
}

struct Package {
    name: String,
    folder: String,
    uses: Vec<Use>,
}

/// A dependency.
struct Use {
    id: String,
    /// What code calls it.
    called: String,
    ships: bool,
}

impl Packages {
    /// Asks Cargo.
    pub(crate) fn ask() -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["metadata", "--format-version=1", "--offline", "--locked"]);
        let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "cargo metadata: {said}");
        Self::of(&serde_json::from_slice(&output.stdout).expect("cargo writes JSON"))
    }

    fn of(metadata: &Value) -> Self {
        let root = format!("{}/", text(&metadata["workspace_root"]));
        let mut packages = BTreeMap::new();
        for package in list(&metadata["packages"]) {
            let folder = text(&package["manifest_path"]).replace(&root, "");
            let folder = folder.trim_end_matches("Cargo.toml").to_owned();
            let found = Package { name: text(&package["name"]), folder, uses: Vec::new() };
            packages.insert(text(&package["id"]), found);
        }
        for node in list(&metadata["resolve"]["nodes"]) {
            let uses = list(&node["deps"]).iter().map(|found| Use {
                id: text(&found["pkg"]),
                called: text(&found["name"]),
                ships: list(&found["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev"),
            });
            let package = packages.get_mut(&text(&node["id"]));
            package.expect("what is resolved is a package").uses = uses.collect();
        }
        Self { packages, members: list(&metadata["workspace_members"]).iter().map(text).collect() }
    }

    /// The names of all packages that are compiled before a crate of this workspace, its tests apart.
    pub(crate) fn seen_by(&self, name: &str) -> BTreeSet<&str> {
        let own = self.members.iter().filter(|id| self.packages[*id].name == name);
        let mut next: Vec<&String> = own.collect();
        let mut seen = BTreeSet::new();
        while let Some(id) = next.pop() {
            let uses = self.packages[id].uses.iter().filter(|found| found.ships);
            next.extend(uses.map(|found| &found.id).filter(|id| seen.insert(*id)));
        }
        seen.into_iter().map(|id| self.packages[id].name.as_str()).collect()
    }

    /// Dependencies that no code names.
    pub(crate) fn unused(&self, tree: &Tree) -> Vec<String> {
        let mut complaints = Vec::new();
        for package in self.members.iter().map(|id| &self.packages[id]) {
            let below = |folder: &str| format!("{}{folder}", package.folder);
            let ships = ["src/", "build.rs"].map(below);
            let all = ["src/", "build.rs", "tests/", "benches/", "examples/"].map(below);
            let named = |folders: &[String]| {
                let files =
                    tree.rust().filter(|file| folders.iter().any(|it| file.starts_with(it)));
                let texts = files.filter_map(|file| tree.text(file));
                texts.flat_map(|text| named(&text)).collect::<BTreeSet<_>>()
            };
            let (in_what_ships, anywhere) = (named(&ships), named(&all));
            for found in &package.uses {
                let named = if found.ships { &in_what_ships } else { &anywhere };
                if !named.contains(&found.called) {
                    let file = below("Cargo.toml");
                    complaints
                        .push(format!("{file}: nobody uses {}", self.packages[&found.id].name));
                }
            }
        }
        complaints
    }

    /// Crates that Cargo cannot build by themselves: what they see of Kubernetes asks which version it is of, and a
    /// crate of this workspace that names one has to be seen, too.
    pub(crate) fn broken_alone(&self) -> Vec<String> {
        let members = self.members.iter().map(|id| &self.packages[id]);
        let names_it = |package: &Package| {
            package.uses.iter().any(|found| found.ships && found.called == "k8s_openapi")
        };
        let naming = members.clone().filter(|package| names_it(package));
        let naming: BTreeSet<&str> = naming.map(|package| package.name.as_str()).collect();
        let broken = members.filter(|package| {
            let seen = self.seen_by(&package.name);
            let is_named = naming.contains(package.name.as_str())
                || seen.iter().any(|name| naming.contains(name));
            seen.contains("k8s-openapi") && !is_named
        });
        broken
            .map(|package| {
                let file = format!("{}Cargo.toml", package.folder);
                format!(
                    "{file}: kube without k8s-openapi of the workspace; it does not build alone"
                )
            })
            .collect()
    }
}

/// The packages from elsewhere that a crate is made of on this platform: name and version.
pub(crate) fn external_of(name: &str) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["tree", "--locked", "--edges=normal", "--prefix=none", "--package", name]);
    let output = command.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    // Those of this workspace have their path behind them.
    let lines = text.lines().filter(|line| !line.contains("(/"));
    lines.map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The names that paths of a file begin with.
fn named(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if let Ok(tokens) = text.parse() {
        collect(tokens, &mut found);
    }
    found
}

fn collect(tokens: TokenStream, found: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_colon =
        |at: usize| matches!(&tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':');
    for (at, token) in tokens.iter().enumerate() {
        let name = match token {
            TokenTree::Group(group) => {
                collect(group.stream(), found);
                continue;
            }
            TokenTree::Ident(name) => name.to_string(),
            _ => continue,
        };
        let before = |steps: usize| at.checked_sub(steps).and_then(|at| tokens.get(at));
        let goes_on = is_colon(at + 1) && is_colon(at + 2);
        let is_used = matches!(before(1), Some(TokenTree::Ident(word)) if word == "use");
        let is_within = at > 2
            && is_colon(at - 1)
            && is_colon(at - 2)
            && matches!(before(3), Some(TokenTree::Ident(word)) if word != "use");
        if (goes_on || is_used) && !is_within {
            found.insert(name);
        }
    }
}

#[test]
fn names_that_paths_begin_with_are_found() {
    let text =
        "use a::b; use c as d; #[e::f] fn g(h: i::J<k::L>) { m!(n::o, ::p::q); crate::r::s() }";
    let found = named(text);
    let expected = ["a", "c", "crate", "e", "i", "k", "n", "p"];
    assert_eq!(found, expected.map(str::to_owned).into());
}

#[test]
fn what_is_seen_is_seen_through_others_but_not_through_tests() {
    let packages = ["a", "b", "c", "d"].map(|name| {
        serde_json::json!({"id": name, "name": name, "manifest_path": format!("r/{name}/Cargo.toml")})
    });
    let node = |id: &str, deps: &[(&str, Option<&str>)]| {
        let deps = deps.iter().map(|(name, kind)| {
            serde_json::json!({"name": name, "pkg": name, "dep_kinds": [{"kind": kind}]})
        });
        serde_json::json!({"id": id, "deps": deps.collect::<Vec<_>>()})
    };
    let metadata = serde_json::json!({
        "workspace_root": "r",
        "workspace_members": ["a"],
        "packages": packages,
        "resolve": {"nodes": [
            node("a", &[("b", None), ("d", Some("dev"))]),
            node("b", &[("c", Some("build"))]),
            node("c", &[]),
            node("d", &[]),
        ]},
    });
    let found = Packages::of(&metadata);
    assert_eq!(found.seen_by("a"), ["b", "c"].into());
}
