//! The tables of `tests/balance`: what every implementation of these algorithms has to give, whatever its language.

use balance::{Asked, Claim, Cookie, Kept, Needs, Roster, Side, side, upstream_key};
use model::policy::{AffinityMode, CanaryHeader, CanaryRules, CanaryTest};
use model::{Endpoints, Pattern, Steps, UpstreamId};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

/// The rows of a table, without comments, each with `N` cells.
fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        cells.try_into().unwrap_or_else(|_| panic!("a row of {N} cells: {line:?}"))
    })
}

fn addresses(text: &str) -> Vec<SocketAddr> {
    text.split(' ').map(|address| address.parse().expect("an address")).collect()
}

fn roster(upstream: &str, endpoints: &str) -> Roster {
    let endpoints = Endpoints { ready: addresses(endpoints), draining: Vec::new() };
    Roster::new(&UpstreamId::new(upstream), Arc::new(endpoints), None, &Needs::default(), 0)
}

fn claim(mode: AffinityMode, session: Option<&str>) -> Claim<'_> {
    Claim { mode, session, failed: &[], change_on_failure: false }
}

#[test]
fn keys_belong_to_the_endpoints_that_the_table_says() {
    let table = include_str!("../../../tests/balance/hash.tsv");
    for [endpoints, key, owner] in rows(table) {
        let found = roster("u", endpoints).by_hash(key.as_bytes());
        assert_eq!(found, Some(addresses(owner)[0]), "{key}");
    }
}

#[test]
fn keys_belong_to_the_sets_that_the_table_says() {
    let table = include_str!("../../../tests/balance/subset.tsv");
    for [endpoints, size, key, set] in rows(table) {
        let roster = roster("u", endpoints);
        let size: NonZeroU32 = size.parse().expect("a size");
        let member = |at| roster.by_subset(key.as_bytes(), size, |_| at).expect("endpoints");
        let found: BTreeSet<SocketAddr> = (0..size.get() as usize).map(member).collect();
        assert_eq!(found, addresses(set).into_iter().collect(), "{endpoints} by {size}: {key}");
    }
}

#[test]
fn session_cookies_have_the_parts_that_the_table_says() {
    let table = include_str!("../../../tests/balance/sessions.tsv");
    for [upstream, endpoint, first, second] in rows(table) {
        assert_eq!(upstream_key(upstream), second);
        let roster = roster(upstream, endpoint);
        let choose = |session: Option<&str>| {
            roster.sessions().choose(
                claim(AffinityMode::Persistent, session),
                |_| String::new(),
                |_| 0,
            )
        };
        let address = addresses(endpoint)[0];
        assert_eq!(choose(None), Some(Kept::New(address, first.to_owned())));
        assert_eq!(choose(Some(first)), Some(Kept::Same(address)));
        let value = Cookie::written(first, second);
        let read = Cookie { endpoint: first, upstream: Some(second), times: None };
        assert_eq!(Cookie::read(&value), Some(read));
    }
}

#[test]
fn balanced_sessions_are_hashed_as_keys_are() {
    let table = include_str!("../../../tests/balance/hash.tsv");
    for [endpoints, key, owner] in rows(table) {
        let roster = roster("u", endpoints);
        let claim = claim(AffinityMode::Balanced, Some(key));
        let found = roster.sessions().choose(claim, |_| String::new(), |_| 0);
        assert_eq!(found, Some(Kept::Same(addresses(owner)[0])), "{key}");
    }
}

#[test]
fn requests_go_to_the_side_that_the_table_says() {
    let table = include_str!("../../../tests/balance/canary.tsv");
    let given = |cell: &'static str| (cell != "-").then_some(cell);
    let named = |side: &str| if side == "canary" { Side::Canary } else { Side::Main };
    for row in rows(table) {
        let [header, test, by_cookie, weight, total, session, value, cookie, draw, wanted] = row;
        let rules = CanaryRules {
            header: given(header)
                .map(|name| CanaryHeader { name: name.to_owned(), test: read(test) }),
            cookie: given(by_cookie).map(str::to_owned),
            weight: weight.parse().expect("a weight"),
            weight_total: total.parse().expect("a total"),
        };
        let asked = Asked {
            session: given(session).map(named),
            header: given(value),
            cookie: given(cookie).filter(|_| rules.cookie.is_some()),
        };
        let draw: u32 = draw.parse().expect("a number");
        let found = side(&rules, asked, &Steps::default(), |below| {
            assert!(draw < below, "{row:?}");
            draw
        });
        assert_eq!(found, Ok(named(wanted)), "{row:?}");
    }
}

fn read(test: &str) -> CanaryTest {
    match test.split_once('=') {
        Some(("value", value)) => CanaryTest::Value(value.to_owned().into()),
        Some((_, pattern)) => CanaryTest::Pattern(Pattern::new(pattern, false).expect("a pattern")),
        None if test == "broken" => CanaryTest::Never,
        None => CanaryTest::Word,
    }
}
