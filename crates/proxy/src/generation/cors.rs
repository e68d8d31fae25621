//! What CORS tells, written once for a generation.

use bytes::Bytes;
use model::policy::Cors;

pub(crate) const ORIGIN: &str = "Access-Control-Allow-Origin";
pub(crate) const CREDENTIALS: &str = "Access-Control-Allow-Credentials";
pub(crate) const METHODS: &str = "Access-Control-Allow-Methods";
pub(crate) const HEADERS: &str = "Access-Control-Allow-Headers";
pub(crate) const EXPOSE: &str = "Access-Control-Expose-Headers";
pub(crate) const MAX_AGE: &str = "Access-Control-Max-Age";

/// What every allowed origin is told at a location, besides its own name.
#[derive(Debug)]
pub struct Told {
    /// With every answer.
    pub always: Vec<(&'static str, Bytes)>,
    /// With the answers to preflights besides.
    pub preflight: Vec<(&'static str, Bytes)>,
}

impl Told {
    /// What a filter of a route says; a star where credentials are allowed is for the request to fill in.
    pub fn of_route(policy: &Cors) -> Self {
        let Cors { origins: _, credentials, methods, headers, expose, max_age } = policy;
        let mut always = Vec::with_capacity(2);
        if *credentials {
            always.push((CREDENTIALS, Bytes::from_static(b"true")));
        }
        if let Some(expose) = expose {
            always.push((EXPOSE, expose.clone().into()));
        }
        let lists = [(METHODS, methods), (HEADERS, headers)].into_iter();
        let said = lists.filter(|(_, list)| !(list.is_empty() || *credentials && *list == "*"));
        let said = said.map(|(name, list)| (name, list.clone().into()));
        let age = [(MAX_AGE, max_age.to_string().into())];
        Self { always, preflight: said.chain(age).collect() }
    }

    /// The headers of a policy, in the order of ingress-nginx.
    pub fn new(policy: &Cors) -> Self {
        let Cors { origins: _, credentials, methods, headers, expose, max_age } = policy;
        let mut told = Vec::with_capacity(5);
        if *credentials {
            told.push((CREDENTIALS, Bytes::from_static(b"true")));
        }
        told.push((METHODS, methods.clone().into()));
        told.push((HEADERS, headers.clone().into()));
        if let Some(expose) = expose {
            told.push((EXPOSE, expose.clone().into()));
        }
        told.push((MAX_AGE, max_age.to_string().into()));
        Self { always: told, preflight: Vec::new() }
    }
}
