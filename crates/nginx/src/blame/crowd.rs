//! Leaving out hosts whose names crowd together in nginx's table of names. nginx multiplies by 31 and adds, so anybody
//! can write as many names of one hash as he likes, and it takes nothing at all where too many share a bucket; to close
//! paths would be of no use, since the names stay.

use super::{Fault, Instead, LeftOut};
use crate::conf::{self, HOST, Owner};
use model::{Alias, Configuration, Server, ServerName};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Bytes of one bucket at most: nginx has 65,536 for it, with a line of a processor's memory to spare.
const BYTES: usize = 60_000;
/// Chains in which nginx looks, one name after the other, whether a name is there already, and how long one may be.
const CHAINS: usize = 10_007;
const NAMES: usize = 500;
const REASON: &str = "too many names of hosts have the same hash as its own";

/// The hosts that are left out. Of a crowd those of whoever has most in it go.
pub(crate) fn crowded(next: &Configuration) -> LeftOut {
    let (mut rest, mut left_out) = (next.clone(), LeftOut::new());
    loop {
        let [_, buckets] = conf::table_of_names(&rest);
        let mut beyond = beyond(&rest, buckets, BYTES, conf::entry_of_name);
        beyond.extend(self::beyond(&rest, CHAINS, NAMES, |_| 1));
        if beyond.is_empty() {
            return left_out;
        }
        for name in beyond {
            let server = rest.servers.remove(&name);
            if let Some(owner) = server.and_then(|server| Owner::of_host(&server, HOST)) {
                let (reason, instead) = (REASON.to_owned(), Instead::Nothing);
                left_out.insert(owner, Fault { reason, instead, decided: true });
            }
        }
    }
}

/// Those of one bucket, by the namespace that has them.
type Crowd<'a> = BTreeMap<&'a str, (usize, Vec<(usize, &'a ServerName)>)>;

fn beyond(
    configuration: &Configuration,
    buckets: usize,
    most: usize,
    weight: fn(&str) -> usize,
) -> BTreeSet<ServerName> {
    let mut crowds: HashMap<usize, (usize, Crowd<'_>)> = HashMap::new();
    for server in configuration.servers.values() {
        // Who is nobody's is no tenant's.
        let Some(namespace) = namespace(server) else { continue };
        for name in names(server) {
            let weight = weight(name);
            let (all, crowd) = crowds.entry(hash(name) % buckets).or_default();
            let (own, hosts) = crowd.entry(namespace).or_default();
            (*all, *own) = (*all + weight, *own + weight);
            hosts.push((weight, &server.name));
        }
    }
    let mut beyond = BTreeSet::new();
    for (mut all, mut crowd) in crowds.into_values() {
        while all > most {
            let Some((own, hosts)) = crowd.values_mut().max_by_key(|(own, _)| *own) else { break };
            let Some((weight, host)) = hosts.pop() else { break };
            (all, *own) = (all - weight, *own - weight);
            beyond.insert(host.clone());
        }
    }
    beyond
}

fn namespace(server: &Server) -> Option<&str> {
    let origin = server.locations.iter().find_map(|location| location.origin.as_deref());
    server.owner.as_deref().or(origin.map(|origin| &*origin.namespace))
}

/// The names that are compared as a whole: a wildcard host is an expression.
fn names(server: &Server) -> impl Iterator<Item = &str> {
    let own = [Some(&server.name), server.www.as_ref()].into_iter().flatten();
    let aliases = server.aliases.iter().filter_map(|alias| match alias {
        Alias::Name(name) => Some(name),
        _ => None,
    });
    let names = own.chain(aliases).map(ServerName::as_str);
    names.filter(|name| !name.starts_with('*') && *name != "_")
}

/// ngx_hash_key.
fn hash(name: &str) -> usize {
    let bytes = name.bytes().map(|byte| usize::from(byte.to_ascii_lowercase()));
    bytes.fold(0, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte))
}
