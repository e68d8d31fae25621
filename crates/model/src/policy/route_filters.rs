//! What filters of the Gateway API do at a location.

use super::UpstreamTls;
use crate::{Secret, UpstreamId};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// Filters of a route; what has any is of the Gateway API, and nothing that is said of Ingresses counts there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RouteFilters {
    /// Header fields towards the upstream.
    #[serde(skip_serializing_if = "HeaderEdits::is_empty")]
    pub request: HeaderEdits,
    /// Header fields of the answer.
    #[serde(skip_serializing_if = "HeaderEdits::is_empty")]
    pub response: HeaderEdits,
    /// The answer to every request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<RouteRedirect>,
    /// Another path towards the upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathChange>,
    /// Who is asked whether a request may pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<Arc<RouteGuard>>,
    /// Who gets copies of requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mirrors: Vec<RouteMirror>,
    /// How long a request may take until its answer begins, all tries together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
    /// How long each of its tries may take until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_of_try: Option<Duration>,
    /// What lies between two tries at least.
    #[serde(skip_serializing_if = "Duration::is_zero")]
    pub pause: Duration,
}

/// Somebody who is asked whether a request may pass (`ExternalAuth`). With a body it is sent whole: the location's
/// bound holds for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RouteGuard {
    /// Who it is.
    pub upstream: UpstreamId,
    /// TLS towards them; none: in clear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<UpstreamTls>,
    /// How they are asked.
    pub asked: GuardAsked,
    /// Fields of the request that they get, in lower case.
    pub headers: Vec<String>,
    /// Whether they get its body.
    pub body: bool,
}

/// How somebody is asked whether a request may pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum GuardAsked {
    /// With the method and the path of the request itself.
    Http {
        /// What stands before the path.
        prefix: String,
        /// Whether they are spoken to in HTTP/2.
        http2: bool,
        /// Fields of their answer that the backend gets and clients cannot say, in lower case; none: all.
        said: Vec<String>,
    },
    /// With a call of Envoy's `ext_authz`; without `headers` they get all fields.
    Grpc,
}

/// Changes of header fields: `set`, then `add`, then `remove`. Names are in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HeaderEdits {
    /// These fields have these values alone.
    pub set: Vec<(String, Secret<String>)>,
    /// These are added to what is there.
    pub add: Vec<(String, Secret<String>)>,
    /// These go.
    pub remove: Vec<String>,
}

impl HeaderEdits {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These edits, and others after them, as one.
    pub fn then(&mut self, next: Self) {
        for (name, value) in next.set {
            self.forget(&name);
            self.set.push((name, value));
        }
        for (name, value) in next.add {
            // What was taken away before has this value alone.
            match self.remove.iter().position(|removed| *removed == name) {
                Some(at) => {
                    self.remove.remove(at);
                    self.set.push((name, value));
                }
                None => self.add.push((name, value)),
            }
        }
        for name in next.remove {
            self.forget(&name);
            self.remove.push(name);
        }
    }

    fn forget(&mut self, name: &str) {
        self.set.retain(|(known, _)| known != name);
        self.add.retain(|(known, _)| known != name);
        self.remove.retain(|known| known != name);
    }
}

/// Who gets copies of some requests, with their bodies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RouteMirror {
    /// Who it is, spoken to in clear.
    pub upstream: UpstreamId,
    /// Whether it is spoken to in HTTP/2; calls of gRPC are copied to no other one.
    pub http2: bool,
    /// How many requests are copied,
    pub numerator: u32,
    /// of how many; never zero.
    pub denominator: u32,
}

/// A redirect; what is absent stays as the client has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RouteRedirect {
    /// `http` or `https`.
    pub scheme: Option<String>,
    /// The host.
    pub host: Option<String>,
    /// The port; where there is none and no scheme either, that of the listener.
    pub port: Option<u16>,
    /// The path.
    pub path: Option<PathChange>,
    /// The port of the listener.
    pub listener_port: u16,
    /// The status.
    pub status: u16,
}

/// Another path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum PathChange {
    /// This one.
    Full(String),
    /// The location's path, with which the request's begins, becomes this one. It does not say what it is, so that all
    /// matches of a rule have one policy.
    Prefix(String),
}

#[cfg(test)]
mod tests {
    use super::HeaderEdits;

    #[test]
    fn edits_one_after_the_other_are_the_same_as_one() {
        let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned().into());
        let mut all = HeaderEdits {
            set: vec![pair(("a", "1")), pair(("b", "1"))],
            add: vec![pair(("c", "1"))],
            remove: vec!["d".to_owned()],
        };
        all.then(HeaderEdits {
            set: vec![pair(("a", "2"))],
            add: vec![pair(("c", "2")), pair(("d", "2"))],
            remove: vec!["b".to_owned()],
        });
        let expected = HeaderEdits {
            set: vec![pair(("a", "2")), pair(("d", "2"))],
            add: vec![pair(("c", "1")), pair(("c", "2"))],
            remove: vec!["b".to_owned()],
        };
        assert_eq!(all, expected);
    }
}
