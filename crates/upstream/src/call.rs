//! Requests of our own: to the servers of external authentication, to mirrors, for error pages. They go to the
//! endpoints of an upstream through the same pools, with the time-outs and retries of the location that asks.

use crate::retry::{is_idempotent, tries_left};
use crate::{Cause, Group, Head, Names, Outgoing, Pool, Target, Try, TryError, send};
use http::{Method, StatusCode};
use imbl::OrdMap;
use model::policy::{Policy, UpstreamTls};
use model::{UpstreamId, Url};
use std::rc::Rc;
use std::sync::Arc;
use tls::{Profile, Profiles};
use wire::{Body, Response, Spool};

/// A URL of the Configuration, compiled.
#[derive(Debug)]
pub struct Destination {
    /// What it was made of.
    pub url: Url,
    /// Who is behind it; none if its host has variables.
    group: Option<Arc<Group>>,
    tls: Option<Arc<Profile>>,
}

/// Where a request of our own goes.
#[derive(Clone, Debug)]
pub struct Way {
    /// Who is there.
    pub group: Arc<Group>,
    /// TLS towards them; none: in clear.
    pub tls: Option<Arc<Profile>>,
}

/// A request of our own.
#[derive(Debug)]
pub struct Call<'a> {
    /// The method, for what it says about the answer's body.
    pub method: &'a Method,
    /// The head; every try gets one like it.
    pub head: Head,
    /// The body; every try gets all of it.
    pub body: Option<&'a Spool>,
    /// Whose time-outs, retries and bounds count.
    pub policy: &'a Policy,
    /// The namespace that it is sent for.
    pub whose: &'a Arc<str>,
    /// The request that makes it necessary.
    pub cause: Cause<'a>,
}

impl Destination {
    /// Where `url` leads. TLS sends the host as SNI and verifies nothing (ngx_http_proxy_module's defaults with
    /// `proxy_ssl_server_name on`).
    pub fn new(
        url: &Url,
        groups: &OrdMap<UpstreamId, Arc<Group>>,
        profiles: &Profiles,
    ) -> Result<Self, rustls::Error> {
        let name = url.authority.literal().map(|authority| host_of(authority).to_owned());
        let settings = UpstreamTls { name, server_name: true, ..UpstreamTls::default() };
        let tls = url.secure.then(|| profiles.profile(&settings, false)).transpose()?;
        let group = url.upstream.as_ref().and_then(|id| groups.get(id)).cloned();
        Ok(Self { url: url.clone(), group, tls })
    }

    /// Whether it is known that nobody is there: endpoints of a Service, of which none is ready.
    pub fn has_nobody(&self) -> bool {
        let group = self.group.as_ref();
        group.is_some_and(|group| group.is_empty() && group.followed().is_none())
    }

    /// Where it leads with this authority.
    pub async fn way_to(&self, authority: &str, names: &Names, whose: &Arc<str>) -> Option<Way> {
        if let Some(group) = &self.group {
            return Some(Way { group: group.clone(), tls: self.tls.clone() });
        }
        let (host, port) = wire::host::parse(authority.as_bytes())
            .ok()
            .map(|host| (host.name.into_owned(), host.port))?;
        let port = port.unwrap_or(if self.url.secure { 443 } else { 80 });
        let endpoints = names.lookup(&host, port, whose).await?;
        let group = Arc::new(Group::new(UpstreamId::new(authority), endpoints));
        let tls = self.tls.as_ref().map(|profile| Arc::new(profile.named(&host)));
        Some(Way { group, tls })
    }
}

/// A host without its port.
pub fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => host,
        _ => authority,
    }
}

/// Why a request of our own has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nobody is there to answer.
    #[error("{0}")]
    NoEndpoints(String),
    /// All tries failed; this is the last one.
    #[error("{0}")]
    Failed(TryError),
}

/// Sends a request of our own. The tries are noted in `tries`; an answer's body is still to come.
pub async fn call(
    pool: &Rc<Pool>,
    way: &Way,
    call: &Call<'_>,
    tries: &mut Vec<Rc<Try>>,
) -> Result<Response, CallError> {
    let retries = &call.policy.retries;
    let endpoints = way.group.endpoints().usable().len();
    let (started, mut failed_tries, mut stale) = (wire::now(), 0, 0);
    loop {
        let nobody = || CallError::NoEndpoints(way.group.nobody());
        let address = way.group.pick().ok_or_else(nobody)?;
        let journal = Rc::new(Try::new(address));
        tries.push(journal.clone());
        let mut body = call.body.map_or_else(Body::empty, |spool| Body::spool(spool.again()));
        let mut outgoing = Outgoing {
            method: call.method,
            head: call.head.clone(),
            body: &mut body,
            upgrade: false,
            interim: &|_| {},
            policy: call.policy,
            whose: Some(call.whose),
            cause: call.cause,
        };
        let target = Target { address, tls: way.tls.clone() };
        let failed = match send(pool, &target, &mut outgoing, &journal).await {
            Ok(response) if response.status == StatusCode::SWITCHING_PROTOCOLS => {
                return Err(CallError::Failed(TryError::InvalidHeader));
            }
            Ok(response) => return Ok(response),
            Err(failed) => failed,
        };
        journal.failed(failed.error.status());
        let repeatable = failed.is_repeatable(is_idempotent(call.method, retries));
        if repeatable && failed.is_no_try(stale, call.method, retries) {
            stale += 1;
            tries.pop();
            continue;
        }
        failed_tries += 1;
        let more =
            failed_tries < endpoints && tries_left(failed_tries + stale as usize, retries, started);
        if !(more && repeatable && failed.error.retry(retries)) {
            return Err(CallError::Failed(failed.error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::host_of;

    #[test]
    fn the_host_has_no_port() {
        let hosts = ["a.test:8080", "[::1]:80", "[::1]"].map(host_of);
        assert_eq!(hosts, ["a.test", "[::1]", "[::1]"]);
    }
}
