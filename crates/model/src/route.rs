//! Hosts of Gateways, with the rules of the routes that are attached. They stand beside the servers of Ingresses, so
//! that nothing that one of them says counts for the other.

use crate::{CertificateId, Location, Others, PathKind, Pattern, Secret, ServerName, Spent, Steps};
use serde::Serialize;
use std::sync::Arc;

/// A host with the rules that answer under it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RouteHost {
    /// The host; `*.parent` is every name below `parent` at any depth, `_` every name there is.
    pub name: ServerName,
    /// The certificate for handshakes that name the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateId>,
    /// Whether the listener that has it names the host itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
    /// Whose handshakes do not get it, though the host is above theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_shown_to: Option<Arc<Others>>,
    /// The rules, in the order in which they are asked among those of the same path; those for calls of gRPC in the
    /// order in which they are asked, whatever their paths.
    pub rules: Vec<Rule>,
    /// Numbers of rules from which on a rule is asked only where none before has the request, whatever their paths:
    /// those of routes that name the host less specially than the ones before. Nearly always none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<usize>,
    /// Where shares of rules lead.
    pub locations: Vec<Arc<Location>>,
}

impl RouteHost {
    /// A host that nothing is said of.
    pub fn new(name: ServerName) -> Self {
        let (rules, tiers, locations) = (Vec::new(), Vec::new(), Vec::new());
        Self { name, certificate: None, named: false, not_shown_to: None, rules, tiers, locations }
    }
}

/// Which requests there are, and where they go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// Which ones; the same value wherever the route answers.
    pub matches: Arc<RuleMatch>,
    /// Hosts below its own whose requests are never its: more special listeners of the same Gateway, which somebody
    /// else wrote, have them. Nearly always none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<Arc<Others>>,
    /// Where they go; a broken share leads to a location that answers 500.
    pub shares: Vec<Share>,
}

/// What a request must be. Prefixes are whole segments; a slash at their end makes no difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleMatch {
    /// Whether it came by HTTP or HTTPS.
    pub scheme: Scheme,
    /// How the path is meant.
    pub kind: PathKind,
    /// Its path.
    pub path: String,
    /// What the whole path must match; then `path` is what it was written as, and exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// Set where it must be a call of gRPC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grpc: Option<GrpcMatch>,
    /// Its method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Its header fields, each with its whole value; names in lower case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, ValueMatch)>,
    /// Its query parameters, each with its first value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub query: Vec<(String, ValueMatch)>,
}

/// What a call of gRPC must be, besides its path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GrpcMatch {
    /// The method, of whatever service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

/// What a value must be, as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ValueMatch {
    /// This text.
    Exact(Secret<String>),
    /// What this matches.
    Pattern {
        /// The expression, made to match the whole value.
        pattern: Pattern,
    },
}

/// Steps of looking for a header or parameter and comparing it.
const CONDITION: usize = 40;

impl ValueMatch {
    /// Whether a value is so; the expressions of a request share its steps.
    pub fn is_met(&self, value: &[u8], steps: &Steps) -> Result<bool, Spent> {
        steps.take(CONDITION)?;
        match self {
            Self::Exact(text) => Ok(text.as_bytes() == value),
            Self::Pattern { pattern } => pattern.try_match(value, steps),
        }
    }
}

/// How a client came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Scheme {
    /// In clear.
    Http,
    /// Over TLS.
    Https,
}

/// A part of a rule's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// How many, beside the other shares.
    pub weight: u32,
    /// The number of its location.
    pub location: usize,
}

#[cfg(test)]
mod tests {
    use super::ValueMatch;
    use crate::{Spent, Steps};

    #[test]
    fn a_request_has_an_end_of_conditions() {
        let (steps, wanted) = (Steps::new(100), ValueMatch::Exact("two".to_owned().into()));
        assert_eq!(wanted.is_met(b"two", &steps), Ok(true));
        assert_eq!(wanted.is_met(b"one", &steps), Ok(false));
        assert_eq!(wanted.is_met(b"two", &steps), Err(Spent));
    }
}
