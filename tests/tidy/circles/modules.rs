//! The modules of one program or library, and what a path means in each of them.

use super::Edges;
use super::names::{self, Contents, Import};
use std::collections::BTreeMap;

/// A module by its place in the list; the root is the first one.
type Id = usize;

/// Re-exports that lead through more re-exports than this lead in a circle.
const STEPS: usize = 32;

/// One module: a file, or a block in one.
struct Module {
    file: String,
    parent: Id,
    children: BTreeMap<String, Id>,
    contents: Contents,
}

/// All modules of one program or library, without its tests.
pub(super) struct Modules(Vec<Module>);

/// What a path means.
enum Meaning {
    Module(Id),
    /// Something that this module defines.
    Item(Id),
}

impl Modules {
    /// Reads the file `root` and all files that its modules are in.
    pub(super) fn read(root: &str, text: &impl Fn(&str) -> Option<String>) -> Self {
        let mut modules = Self(Vec::new());
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        modules.add_file(root, folder, 0, text);
        modules
    }

    fn add_file(
        &mut self,
        file: &str,
        folder: &str,
        parent: Id,
        text: &impl Fn(&str) -> Option<String>,
    ) -> Id {
        let source = text(file).unwrap_or_default();
        let parsed = syn::parse_file(&source).unwrap_or_else(|error| panic!("{file}: {error}"));
        self.add(file, folder, parent, names::of(&parsed.items), text)
    }

    fn add(
        &mut self,
        file: &str,
        folder: &str,
        parent: Id,
        mut contents: Contents,
        text: &impl Fn(&str) -> Option<String>,
    ) -> Id {
        let id = self.0.len();
        let (blocks, files) = (contents.blocks.split_off(0), contents.files.split_off(0));
        let children = BTreeMap::new();
        self.0.push(Module { file: file.to_owned(), parent, children, contents });
        for (name, inner) in blocks {
            let child = self.add(file, &format!("{folder}/{name}"), id, inner, text);
            self.0[id].children.insert(name, child);
        }
        for name in files {
            let (alone, within) = (format!("{folder}/{name}.rs"), format!("{folder}/{name}"));
            let file =
                if text(&alone).is_some() { alone } else { format!("{folder}/{name}/mod.rs") };
            let child = self.add_file(&file, &within, id, text);
            self.0[id].children.insert(name, child);
        }
        id
    }

    /// Which file needs which.
    pub(super) fn edges(&self) -> Edges {
        let mut edges = Edges::new();
        for (id, module) in self.0.iter().enumerate() {
            let used = module.contents.imports.iter().filter(|import| !import.passed_on);
            let used = used.map(|import| (&import.path, import.line));
            let said = module.contents.paths.iter().map(|(path, line)| (path, *line));
            for (path, line) in used.chain(said) {
                let Some(Meaning::Item(definer)) = self.meaning(id, path, STEPS) else { continue };
                let to = &self.0[definer].file;
                if *to != module.file {
                    let places = edges.entry((module.file.clone(), to.clone())).or_default();
                    places.insert((line, path.join("::")));
                }
            }
        }
        edges
    }

    /// What `path` means in the module `from`; none if it leads out of the crate, or to a local name.
    fn meaning(&self, from: Id, path: &[String], steps: usize) -> Option<Meaning> {
        let steps = steps.checked_sub(1)?;
        let (first, rest) = path.split_first()?;
        let mut here = match first.as_str() {
            "crate" => 0,
            "self" => from,
            "super" => self.0[from].parent,
            _ => match self.named(from, first, rest.is_empty(), steps)? {
                Meaning::Module(module) => module,
                item => return Some(item),
            },
        };
        for (at, name) in rest.iter().enumerate() {
            if name == "super" {
                here = self.0[here].parent;
                continue;
            }
            match self.named(here, name, at + 1 == rest.len(), steps) {
                Some(Meaning::Module(module)) => here = module,
                Some(item) => return Some(item),
                None => return Some(Meaning::Item(here)),
            }
        }
        Some(Meaning::Module(here))
    }

    /// What `name` is in the module `here`. A module and an item may share a name; the end of a path means the item.
    fn named(&self, here: Id, name: &str, is_end: bool, steps: usize) -> Option<Meaning> {
        let module = &self.0[here];
        let item = module.contents.items.contains(name).then_some(Meaning::Item(here));
        let child = || module.children.get(name).map(|&child| Meaning::Module(child));
        let own = if is_end { item.or_else(child) } else { child().or(item) };
        let imported = |import: &Import| self.meaning(here, &import.path, steps);
        let by_name = || module.contents.imports.iter().filter(|import| import.name == name);
        let globs = || module.contents.globs.iter();
        let through = |glob: &Vec<String>| match self.meaning(here, glob, steps)? {
            Meaning::Module(other) if other != here => {
                self.named(other, name, is_end, steps.checked_sub(1)?)
            }
            _ => None,
        };
        own.or_else(|| by_name().find_map(imported)).or_else(|| globs().find_map(through))
    }
}
