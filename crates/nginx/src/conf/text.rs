//! From the tree to the text of nginx.conf, and from its lines back to the objects they came from.

use super::quote::quote;
use super::snippet::directives;
use super::tree::{Block, Directive, Node, Owner};
use model::{Kind, ServerName};
use std::collections::BTreeSet;
use std::ops::Range;

/// The text of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// What nginx reads.
    pub text: String,
    /// The lines that are somebody's, the inner ones after those that enclose them.
    owners: Vec<(Range<usize>, Owner)>,
    /// The lines of the servers of hosts.
    hosts: Vec<(Range<usize>, ServerName)>,
}

/// Values that cannot be written: the first one, and whose they all are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{directive} {why}")]
pub struct Unwritable {
    /// The directive that it belongs to.
    pub directive: String,
    /// What is wrong with it; completes a sentence.
    pub why: &'static str,
    /// Who has such a value.
    pub owners: BTreeSet<Owner>,
}

impl Text {
    /// Writes a tree.
    pub fn of(block: &Block) -> Result<Self, Unwritable> {
        let mut writer =
            Writer { out: Self::default(), line: 1, within: Vec::new(), unwritable: None };
        writer.block(block, 0);
        match writer.unwritable {
            None => Ok(writer.out),
            Some(unwritable) => Err(unwritable),
        }
    }

    /// Who has a variable, beside remarks. What this program writes has only variables that it knows.
    pub fn owners_of_variable(&self, name: &str) -> BTreeSet<&Owner> {
        let is_remark = |line: &str| line.trim_start().starts_with('#');
        let lines = (1..).zip(self.text.lines());
        let lines = lines.filter(|(_, line)| has_variable(line, name) && !is_remark(line));
        lines.filter_map(|(number, _)| self.owner_of(number)).collect()
    }

    /// Whose the location is that a line stands in.
    pub fn location_of(&self, line: usize) -> Option<&Owner> {
        let mut around = self.owners.iter().filter(|(lines, _)| lines.contains(&line));
        around.find(|(_, owner)| owner.key.is_none()).map(|(_, owner)| owner)
    }

    /// The host in whose server a line stands.
    pub fn host_of(&self, line: usize) -> Option<&ServerName> {
        self.hosts.iter().find(|(lines, _)| lines.contains(&line)).map(|(_, host)| host)
    }

    /// Whose a line is, counted from 1.
    pub fn owner_of(&self, line: usize) -> Option<&Owner> {
        self.innermost(line).map(|(_, owner)| owner)
    }

    /// Whether a line is the first one of what is somebody's, behind the remark that says so: the path of a location.
    pub fn begins_at(&self, line: usize) -> bool {
        self.innermost(line).is_some_and(|(lines, _)| lines.start + 1 == line)
    }

    fn innermost(&self, line: usize) -> Option<&(Range<usize>, Owner)> {
        let found = self.owners.iter().filter(|(lines, _)| lines.contains(&line));
        found.min_by_key(|(lines, _)| lines.len())
    }
}

/// Whether a text has a variable.
pub(super) fn has_variable(line: &str, name: &str) -> bool {
    line.split('$').skip(1).any(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest).strip_prefix(name);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
    })
}

const UNREADABLE: &str = "has a value that nginx cannot read: it is too long, or holds a NUL byte";
const ASTRAY: &str =
    "reaches beyond its place: a brace, a quote or a semicolon is missing or too many";

/// What would reach beyond the hosts of an Ingress, and why it has none.
const OF_ALL: [(&str, &str); 2] = [
    ("listen", "has a `listen`: its hosts have the ports that all have"),
    ("server_name", "has a `server_name`: its hosts have the names that it asks for as an Ingress"),
];

struct Writer<'a> {
    out: Text,
    line: usize,
    within: Vec<&'a Owner>,
    /// What cannot be written so far; the rest is looked at nevertheless.
    unwritable: Option<Unwritable>,
}

impl<'a> Writer<'a> {
    fn block(&mut self, block: &'a Block, depth: usize) {
        for node in block.nodes() {
            match node {
                Node::Directive(directive) => self.directive(directive, depth),
                Node::Raw { what, text, owner } => self.raw(what, text, owner.as_ref(), depth),
                Node::Owned { block, owner } => {
                    let begin = self.enter(owner.as_ref(), depth);
                    self.block(block, depth);
                    self.leave(owner.as_ref(), begin);
                }
                Node::Remark(text) => self.push(depth, &format!("# {text}")),
                Node::Code(text) => self.push(depth, text),
            }
        }
    }

    fn directive(&mut self, directive: &'a Directive, depth: usize) {
        let Directive { name, words, block, owner, host } = directive;
        if block.is_some() && depth <= 1 {
            self.push(0, "");
        }
        let begin = self.enter(owner.as_ref(), depth);
        let mut line = self.quoted(name.as_str(), name.as_str());
        for word in words {
            line.push(' ');
            line.push_str(&self.quoted(name.as_str(), word.as_str()));
        }
        match block {
            None => self.push(depth, &format!("{line};")),
            Some(block) => {
                self.push(depth, &format!("{line} {{"));
                self.block(block, depth + 1);
                self.push(depth, "}");
            }
        }
        self.leave(owner.as_ref(), begin);
        self.out.hosts.extend(host.iter().map(|host| (begin..self.line, host.clone())));
    }

    fn raw(&mut self, what: &str, text: &str, owner: Option<&'a Owner>, depth: usize) {
        let begin = self.enter(owner, depth);
        match directives(text).filter(|_| !text.contains('\0')) {
            None => self.refuse(what, ASTRAY),
            // The ConfigMap may.
            Some(all) if owner.is_some_and(|owner| owner.origin.kind != Kind::ConfigMap) => {
                let has = |name| all.iter().any(|words| words.first() == Some(name));
                if let Some((_, why)) = OF_ALL.iter().find(|(name, _)| has(name)) {
                    self.refuse(what, why);
                }
            }
            Some(_) => {}
        }
        self.push(depth, &format!("# {what}"));
        // As it was judged, byte by byte: a backslash takes what stands behind it along, be that a space or a new line.
        self.push(0, text);
        self.leave(owner, begin);
    }

    /// A remark says whose the following lines are. The line that it is.
    fn enter(&mut self, owner: Option<&'a Owner>, depth: usize) -> usize {
        let begin = self.line;
        if let Some(owner) = owner {
            self.within.push(owner);
            let name = self.quoted("remark", &owner.origin.to_string());
            self.push(depth, &format!("# {name}"));
        }
        begin
    }

    fn leave(&mut self, owner: Option<&'a Owner>, begin: usize) {
        if let Some(owner) = owner {
            self.within.pop();
            self.out.owners.push((begin..self.line, owner.clone()));
        }
    }

    fn quoted(&mut self, directive: &str, text: &str) -> String {
        quote(text).unwrap_or_else(|| {
            self.refuse(directive, UNREADABLE);
            String::new()
        })
    }

    fn refuse(&mut self, directive: &str, why: &'static str) {
        let owner = self.within.last().map(|owner| (*owner).clone());
        match &mut self.unwritable {
            Some(first) => first.owners.extend(owner),
            none => {
                let (directive, owners) = (directive.to_owned(), owner.into_iter().collect());
                *none = Some(Unwritable { directive, why, owners });
            }
        }
    }

    fn push(&mut self, depth: usize, line: &str) {
        if !line.is_empty() {
            (0..depth).for_each(|_| self.out.text.push_str("    "));
        }
        self.out.text.push_str(line);
        self.out.text.push('\n');
        self.line += 1 + line.matches('\n').count();
    }
}
