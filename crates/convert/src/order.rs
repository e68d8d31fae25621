//! Which paths of a host go first. Routes ask expressions before prefixes, and of two expressions that are as long the
//! older one; hosts of Ingresses ask the longer text, then the greater one. Nothing is open for that.

use crate::keys::GUARD_REMEDY;
use crate::lost::Weight;
use crate::paths::Path;
use crate::rules::{Room, Said};
use model::{Location, Server, fixed_start};
use objects::ObjectKey;
use std::cmp::Reverse;
use std::collections::HashMap;

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
    if server.regex {
        as_long(room, server, all, &expressions);
        prefixes(room, server, all);
    }
    if !room.is_ours {
        of_others(room, server, all, &expressions);
    }
}

/// Where a host with expressions asks a location: the longer text first, then the greater one.
pub(crate) fn asked(location: &Location) -> (Reverse<usize>, Reverse<&str>) {
    let path = location.path.as_str();
    (Reverse(path.len()), Reverse(path))
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
    let asked = |at: usize| (asked(all[at].1), at);
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

/// Of expressions of two Ingresses that are as long, whose routes ask the older one first, or that of the lesser name.
fn as_long(
    room: &mut Room<'_, '_>,
    server: &Server,
    all: &mut [One<'_>],
    expressions: &[Expression],
) {
    let mut by_length: HashMap<usize, Vec<&Expression>> = HashMap::new();
    for one in expressions {
        by_length.entry(one.length).or_default().push(one);
    }
    for other in expressions {
        let is_before = |one: &&&Expression| {
            let (of, location, said) = &all[one.at];
            let (theirs, later, _) = &all[other.at];
            let is_first = asked(location) < asked(later) && of != theirs && !said.is_closed;
            is_first && meet(&one.start, &other.start)
        };
        let one = by_length[&other.length].iter().find(is_before).map(|one| one.at);
        if let Some(one) = one {
            goes_before(room, server, all, (other.at, one));
        }
    }
}

/// Of prefixes that were expressions routes ask the longer one first: it may have been the shorter expression.
fn prefixes(room: &mut Room<'_, '_>, server: &Server, all: &mut [One<'_>]) {
    let bare = |said: &Said| match &said.path {
        Some(Path::Prefix(path)) => Some(path.strip_suffix('/').unwrap_or(path).to_owned()),
        _ => None,
    };
    let mut by_prefix: HashMap<String, Vec<usize>> = HashMap::new();
    let places: Vec<(usize, String)> = all
        .iter()
        .enumerate()
        .filter(|(_, (_, _, said))| !said.is_nobodys)
        .filter_map(|(at, (_, _, said))| Some((at, bare(said)?)))
        .collect();
    for (at, prefix) in &places {
        by_prefix.entry(prefix.clone()).or_default().push(*at);
    }
    for (other, prefix) in &places {
        // The prefix itself, and those that it is below.
        let above = prefix.match_indices('/').map(|(end, _)| &prefix[..end]);
        let mut above = above.chain([prefix.as_str()]).flat_map(|above| by_prefix.get(above));
        let is_before = |one: &usize| {
            let ((of, location, _), (theirs, later, _)) = (&all[*one], &all[*other]);
            // One route asks its own in the order of the host, where they are as long.
            let is_own = of == theirs && bare(&all[*one].2).as_ref() == Some(prefix);
            asked(location) < asked(later) && !is_own
        };
        let one = above.find_map(|some| some.iter().copied().find(is_before));
        if let Some(one) = one {
            goes_before(room, server, all, (*other, one));
        }
    }
}

/// Says that a path goes before another one, which was asked first; closes it, if that is closed.
fn goes_before(
    room: &mut Room<'_, '_>,
    server: &Server,
    all: &mut [One<'_>],
    (other, one): (usize, usize),
) {
    let ((of, location, said), (theirs, later, _)) = (&all[one], &all[other]);
    let (path, is_closed) = (location.path.clone(), said.is_closed);
    // As good as each other, and applied together, the lesser name decides.
    let is_alike =
        said.path.as_ref().map(Path::length) == all[other].2.path.as_ref().map(Path::length);
    let (weight, reason) = if is_alike && of < theirs {
        let reason = format!(
            "{} goes before {path}, which was asked first, where its route is the older one",
            later.path
        );
        (Weight::Note, reason)
    } else {
        (Weight::Lost, format!("{} goes before {path}, which was asked first", later.path))
    };
    let remedy = format!("apply the routes of {} first, or write paths that do not meet", of.name);
    room.ledger.stand_at(Some((server, path.as_str())));
    room.ledger.add(Some(&of.clone()), &format!("path {path}"), weight, reason, remedy);
    if is_closed {
        close(room, server, &path, &mut all[other]);
    }
}

/// Where the class is another one, nobody knows here which of an expression and a prefix is asked first, nor of two
/// expressions: whatever may be asked before a closed one is closed.
fn of_others(
    room: &mut Room<'_, '_>,
    server: &Server,
    all: &mut [One<'_>],
    expressions: &[Expression],
) {
    for (of, location, _) in expressions.iter().map(|one| &all[one.at]) {
        let reason = "which of an expression and another path is asked first, which syntax it has, and whether it has to match \
                      all of a path, is the implementation's; it is written for Fairway's reading";
        let remedy =
            "look into the documentation of the implementation, or write Prefix and Exact paths";
        room.ledger.stand_at(Some((server, location.path.as_str())));
        room.ledger.add(Some(of), "use-regex", Weight::Lost, reason, remedy);
    }
    let closed: Vec<&Expression> =
        expressions.iter().filter(|one| all[one.at].2.is_closed).collect();
    for index in 0..all.len() {
        let start = match &all[index].2.path {
            Some(Path::Regex(_)) => fixed_start(&all[index].1.path).to_ascii_lowercase(),
            Some(Path::Prefix(path) | Path::Exact(path)) => path.to_ascii_lowercase(),
            None => continue,
        };
        let guarded = closed.iter().find(|one| one.at != index && meet(&one.start, &start));
        if let Some(guarded) = guarded.map(|one| all[one.at].1.path.clone()) {
            close(room, server, &guarded, &mut all[index]);
        }
    }
}

/// Closes what goes before a path with a guard.
fn close(room: &mut Room<'_, '_>, server: &Server, path: &str, one: &mut One<'_>) {
    let (theirs, location, said) = one;
    if said.is_closed {
        return;
    }
    said.close();
    // Of others nobody knows.
    let goes = if room.is_ours { "goes" } else { "may go" };
    let reason =
        format!("{} {goes} before {path}, which was asked first and is guarded", location.path);
    let key = format!("path {}", location.path);
    room.ledger.stand_at(Some((server, location.path.as_str())));
    room.ledger.add(Some(theirs), &key, Weight::Closed, reason, GUARD_REMEDY);
}
