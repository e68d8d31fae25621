//! What CORS tells, written once for a generation.

use bytes::Bytes;
use model::policy::Cors;

/// What every allowed origin is told at a location, besides its own name.
#[derive(Debug)]
pub struct Told(pub Vec<(&'static str, Bytes)>);

impl Told {
    /// The headers of a policy, in the order of ingress-nginx.
    pub fn new(policy: &Cors) -> Self {
        let Cors { origins: _, credentials, methods, headers, expose, max_age } = policy;
        let mut told = Vec::with_capacity(5);
        if *credentials {
            told.push(("Access-Control-Allow-Credentials", Bytes::from_static(b"true")));
        }
        told.push(("Access-Control-Allow-Methods", methods.clone().into()));
        told.push(("Access-Control-Allow-Headers", headers.clone().into()));
        if let Some(expose) = expose {
            told.push(("Access-Control-Expose-Headers", expose.clone().into()));
        }
        told.push(("Access-Control-Max-Age", max_age.to_string().into()));
        Self(told)
    }
}
