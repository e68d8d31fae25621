//! The names that a module defines, imports and uses, its tests left out.

use crate::code::marks_test;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, UseTree, Visibility};

/// What stands in a module.
#[derive(Default)]
pub(super) struct Contents {
    /// Names that it defines.
    pub(super) items: BTreeSet<String>,
    pub(super) imports: Vec<Import>,
    /// The paths of `use path::*`.
    pub(super) globs: Vec<Vec<String>>,
    /// Paths in its code, with their lines.
    pub(super) paths: Vec<(Vec<String>, usize)>,
    /// Modules that stand in it as blocks.
    pub(super) blocks: Vec<(String, Self)>,
    /// Names of modules that are files.
    pub(super) files: Vec<String>,
}

/// One name of a `use`.
pub(super) struct Import {
    pub(super) name: String,
    pub(super) path: Vec<String>,
    /// Whether others get the name from here.
    pub(super) passed_on: bool,
    pub(super) line: usize,
}

/// What stands in `items`.
pub(super) fn of(items: &[Item]) -> Contents {
    let mut contents = Contents::default();
    for item in items {
        contents.visit_item(item);
        contents.items.extend(defined(item));
    }
    contents
}

/// The name that an item gives to what it defines.
fn defined(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

impl Contents {
    fn import(&mut self, tree: &UseTree, path: &mut Vec<String>, passed_on: bool) {
        let mut add = |name: &syn::Ident, original: &syn::Ident| {
            let mut path = path.clone();
            if original != "self" {
                path.push(original.to_string());
            }
            let name = if name == "self" { path.last().cloned() } else { Some(name.to_string()) };
            let (name, line) = (name.unwrap_or_default(), original.span().start().line);
            self.imports.push(Import { name, path, passed_on, line });
        };
        match tree {
            UseTree::Name(tree) => add(&tree.ident, &tree.ident),
            UseTree::Rename(tree) => add(&tree.rename, &tree.ident),
            UseTree::Glob(_) => self.globs.push(path.clone()),
            UseTree::Group(tree) => {
                tree.items.iter().for_each(|tree| self.import(tree, path, passed_on));
            }
            UseTree::Path(tree) => {
                path.push(tree.ident.to_string());
                self.import(&tree.tree, path, passed_on);
                path.pop();
            }
        }
    }

    /// Words joined by `::` in what a macro is called with; what follows a dot is a field or a method.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let colon =
            |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':');
        let dot =
            |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == '.');
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(first) => {
                    let line = first.span().start().line;
                    let is_field = at > 0 && dot(at - 1) && !(at > 1 && dot(at - 2));
                    let mut path = vec![first.to_string()];
                    while let (true, true, Some(TokenTree::Ident(next))) =
                        (colon(at + 1), colon(at + 2), tokens.get(at + 3))
                    {
                        path.push(next.to_string());
                        at += 3;
                    }
                    if !is_field {
                        self.paths.push((path, line));
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }
}

impl<'ast> Visit<'ast> for Contents {
    fn visit_item(&mut self, item: &'ast Item) {
        if !attributes(item).iter().any(marks_test) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let is_test = match item {
            ImplItem::Const(item) => item.attrs.iter().any(marks_test),
            ImplItem::Fn(item) => item.attrs.iter().any(marks_test),
            _ => false,
        };
        if !is_test {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        match &item.content {
            Some((_, items)) => self.blocks.push((item.ident.to_string(), of(items))),
            None => self.files.push(item.ident.to_string()),
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let passed_on = !matches!(item.vis, Visibility::Inherited);
        self.import(&item.tree, &mut Vec::new(), passed_on);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let line = path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
        let names = path.segments.iter().map(|segment| segment.ident.to_string());
        self.paths.push((names.collect(), line));
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        // A lone name is a macro's, which functions may share.
        if item.path.segments.len() > 1 {
            self.visit_path(&item.path);
        }
        self.tokens(item.tokens.clone());
    }

    /// Who may see something is not what it needs.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    /// Lints, and derives of other crates.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}
