//! Files that need one another: the largest set of files each of which leads to each.

use super::Edges;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The files of the largest circle, in order; none if there is no circle.
pub(super) fn largest(edges: &Edges) -> Vec<String> {
    let mut forth: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut back: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in edges.keys() {
        forth.entry(from).or_default().push(to);
        back.entry(to).or_default().push(from);
    }
    let mut largest = BTreeSet::new();
    let mut left: BTreeSet<&str> = forth.keys().copied().collect();
    while let Some(file) = left.first().copied() {
        let (after, before) = (reached(file, &forth), reached(file, &back));
        let circle: BTreeSet<&str> = after.intersection(&before).copied().collect();
        left.retain(|other| *other != file && !circle.contains(other));
        if circle.len() > largest.len() {
            largest = circle;
        }
    }
    largest.into_iter().map(str::to_owned).collect()
}

/// Where one comes to from `file` by one step or more.
fn reached<'a>(file: &'a str, steps: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next = vec![file];
    while let Some(file) = next.pop() {
        let new = steps.get(file).into_iter().flatten().copied();
        next.extend(new.filter(|file| reached.insert(*file)));
    }
    reached
}

/// What holds a circle together: each edge, the names that make it, and how large the circle is once it is cut.
pub(super) fn told(files: &[String], edges: &Edges) -> String {
    let inside = |(from, to): &(String, String)| files.contains(from) && files.contains(to);
    let held: Edges = edges
        .iter()
        .filter(|(edge, _)| inside(edge))
        .map(|(edge, names)| (edge.clone(), names.clone()))
        .collect();
    let mut text = String::new();
    for (edge, names) in &held {
        let mut rest = held.clone();
        rest.remove(edge);
        let names: Vec<String> =
            names.iter().map(|(line, name)| format!("{name} in line {line}")).collect();
        let left = largest(&rest).len();
        let line = format!("  {} → {} ({left} without): {}", edge.0, edge.1, names.join(", "));
        writeln!(text, "{line}").expect("a String takes everything");
    }
    text
}
