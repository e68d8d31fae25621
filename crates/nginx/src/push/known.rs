//! The sorts of things that are pushed: where each goes, how it is written, and who is told if there is no room for it.

use super::backends::{Backend, Gone};
use super::room::{Excess, Item, Share, room};
use super::servers::{Host, Kept, in_pem};
use http::Method;
use model::{Kind, Origin, Problem, Severity};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Things of one sort, by key.
pub(super) type Things<V> = BTreeMap<Arc<str>, V>;

/// Something of which nginx is told.
pub(super) trait Pushed: Clone + PartialEq + Send + Sync {
    /// The request that adds and takes away.
    const REQUEST: (Method, &'static str);

    /// Bytes of it at most.
    fn bytes(&self) -> usize;

    /// Whose it is.
    fn namespace(&self) -> &str;

    /// What is sent; none is taken away.
    fn body(things: &[(&str, Option<&Self>)]) -> Vec<u8>;

    /// The object that is told, what it lacks, and what becomes of that.
    fn lack(&self, key: &str) -> (Origin, String);
}

/// A text of routes.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) text: Arc<str>,
    origin: Option<Arc<Origin>>,
}

impl Text {
    pub(super) fn new(text: String, origin: Option<&Arc<Origin>>) -> Self {
        Self { text: text.into(), origin: origin.cloned() }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// Leaves out what a namespace has no room for; its owners are told. `is_now`: what only workers need that leave has
/// half a share of its own, and nobody misses it.
pub(super) fn keep<V: Pushed>(
    things: &mut Things<V>,
    share: Share,
    is_now: impl Fn(&str) -> bool,
    problems: &mut Vec<Problem>,
) {
    for (now, share) in [(true, share), (false, share.half())] {
        let items: Vec<_> = things
            .iter()
            .filter(|(key, _)| is_now(key) == now)
            .map(|(key, thing)| Item {
                namespace: thing.namespace(),
                object: key.clone(),
                key,
                bytes: room(key.len(), thing.bytes()),
            })
            .collect();
        for (key, Excess { asked, allowed }) in share.beyond(&items) {
            let Some(thing) = things.remove(&key).filter(|_| now) else { continue };
            let reason = format!(
                "all of this sort of namespace {:?} takes {asked} bytes of nginx's memory, which has {allowed} for it",
                thing.namespace()
            );
            problems.push(problem(&thing, &key, &reason));
        }
    }
}

/// What is told to the owner of something that nginx does not have.
pub(super) fn problem(thing: &impl Pushed, key: &str, reason: &str) -> Problem {
    let (origin, lack) = thing.lack(key);
    let (key, severity) = (None, Severity::Error);
    Problem { origin, key, severity, message: format!("nginx lacks {lack} ({reason})").into() }
}

/// What stands for whatever is nobody's.
fn of_namespace(namespace: &str) -> Origin {
    Origin::new(Kind::Namespace, "", namespace)
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("texts, numbers and lists are JSON")
}

impl Pushed for Backend {
    const REQUEST: (Method, &'static str) = (Method::PATCH, "/configuration/backends");

    fn bytes(&self) -> usize {
        self.length()
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn body(things: &[(&str, Option<&Self>)]) -> Vec<u8> {
        #[derive(Serialize)]
        #[serde(untagged)]
        enum Entry<'a> {
            There(&'a Backend),
            Gone(Gone<'a>),
        }
        let entries = things.iter().map(|(name, thing)| match thing {
            Some(backend) => Entry::There(backend),
            None => Entry::Gone(Gone::new(name)),
        });
        json(&entries.collect::<Vec<_>>())
    }

    fn lack(&self, key: &str) -> (Origin, String) {
        let origin = self.origin.as_ref().map(|origin| Origin::clone(origin));
        let lack = format!(
            "the endpoints of {key}, so what leads there is answered 503; lead to fewer Services, or Services of fewer \
             endpoints"
        );
        (origin.unwrap_or_else(|| of_namespace(&self.namespace)), lack)
    }
}

impl Pushed for Text {
    const REQUEST: (Method, &'static str) = (Method::POST, "/configuration/routes");

    fn bytes(&self) -> usize {
        self.text.len()
    }

    fn namespace(&self) -> &str {
        self.origin.as_ref().map_or("", |origin| &origin.namespace)
    }

    fn body(things: &[(&str, Option<&Self>)]) -> Vec<u8> {
        let text =
            |thing: Option<&Self>| thing.map_or(String::new(), |thing| thing.text.to_string());
        json(&things.iter().map(|(key, thing)| (*key, text(*thing))).collect::<BTreeMap<_, _>>())
    }

    fn lack(&self, key: &str) -> (Origin, String) {
        let origin = self.origin.as_ref().map(|origin| Origin::clone(origin));
        let lack = format!(
            "\"{key}\", so paths are served without its session, hash or canary; write a shorter upstream-hash-by, or \
             fewer paths with affinity or a canary"
        );
        (origin.unwrap_or_else(|| of_namespace("")), lack)
    }
}

impl Pushed for Kept {
    const REQUEST: (Method, &'static str) = (Method::POST, "/configuration/servers");

    fn bytes(&self) -> usize {
        self.length()
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn body(things: &[(&str, Option<&Self>)]) -> Vec<u8> {
        let pem =
            |thing: Option<&Self>| thing.map_or(String::new(), |thing| in_pem(&thing.certificate));
        let certificates = things.iter().map(|(uid, thing)| (*uid, pem(*thing)));
        json(&BTreeMap::from([("certificates", certificates.collect::<BTreeMap<_, _>>())]))
    }

    fn lack(&self, _: &str) -> (Origin, String) {
        let id = self.certificate.id.as_str();
        let (namespace, name) = id.split_once('/').unwrap_or(("", id));
        let lack = "its certificate, so its hosts have the default one; write shorter chains, or fewer certificates";
        (Origin::new(Kind::Secret, namespace, name), lack.to_owned())
    }
}

impl Pushed for Host {
    const REQUEST: (Method, &'static str) = Kept::REQUEST;

    fn bytes(&self) -> usize {
        self.uid.len()
    }

    fn namespace(&self) -> &str {
        self.origin.as_ref().map_or("", |origin| &origin.namespace)
    }

    fn body(things: &[(&str, Option<&Self>)]) -> Vec<u8> {
        let uid =
            |thing: Option<&'_ Self>| thing.map_or("-1".to_owned(), |host| host.uid.to_string());
        let servers = things.iter().map(|(host, thing)| (*host, uid(*thing)));
        json(&BTreeMap::from([("servers", servers.collect::<BTreeMap<_, _>>())]))
    }

    fn lack(&self, key: &str) -> (Origin, String) {
        let origin = self.origin.as_ref().map(|origin| Origin::clone(origin));
        let lack = format!(
            "who has which certificate for {key}, so it has the default one, and plain HTTP is not redirected; ask for \
             fewer hosts with TLS"
        );
        (origin.unwrap_or_else(|| of_namespace("")), lack)
    }
}
