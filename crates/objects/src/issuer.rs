//! What `check` has to know of cert-manager's Issuers: of which class the Ingresses are that answer their challenges.

use crate::ObjectKey;
use serde::Deserialize;
use serde_json::Value;

/// cert-manager.io/v1 Issuer or ClusterIssuer, as far as it speaks ACME.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issuer {
    /// Namespace and name; a ClusterIssuer has no namespace.
    pub key: ObjectKey,
    /// `spec.acme.solvers`.
    pub solvers: Vec<Solver>,
}

/// One of the ways in which an Issuer answers challenges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Solver {
    /// For which names; for all if nothing is said.
    pub selector: Option<Selector>,
    /// By HTTP; other ways need no Ingress.
    pub http01: Option<Http01>,
}

/// The names that a solver is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Selector {
    /// Exactly these.
    pub dns_names: Vec<String>,
    /// These and what is below.
    pub dns_zones: Vec<String>,
}

/// Challenges that are answered by HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Http01 {
    /// By an Ingress; else by a route of a Gateway.
    pub ingress: Option<SolverIngress>,
}

/// The Ingress that a solver makes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SolverIngress {
    /// Its annotation `kubernetes.io/ingress.class`.
    pub class: Option<String>,
    /// Its `spec.ingressClassName`.
    pub ingress_class_name: Option<String>,
    /// The Ingress that gets the path instead.
    pub name: Option<String>,
}

/// What is read of the object.
#[derive(Deserialize)]
struct Raw {
    #[serde(rename = "apiVersion")]
    api_version: String,
    kind: String,
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    namespace: Option<String>,
}

#[derive(Default, Deserialize)]
struct Spec {
    acme: Option<Acme>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Acme {
    solvers: Vec<Solver>,
}

impl Issuer {
    /// Reads one; nothing if the object is something else, or nothing that cert-manager would take.
    pub fn read(value: &Value) -> Option<Self> {
        let Raw { api_version, kind, metadata, spec } = Raw::deserialize(value).ok()?;
        let namespace = match kind.as_str() {
            "Issuer" => metadata.namespace.unwrap_or_else(|| "default".to_owned()),
            "ClusterIssuer" => String::new(),
            _ => return None,
        };
        let is_cert_manager = api_version.starts_with("cert-manager.io/");
        let solvers = spec.acme.unwrap_or_default().solvers;
        is_cert_manager.then(|| Self { key: ObjectKey::new(namespace, metadata.name), solvers })
    }

    /// The solver for a name: who names it goes before who names a zone of it, the longer zone before the shorter, and
    /// either before who names nothing; of several the first one counts (cert-manager's documentation of `selector`).
    pub fn solver(&self, host: &str) -> Option<&Solver> {
        let ranked = self.solvers.iter().filter_map(|solver| Some((solver.rank(host)?, solver)));
        let best = ranked.fold(None, |best, (rank, solver)| match best {
            Some((other, _)) if other >= rank => best,
            _ => Some((rank, solver)),
        });
        best.map(|(_, solver)| solver)
    }
}

impl Solver {
    /// How well it suits a name: by name or not, and by how much of a zone; nothing if it is not for that name.
    fn rank(&self, host: &str) -> Option<(bool, usize)> {
        let Some(Selector { dns_names, dns_zones }) = &self.selector else {
            return Some((false, 0));
        };
        let is_within = |zone: &&String| {
            host == zone.as_str()
                || host.strip_suffix(zone.as_str()).is_some_and(|rest| rest.ends_with('.'))
        };
        let is_named = dns_names.iter().any(|name| name == host);
        let zone = dns_zones.iter().filter(is_within).map(String::len).max();
        let is_for_all = dns_names.is_empty() && dns_zones.is_empty();
        (is_named || zone.is_some() || is_for_all).then(|| (is_named, zone.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn class(issuer: &Issuer, host: &str) -> Option<String> {
        issuer.solver(host)?.http01.as_ref()?.ingress.as_ref()?.ingress_class_name.clone()
    }

    #[test]
    fn the_solver_that_says_most_about_a_name_is_the_one() {
        let http = |class: &str| json!({"ingress": {"ingressClassName": class}});
        let issuer = Issuer::read(&json!({
            "apiVersion": "cert-manager.io/v1", "kind": "ClusterIssuer", "metadata": {"name": "le"},
            "spec": {"acme": {"solvers": [
                {"http01": http("all")},
                {"http01": http("too late")},
                {"http01": http("zone"), "selector": {"dnsZones": ["a.test"]}},
                {"http01": http("longer"), "selector": {"dnsZones": ["b.a.test"]}},
                {"http01": http("name"), "selector": {"dnsNames": ["x.b.a.test"]}},
                {"dns01": {}, "selector": {"dnsNames": ["dns.test"]}},
            ]}},
        }));
        let issuer = issuer.expect("an issuer");
        assert_eq!(issuer.key, ObjectKey::new("", "le"));
        let hosts = ["c.test", "a.test", "xa.test", "y.a.test", "y.b.a.test", "x.b.a.test"];
        let classes = hosts.map(|host| class(&issuer, host).expect("a class"));
        assert_eq!(classes, ["all", "zone", "all", "zone", "longer", "name"]);
        assert_eq!(class(&issuer, "dns.test"), None);
    }

    #[test]
    fn what_is_no_issuer_of_cert_manager_is_none() {
        let of = |version: &str, kind: &str| {
            Issuer::read(&json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}))
        };
        assert_eq!(of("other.io/v1", "Issuer"), None);
        assert_eq!(of("cert-manager.io/v1", "Certificate"), None);
        let own = of("cert-manager.io/v1", "Issuer").expect("one without ACME");
        assert_eq!((own.key, own.solvers.len()), (ObjectKey::new("default", "x"), 0));
    }
}
