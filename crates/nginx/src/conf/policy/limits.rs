//! `limit-rps`, `limit-rpm`, `limit-connections`: zones that all paths of an Ingress share.

use super::super::location::At;
use super::super::tree::{put, words};
use super::super::variables::beside_default;
use super::super::{Block, Word, fingerprint};
use model::policy::{LimitKey, Limits, RequestLimit};

/// The size of a zone of requests, for some 8,000 clients, and of one of connections, for 32,000. Of the 5 MiB that
/// ingress-nginx gives each, nginx takes twice as much at once. Where requests are counted, whoever was away longest
/// makes room for somebody new; where connections are, somebody new is refused.
const REQUESTS: &str = ":1m";
const CONNECTIONS: &str = ":2m";
/// What nginx takes of each at once, as it does again in each test: it writes down that all pages are free.
const OF_REQUESTS: usize = 16 << 10;
const OF_CONNECTIONS: usize = 24 << 10;

/// The memory that nginx takes for the zones of an Ingress before anybody is counted.
pub(crate) fn taken(policy: &Limits) -> usize {
    let of_requests = [&policy.per_second, &policy.per_minute].into_iter().flatten().count();
    of_requests * OF_REQUESTS + policy.connections.map_or(0, |_| OF_CONNECTIONS)
}

pub(in crate::conf) fn write(policy: &Limits, at: &mut At<'_, '_>) {
    if policy.is_empty() {
        return;
    }
    let Limits {
        per_second,
        per_minute,
        connections,
        exempt: _,
        key: _,
        request_status,
        connection_status,
    } = policy;
    let owner = at.location.origin.as_deref().map(ToString::to_string).unwrap_or_default();
    // A zone keeps its counts as long as its name and its key stay: limits may change meanwhile.
    let id = fingerprint(owner.as_bytes());
    let key = declare_key(policy, &id, at);
    let mut zones = Block::default();
    let limits = [("minute", per_minute, 60), ("second", per_second, 1)];
    for (unit, limit, seconds) in limits {
        let Some(RequestLimit { rate, burst }) = limit else { continue };
        // nginx counts in thousandths and rounds down; this is the number that it makes of the same text.
        let number = (rate * seconds).div_ceil(1000);
        let rate = format!("rate={number}r/{}", if seconds == 60 { "m" } else { "s" });
        let zone = Word::from("zone=fairway_").then(unit).then("_").then(Word::plain(&id));
        put!(zones, "limit_req_zone", key.clone(), zone.clone().then(REQUESTS), Word::plain(rate));
        let burst = Word::from("burst=").then(burst / 1000);
        put!(at.block, "limit_req", zone, burst, "nodelay");
    }
    if let Some(most) = connections {
        let zone = Word::from("fairway_connections_").then(Word::plain(&id));
        let declared = Word::from("zone=").then(zone.clone()).then(CONNECTIONS);
        put!(zones, "limit_conn_zone", key, declared);
        put!(at.block, "limit_conn", zone, *most);
    }
    put!(at.block, "limit_req_status", *request_status);
    put!(at.block, "limit_conn_status", *connection_status);
    at.scope.declared.insert(format!("limits {id}"), zones);
}

/// The variable that tells clients apart: empty for who has no limit.
fn declare_key(policy: &Limits, id: &str, at: &mut At<'_, '_>) -> Word {
    let exempt = Word::plain(format!("$fairway_exempt_{id}"));
    let key = Word::plain(format!("$fairway_limited_{id}"));
    let mut nets = Block::default();
    nets.entry("default".into(), words![0_u8]);
    for net in beside_default(policy.exempt.iter().copied()) {
        nets.entry(net, words![1_u8]);
    }
    let value = match &policy.key {
        LimitKey::Address => Word::from("$binary_remote_addr"),
        LimitKey::Text(template) => Word::exact(template),
    };
    let mut keys = Block::default();
    keys.entry("0".into(), words![value]);
    keys.entry("default".into(), words![""]);
    let mut both = Block::default();
    let origin = at.location.origin.as_deref();
    both.open_for(origin, "geo", words!["$remote_addr", exempt.clone()], nets);
    both.open_for(origin, "map", words![exempt, key.clone()], keys);
    // Before the zones that count by it.
    at.scope.declared.insert(format!("key of limits {id}"), both);
    key
}
