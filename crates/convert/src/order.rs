//! Which paths of a host go first. Routes ask expressions before prefixes, and of two expressions that are as long the
//! older one; hosts of Ingresses ask the longer text, then the greater one. Nothing is open for that.

use crate::keys::GUARD_REMEDY;
use crate::lost::Weight;
use crate::paths::Path;
use crate::rules::{Room, Said};
use model::{Location, Server, fixed_start};
use objects::ObjectKey;
use std::cmp::Reverse;

/// What a location says, with the Ingress that it is of.
type One<'s> = (ObjectKey, &'s Location, Said);

/// An expression of a route.
struct Expression {
    /// Where it stands among all that the host says.
    at: usize,
    /// What all of its paths begin with, in lower case.
    start: String,
    /// Bytes of it as it is written: the longer one is asked first.
    length: usize,
}

/// Closes what would be asked before a path with a guard, and was asked after it.
pub(crate) fn keep(room: &mut Room<'_, '_>, server: &Server, all: &mut [One<'_>]) {
    let found = all.iter().enumerate().filter_map(|(at, (_, location, said))| {
        let Some(Path::Regex(written)) = &said.path else { return None };
        let start = fixed_start(&location.path).to_ascii_lowercase();
        Some(Expression { at, start, length: written.len() })
    });
    let expressions: Vec<Expression> = found.collect();
    before_prefixes(room, server, all, &expressions);
    before_one_another(room, server, all, &expressions);
}

/// Whether a path may begin with both texts.
fn meet(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Expressions go before prefixes; where the longer path was the prefix, it is the other one's now.
fn before_prefixes(
    room: &mut Room<'_, '_>,
    server: &Server,
    all: &mut [One<'_>],
    expressions: &[Expression],
) {
    for index in 0..all.len() {
        let (of, location, one) = &all[index];
        let Some(Path::Prefix(prefix)) = &one.path else { continue };
        let prefix = prefix.to_ascii_lowercase();
        let goes_before = |other: &&Expression| {
            all[other.at].1.path.len() < location.path.len() && meet(&other.start, &prefix)
        };
        let before: Vec<usize> =
            expressions.iter().filter(goes_before).map(|other| other.at).collect();
        let Some(first) = before.first().map(|other| &all[*other].1.path) else { continue };
        let (of, path, is_guarded) = (of.clone(), &location.path, one.is_closed);
        // One line for each path: as many as there are pairs would be too many to read, and to hold.
        let more = match before.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let reason = format!("{first} goes before {path}, which was asked first{more}");
        room.ledger.stand_at(Some((server, path.as_str())));
        room.ledger.add(Some(&of), "use-regex", Weight::Lost, reason, "write both as expressions");
        for other in before.into_iter().filter(|_| is_guarded) {
            close(room, server, path, &mut all[other]);
        }
    }
}

/// Of expressions that routes ask in another order, none that is open goes before one that is guarded.
fn before_one_another(
    room: &mut Room<'_, '_>,
    server: &Server,
    all: &mut [One<'_>],
    expressions: &[Expression],
) {
    let asked = |at: usize| {
        let path = all[at].1.path.as_str();
        (Reverse(path.len()), Reverse(path), at)
    };
    let (guarded, open): (Vec<&Expression>, _) =
        expressions.iter().partition(|one| all[one.at].2.is_closed);
    let open: Vec<&Expression> = open;
    let mut closed = Vec::new();
    for other in open {
        // Of two as long nobody knows here which one routes ask first: a method, headers, ages and names decide.
        let was_after = |one: &&&Expression| {
            other.length >= one.length
                && asked(one.at) < asked(other.at)
                && meet(&one.start, &other.start)
        };
        closed.extend(guarded.iter().find(was_after).map(|one| (other.at, one.at)));
    }
    for (other, one) in closed {
        let path = all[one].1.path.clone();
        close(room, server, &path, &mut all[other]);
    }
}

/// Closes what goes before a path with a guard.
fn close(room: &mut Room<'_, '_>, server: &Server, path: &str, one: &mut One<'_>) {
    let (theirs, location, said) = one;
    if said.is_closed {
        return;
    }
    said.close();
    let reason =
        format!("{} goes before {path}, which was asked first and is guarded", location.path);
    let key = format!("path {}", location.path);
    room.ledger.stand_at(Some((server, location.path.as_str())));
    room.ledger.add(Some(theirs), &key, Weight::Closed, reason, GUARD_REMEDY);
}
